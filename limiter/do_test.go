package limiter_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/limiter"
)

// settleRecorder records how leases were settled on a fake store.
type settleRecorder struct {
	verbs []weir.Verb
	units []int64 // of the last update
}

func (s *settleRecorder) record(f *fakeStore) {
	f.settle = func(_ context.Context, st *driver.Update) (*driver.Outcome, error) {
		s.verbs = append(s.verbs, st.Verb)
		s.units = nil
		for _, c := range st.Changes {
			s.units = append(s.units, c.Parts[0].Units)
		}
		return &driver.Outcome{At: time.Now()}, nil
	}
}

func TestDo(t *testing.T) {
	t.Parallel()
	broken := errors.New("the call broke")
	for _, tt := range []struct {
		name  string
		call  func(context.Context, *weir.Lease) error
		verb  weir.Verb
		units int64
		err   error
	}{
		{"success without a report keeps what was reserved",
			func(context.Context, *weir.Lease) error { return nil }, weir.VerbComplete, 1, nil},
		{"success with a report",
			func(_ context.Context, l *weir.Lease) error { l.Report(weir.Costs{"rpm": 7}); return nil },
			weir.VerbComplete, 7, nil},
		{"the last report counts", func(_ context.Context, l *weir.Lease) error {
			l.Report(weir.Costs{"rpm": 7})
			l.Report(weir.Costs{"rpm": 0})
			return nil
		}, weir.VerbComplete, 0, nil},
		{"an error cancels",
			func(context.Context, *weir.Lease) error { return broken }, weir.VerbCancel, 0, broken},
		{"an error after a report does not",
			func(_ context.Context, l *weir.Lease) error { l.Report(weir.Costs{"rpm": 3}); return broken },
			weir.VerbComplete, 3, broken},
		{"an error after the call was sent keeps what was reserved",
			func(_ context.Context, l *weir.Lease) error { l.Sent(); return broken },
			weir.VerbComplete, 1, broken},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			fake, seen := newFakeStore(), &settleRecorder{}
			seen.record(fake)
			l, _ := limiter.New(fake, nil)
			if err := weir.Do(t.Context(), l, ask(), tt.call); !errors.Is(err, tt.err) {
				t.Errorf("got %v, want %v", err, tt.err)
			}
			want := &settleRecorder{[]weir.Verb{tt.verb}, []int64{tt.units}}
			if !reflect.DeepEqual(seen, want) {
				t.Errorf("got %+v, want %+v", seen, want)
			}
		})
	}
}

func TestDoWithACancelledContext(t *testing.T) {
	t.Parallel()
	for _, sent := range []bool{false, true} {
		fake, seen := newFakeStore(), &settleRecorder{}
		seen.record(fake)
		l, _ := limiter.New(fake, nil)
		ctx, cancel := context.WithCancel(t.Context())
		err := weir.Do(ctx, l, ask(), func(ctx context.Context, lease *weir.Lease) error {
			if sent {
				lease.Sent()
			}
			cancel()
			return ctx.Err()
		})
		want := []weir.Verb{weir.VerbCancel}
		if sent {
			want = []weir.Verb{weir.VerbComplete}
		}
		if !errors.Is(err, context.Canceled) || !reflect.DeepEqual(seen.verbs, want) {
			t.Errorf("sent %v: got %v and %v, want canceled and %v", sent, err, seen.verbs, want)
		}
	}
}

func TestDoWithAPanic(t *testing.T) {
	t.Parallel()
	fake, seen := newFakeStore(), &settleRecorder{}
	seen.record(fake)
	l, _ := limiter.New(fake, nil)
	func() {
		defer func() {
			if got := recover(); got != "boom" {
				t.Errorf("recovered %v, want boom", got)
			}
		}()
		_ = weir.Do(t.Context(), l, ask(), func(context.Context, *weir.Lease) error { panic("boom") })
	}()
	if want := []weir.Verb{weir.VerbCancel}; !reflect.DeepEqual(seen.verbs, want) {
		t.Errorf("got %v, want %v", seen.verbs, want)
	}
}

// While the function runs, the lease is extended three times in each lifetime.
func TestDoExtends(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake, seen := newFakeStore(), &settleRecorder{}
		seen.record(fake)
		l, _ := limiter.New(fake, nil)
		err := weir.Do(t.Context(), l, ask(), func(context.Context, *weir.Lease) error {
			<-time.After(90 * time.Minute)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		want := []weir.Verb{weir.VerbExtend, weir.VerbExtend, weir.VerbExtend, weir.VerbExtend, weir.VerbComplete}
		if !reflect.DeepEqual(seen.verbs, want) {
			t.Errorf("got %v, want %v", seen.verbs, want)
		}
	})
}

func TestDoReportsAFailedSettlement(t *testing.T) {
	t.Parallel()
	fake := newFakeStore()
	fake.settle = func(context.Context, *driver.Update) (*driver.Outcome, error) { return nil, errWire }
	l, _ := limiter.New(fake, nil)
	err := weir.Do(t.Context(), l, ask(), func(context.Context, *weir.Lease) error { return nil })
	if !errors.Is(err, errWire) || !errors.Is(err, weir.Unavailable) {
		t.Errorf("got %v, want unavailable for %v", err, errWire)
	}
}

// denials makes a store deny n times, with a retry-after, and then admit.
func denials(fake *fakeStore, n int, retry time.Duration) *[]weir.LeaseID {
	ids := new([]weir.LeaseID)
	fake.reserve = func(_ context.Context, r *driver.Plan) (*driver.Outcome, error) {
		*ids = append(*ids, r.ID)
		if len(*ids) > n {
			return &driver.Outcome{}, nil
		}
		return &driver.Outcome{Denied: true, Limits: []weir.LimitStatus{{Limit: "rpm", Exceeded: true,
			RetryAfter: retry}}}, nil
	}
	return ids
}

func TestWait(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		denials  int
		retry    time.Duration
		min, max time.Duration
	}{
		{"at once", 0, 0, 0, 0},
		{"as told", 1, 10 * time.Millisecond, 10 * time.Millisecond, 12 * time.Millisecond},
		{"sooner than reported, because others settle", 6, time.Hour, 1575 * time.Millisecond, 1800 * time.Millisecond},
		{"contended", 3, 0, 175 * time.Millisecond, 200 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				fake := newFakeStore()
				ids := denials(fake, tt.denials, tt.retry)
				l, _ := limiter.New(fake, nil)
				start := time.Now()
				lease, err := weir.Wait(t.Context(), l, ask(), nil)
				if err != nil || lease == nil {
					t.Fatalf("got %v, %v; want a lease", lease, err)
				}
				if took := time.Since(start); took < tt.min || took > tt.max {
					t.Errorf("took %v, want between %v and %v", took, tt.min, tt.max)
				}
				seen := map[weir.LeaseID]bool{}
				for _, id := range *ids {
					seen[id] = true
				}
				if len(seen) != tt.denials+1 {
					t.Errorf("got %d IDs for %d attempts, want one for each", len(seen), len(*ids))
				}
			})
		})
	}
}

func TestWaitEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := newFakeStore()
		denials(fake, 1<<30, time.Hour)
		l, _ := limiter.New(fake, nil)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := weir.Wait(ctx, l, ask(), nil)
		denied, ok := errors.AsType[*weir.DeniedError](err)
		if !ok || !errors.Is(err, context.DeadlineExceeded) || denied.RetryAfter != time.Hour {
			t.Errorf("got %v, want the deadline and the last denial", err)
		}
	})
	l, _ := limiter.New(newFakeStore(), nil)
	brought := ask()
	brought.LeaseID = weir.NewLeaseID(time.Now())
	if _, err := weir.Wait(t.Context(), l, brought, nil); !errors.Is(err, weir.Invalid) {
		t.Errorf("got %v, want invalid: every attempt needs an ID of its own", err)
	}
	unknown := ask()
	unknown.Costs = weir.Costs{"nope": 1}
	if _, err := weir.Wait(t.Context(), l, unknown, nil); !errors.Is(err, weir.UnknownLimit) {
		t.Errorf("got %v, want the mistake at once", err)
	}
}

// Wait goes on after an Overloaded error, which is not a denial but reserved nothing either.
func TestWaitAfterOverload(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := newFakeStore()
		attempts := 0
		fake.reserve = func(context.Context, *driver.Plan) (*driver.Outcome, error) {
			if attempts++; attempts == 1 {
				return nil, &weir.Error{Code: weir.Overloaded, RetryAfter: 10 * time.Millisecond}
			}
			return &driver.Outcome{}, nil
		}
		l, _ := limiter.New(fake, nil)
		start := time.Now()
		if _, err := weir.Wait(t.Context(), l, ask(), nil); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); attempts != 2 || took < 10*time.Millisecond || took > 12*time.Millisecond {
			t.Errorf("got %d attempts in %v, want 2 in 10ms and little more", attempts, took)
		}
	})
}
