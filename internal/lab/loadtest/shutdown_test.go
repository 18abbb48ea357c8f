package loadtest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/lab/loadtest"
)

var errDown = errors.New("connection refused")

// TestInterrupted checks that an interrupt settles all leases at once, and that there is a report
// of the calls until then.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	for _, rate := range []int64{0, 100} {
		synctest.Test(t, func(t *testing.T) {
			f := newFakeService()
			f.takes, f.settleTakes = 10*time.Millisecond, 10*time.Millisecond
			minute := loadtest.DurationRange{Least: time.Minute, Most: time.Minute}
			r, err := loadtest.New(f, mixOf(t, "a llm rpm=1"), &loadtest.Options{
				Duration: time.Hour, Concurrency: 8, Rate: rate, Think: minute,
			})
			if err != nil {
				t.Fatal(err)
			}
			ctx, interrupt := context.WithCancel(t.Context())
			time.AfterFunc(2*time.Second, interrupt)
			began := time.Now()
			report, err := r.Run(ctx)
			if !errors.Is(err, context.Canceled) || !errors.Is(report.Stopped, context.Canceled) {
				t.Fatalf("rate %d: got %v and %v, want an interruption", rate, err, report.Stopped)
			}
			if took := time.Since(began); took > 3*time.Second || report.Elapsed != 2*time.Second {
				t.Errorf("rate %d: took %v and measured %v, want about 2s", rate, took, report.Elapsed)
			}
			// Requests that are in flight at the interrupt are completed.
			if int64(f.completed) != report.Taken || f.cancelled != 0 {
				t.Errorf("rate %d: got %d completed and %d cancelled, want all %d completed",
					rate, f.completed, f.cancelled, report.Taken)
			}
			// Leases that are settled at once after a stop are not measured.
			if report.Count(loadtest.Complete, loadtest.Done) != 0 || report.Served > 2010*time.Millisecond {
				t.Errorf("rate %d: got %+v, want no completion measured", rate, report)
			}
			want := 8
			if rate > 0 {
				want = 200
			}
			if len(f.live) != 0 || report.Left != 0 || int(report.Settled) < want || report.Settled != report.Taken ||
				report.Unsent != 0 || report.Planned < int64(want) {
				t.Errorf("rate %d: got %d live and %+v, want at least %d, all settled", rate, len(f.live), report, want)
			}
		})
	}
}

// TestHungService checks that a run ends if the service never answers, and that the report has the
// leases that may be left.
func TestHungService(t *testing.T) {
	t.Parallel()
	for _, rate := range []int64{0, 10} {
		synctest.Test(t, func(t *testing.T) {
			f := newFakeService()
			f.settleTakes = 24 * time.Hour
			f.takes = time.Millisecond
			r, err := loadtest.New(f, mixOf(t, "a llm rpm=1"), &loadtest.Options{
				Duration: time.Second, Concurrency: 3, Rate: rate,
			})
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			report, err := r.Run(t.Context())
			if took := time.Since(began); err != nil || took > time.Minute {
				t.Errorf("rate %d: took %v and got %v", rate, took, err)
			}
			if report.Taken == 0 || report.Left != report.Taken || report.Settled != 0 || int(report.Left) != len(f.live) {
				t.Errorf("rate %d: got %+v and %d live, want all of them left", rate, report, len(f.live))
			}
		})
	}
}

// TestGiveUp checks that a hundred errors in a row end a run of either loop, and that errors with
// answers between them do not.
func TestGiveUp(t *testing.T) {
	t.Parallel()
	down := &weir.Error{Code: weir.Unavailable, Reason: "the server did not answer", Err: errDown}
	for _, rate := range []int64{0, 1000} {
		synctest.Test(t, func(t *testing.T) {
			f := newFakeService()
			f.takes = time.Millisecond
			f.reserve = func(n int, _ *weir.Request) error {
				if n >= 20 {
					return down
				}
				return nil
			}
			r, err := loadtest.New(f, mixOf(t, "a llm rpm=1"), &loadtest.Options{
				Duration: time.Hour, Concurrency: 1, Rate: rate,
			})
			if err != nil {
				t.Fatal(err)
			}
			report, err := r.Run(t.Context())
			want := "gave up after 100 errors in a row, the last one: reserve: " + down.Error()
			if err == nil || err.Error() != want || !errors.Is(err, errDown) {
				t.Fatalf("rate %d: got %v, want %s", rate, err, want)
			}
			if failed := report.Count(loadtest.Reserve, loadtest.Failed); failed < 100 || failed > 102 ||
				len(report.Errors) != 1 || report.Errors[0] != (loadtest.ErrorCount{
				Verb: loadtest.Reserve, Code: weir.Unavailable, Count: failed,
			}) || len(f.live) > 0 {
				t.Errorf("rate %d: got %+v and %d live", rate, report, len(f.live))
			}

			f = newFakeService()
			f.takes = time.Millisecond
			f.reserve = func(n int, _ *weir.Request) error {
				if n%100 != 0 {
					return down
				}
				return &weir.DeniedError{}
			}
			report = runLoad(t, f, &loadtest.Options{Duration: time.Second, Concurrency: 1, Rate: rate}, "a llm rpm=1")
			if report.Count(loadtest.Reserve, loadtest.Failed) < 900 || report.Count(loadtest.Reserve, loadtest.Denied) != 10 {
				t.Errorf("rate %d: got %+v, want it to go on", rate, report)
			}
		})
	}
}

// TestNothingAnswered checks that a run without any answer has failed, even if it was short.
func TestNothingAnswered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFakeService()
		f.takes = 100 * time.Millisecond
		f.reserve = func(int, *weir.Request) error { return errDown }
		r, err := loadtest.New(f, mixOf(t, "a llm rpm=1"), &loadtest.Options{Duration: time.Second, Concurrency: 1})
		if err != nil {
			t.Fatal(err)
		}
		report, err := r.Run(t.Context())
		if want := "no request was answered: reserve: connection refused"; err == nil || err.Error() != want ||
			report.Count(loadtest.Reserve, loadtest.Failed) != 10 || report.Stopped != nil {
			t.Errorf("got %v and %+v, want %s", err, report, want)
		}
	})
}

// TestSweep checks that leases whose settlement failed, and leases that a reservation without an
// answer may have made, are cancelled at the end. Those that cannot be cancelled are reported as
// left.
func TestSweep(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		sweep   error
		settled bool
		left    bool
	}{
		{"cancelled", nil, true, false},
		{"ended before", &weir.Error{Code: weir.Ended}, true, false},
		{"completed before", &weir.Error{Code: weir.Conflict}, true, false},
		{"never made", &weir.Error{Code: weir.UnknownLease}, false, false},
		{"no answer", &weir.Error{Code: weir.Unavailable}, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFakeService()
				f.takes = 100 * time.Millisecond
				made := weir.NewLeaseID(time.Now())
				f.reserve = func(n int, _ *weir.Request) error {
					if n == 3 {
						return &weir.Error{Code: weir.Unavailable, Field: "lease_id", Value: made.String(), Err: errDown}
					}
					return nil
				}
				f.settle = func(n int) error {
					if n == 2 {
						return &weir.Error{Code: weir.Unavailable, Err: errDown}
					}
					return nil
				}
				swept := map[weir.LeaseID]bool{}
				f.sweep = func(id weir.LeaseID) error {
					swept[id] = true
					return c.sweep
				}
				r, err := loadtest.New(f, mixOf(t, "a llm rpm=1"), &loadtest.Options{Duration: time.Second, Concurrency: 1})
				if err != nil {
					t.Fatal(err)
				}
				report, err := r.Run(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				// Every completion from the third on fails, seven in all, and one reservation. If
				// that reservation turns out to have made a lease, the lease counts as taken too.
				taken := int64(9)
				if c.settled {
					taken = 10
				}
				if len(swept) != 8 || !swept[made] || report.Taken != taken || f.completed != 2 {
					t.Errorf("got %d swept, %d completed and %+v", len(swept), f.completed, report)
				}
				if got := report.Settled == 2+8; got != c.settled {
					t.Errorf("got %d settled, want all %v", report.Settled, c.settled)
				}
				if got := report.Left == 8; got != c.left || !c.left && report.Left != 0 {
					t.Errorf("got %d left, want any %v", report.Left, c.left)
				}
			})
		})
	}
}

// TestRefused checks that all invalid options are named, and that a mistake that the service
// reports ends a run before its first call.
func TestRefused(t *testing.T) {
	t.Parallel()
	_, err := loadtest.New(newFakeService(), nil, &loadtest.Options{
		Duration: -1, Warmup: -1, Concurrency: -1, Rate: -1, CancelPercent: 101,
		Think: loadtest.DurationRange{Least: 2, Most: 1},
	})
	for _, want := range []string{"duration", "warmup", "concurrency", "rate", "cancel", "think"} {
		if !strings.Contains(fmt.Sprint(err), "invalid: "+want+` "`) || !errors.Is(err, weir.Invalid) {
			t.Errorf("got %v, want %s in it", err, want)
		}
	}
	for name, o := range map[string]*loadtest.Options{
		"duration": {Duration: 25 * time.Hour}, "concurrency": {Concurrency: 5000}, "rate": {Rate: 1_000_001},
		"think": {Think: loadtest.DurationRange{Most: time.Hour}}, "warmup": {Warmup: 25 * time.Hour}, "mix": nil,
		`think "0s..1m0s": would have more than 100000 calls thinking`: {
			Rate: 10_000, Think: loadtest.DurationRange{Most: time.Minute}, Duration: time.Minute,
		},
	} {
		if _, err := loadtest.New(newFakeService(), nil, o); !strings.Contains(fmt.Sprint(err), "invalid: "+name) {
			t.Errorf("got %v, want %s refused", err, name)
		}
	}
	for _, c := range []struct {
		text, want string
		code       weir.Code
	}{
		{"a{1..2} llm rpm=1 tpm=2", "", ""},
		{"a llm rpm=1 usd=3..4", `costs.usd "3..4": neither "a" nor an entity that it cascades to has such a limit on "llm"`, weir.UnknownLimit},
		{"a llm rpm=1..11", `costs.rpm "1..11": a/llm can hold at most 10`, weir.NeverSatisfiable},
		{"a{1..9} llm tpm=1", `costs.tpm "1": neither "a9" nor an entity`, weir.UnknownLimit},
		{"a none rpm=1", `entity "a": no limits are configured for it on resource "none"`, weir.NoLimits},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFakeService()
			f.takes = time.Second
			f.limits = []weir.Limit{{Name: "rpm", Capacity: 10}, {Name: "tpm", Capacity: 1, Shadow: true}}
			f.limitsOf = map[string][]weir.Limit{"a9": f.limits[:1]}
			if c.code == weir.NoLimits {
				f.limits = []weir.Limit{}
			}
			r, err := loadtest.New(f, mixOf(t, c.text), &loadtest.Options{Duration: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			report, err := r.Run(t.Context())
			if c.code == "" {
				if err != nil || len(f.asked) == 0 {
					t.Errorf("%s: got %v, want it run", c.text, err)
				}
				return
			}
			if report != nil || !errors.Is(err, c.code) || !strings.Contains(err.Error(), c.want) || len(f.asked) > 0 {
				t.Errorf("%s: got %v after %d requests, want %s", c.text, err, len(f.asked), c.want)
			}
		})
	}
}
