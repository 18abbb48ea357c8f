package loadtest_test

import (
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/lab/loadtest"
)

// TestQuantiles checks that every quantile of equal durations is that duration, exactly, even above
// a minute.
func TestQuantiles(t *testing.T) {
	t.Parallel()
	for _, takes := range []time.Duration{1234567 * time.Nanosecond, 59_999 * time.Millisecond, 90 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			f := newFakeService()
			f.takes = takes
			r := runLoad(t, f, &loadtest.Options{Duration: 5 * takes, Concurrency: 1}, "a llm")
			want := loadtest.Row{
				Verb: loadtest.Reserve, Result: loadtest.Admitted, Count: 5,
				Latency: loadtest.Quantiles{P50: takes, P90: takes, P95: takes, P99: takes, P999: takes, Max: takes},
			}
			want.Service = want.Latency
			if got := rowOf(r, loadtest.Reserve, loadtest.Admitted); got != want {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

// TestActuals checks that a lease is completed with the units that it reserved, without slots,
// which return by themselves.
func TestActuals(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]weir.Costs{
		"a llm rpm=1 parallel=2":       {"rpm": 1},
		"a llm rpm=1 parallel=2..2":    {"rpm": 1},
		"a llm tpm=5..9 parallel=1..2": {"tpm": 0}, // the costs that were drawn
		"a llm parallel=2":             nil,
		"a llm":                        nil,
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFakeService()
			f.takes = time.Second
			f.limits = []weir.Limit{
				{Name: "rpm", Capacity: 10}, {Name: "tpm", Capacity: 10},
				{Name: "parallel", Kind: weir.Concurrency, Capacity: 10},
			}
			runLoad(t, f, &loadtest.Options{Duration: 20 * time.Second, Concurrency: 1}, text)
			if want == nil && len(f.actuals) != 0 || want != nil && len(f.actuals) != 20 {
				t.Fatalf("%s: got %v, want %v", text, f.actuals, want)
			}
			for i, got := range f.actuals {
				want := want
				if _, drawn := want["tpm"]; drawn {
					want = weir.Costs{"tpm": f.asked[i].Costs["tpm"]}
				}
				if !reflect.DeepEqual(got, want) {
					t.Fatalf("%s: got %v, want %v", text, got, want)
				}
			}
		})
	}
}

// TestDegraded checks that a lease that was never in the store is counted, and not settled.
func TestDegraded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFakeService()
		f.takes, f.degraded = 100*time.Millisecond, true
		r := runLoad(t, f, &loadtest.Options{Duration: time.Second, Concurrency: 1}, "a llm rpm=1")
		if r.Degraded != 10 || r.Count(loadtest.Reserve, loadtest.Admitted) != 10 || r.Taken != 0 || len(f.actuals) != 0 {
			t.Errorf("got %+v, want ten degraded and none to settle", r)
		}
	})
}

// TestContended checks that a denial in which no limit was exceeded is counted too.
func TestContended(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFakeService()
		f.takes = 100 * time.Millisecond
		f.reserve = func(int, *weir.Request) error { return &weir.DeniedError{Contended: true} }
		r := runLoad(t, f, &loadtest.Options{Duration: time.Second, Concurrency: 1}, "a llm rpm=1")
		want := loadtest.DeniedCount{DeniedBy: loadtest.DeniedBy{Contended: true}, Count: 10}
		if len(r.DeniedBy) != 1 || r.DeniedBy[0] != want {
			t.Errorf("got %+v, want %+v", r.DeniedBy, want)
		}
	})
}

// TestProgress checks the progress before, during and after a run.
func TestProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFakeService()
		f.takes = 100 * time.Millisecond
		f.reserve = func(n int, _ *weir.Request) error {
			return []error{nil, &weir.DeniedError{}, &weir.Error{Code: weir.Ended}}[n%3]
		}
		r, err := loadtest.New(f, mixOf(t, "a llm rpm=1"), &loadtest.Options{
			Duration: 2 * time.Second, Warmup: time.Second, Concurrency: 1,
		})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := r.Progress(time.Now()), (loadtest.Progress{Total: 3 * time.Second}); got != want {
			t.Errorf("before: got %+v, want %+v", got, want)
		}
		began := time.Now()
		seen := make(chan loadtest.Progress, 1)
		time.AfterFunc(1550*time.Millisecond, func() { seen <- r.Progress(time.Now()) })
		if _, err := r.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := loadtest.Progress{
			Elapsed: 1550 * time.Millisecond, Total: 3 * time.Second, Calls: 16, Admitted: 5, Denied: 5, Failed: 5,
		}
		if got := <-seen; got != want {
			t.Errorf("halfway: got %+v, want %+v", got, want)
		}
		want = loadtest.Progress{
			Elapsed: 3 * time.Second, Total: 3 * time.Second, Calls: 30, Admitted: 10, Denied: 10, Failed: 10,
		}
		if got := r.Progress(began.Add(3 * time.Second)); got != want {
			t.Errorf("after: got %+v, want %+v", got, want)
		}
	})
}
