package loadtest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/lab/loadtest"
)

// TestClosedLoop checks that the number of callers is always the configured one, and that each
// caller keeps its lease for the think time. A service of half the speed gets half as many calls.
func TestClosedLoop(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for _, c := range []struct {
		name              string
		concurrency       int
		takes             time.Duration
		think             loadtest.DurationRange
		calls, mostAtOnce int
	}{
		{"one", 1, 10 * ms, loadtest.DurationRange{}, 100, 1},
		{"eight", 8, 10 * ms, loadtest.DurationRange{}, 800, 8},
		{"half as fast", 8, 20 * ms, loadtest.DurationRange{}, 400, 8},
		{"thinking", 8, 10 * ms, loadtest.DurationRange{Least: 30 * ms, Most: 30 * ms}, 200, 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFakeService()
				f.takes = c.takes
				r := runLoad(t, f, &loadtest.Options{
					Duration: time.Second, Concurrency: c.concurrency, Think: c.think,
				}, "a llm rpm=1")
				if len(f.asked) != c.calls || r.Started != int64(c.calls) || r.Planned != r.Started ||
					f.mostAtOnce != c.mostAtOnce || r.Elapsed != time.Second {
					t.Errorf("got %d calls, %d at once and %+v, want %d and %d",
						len(f.asked), f.mostAtOnce, r, c.calls, c.mostAtOnce)
				}
				for _, kept := range f.kept {
					if kept != c.think.Least {
						t.Fatalf("got a lease kept for %v, want %v", kept, c.think.Least)
					}
				}
				// A call that ends after the measured time is completed, but not measured.
				if done := r.Count(loadtest.Complete, loadtest.Done); done != int64(c.calls-c.concurrency) ||
					f.completed != c.calls {
					t.Errorf("got %d completions measured of %d", done, f.completed)
				}
			})
		})
	}
}

// TestThink checks that the time between reservation and settlement is drawn from the whole range,
// and that a run does not wait for the rest of it at its end.
func TestThink(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		for _, rate := range []int64{0, 100} {
			f := newFakeService()
			f.takes = ms
			think := loadtest.DurationRange{Least: 50 * ms, Most: 150 * ms}
			r := runLoad(t, f, &loadtest.Options{Duration: 20 * time.Second, Think: think, Rate: rate}, "a llm rpm=1")
			var low, high, cut int
			for _, kept := range f.kept {
				switch {
				case kept < 50*ms:
					cut++
				case kept > 150*ms:
					t.Fatalf("got a lease kept for %v", kept)
				case kept < 75*ms:
					low++
				case kept > 125*ms:
					high++
				}
			}
			all := len(f.kept)
			if all < 1800 || low < all/5 || low > all*3/10 || high < all/5 || high > all*3/10 || cut > 15 {
				t.Errorf("rate %d: got %d kept, %d short, %d long, %d cut off, want a quarter each",
					rate, all, low, high, cut)
			}
			if r.Elapsed != 20*time.Second {
				t.Errorf("got %v measured, want 20s", r.Elapsed)
			}

			began := time.Now()
			f = newFakeService()
			f.takes = ms
			hour := loadtest.DurationRange{Least: 59 * time.Minute, Most: 59 * time.Minute}
			r = runLoad(t, f, &loadtest.Options{Duration: time.Second, Think: hour, Rate: rate / 100}, "a llm rpm=1")
			if took := time.Since(began); took > 2*time.Second || r.Taken == 0 {
				t.Errorf("rate %d: took %v for %d leases, want about a second", rate, took, r.Taken)
			}
		}
	})
}

// TestWarmup checks that calls before the end of the warm-up are made and not measured.
func TestWarmup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, rate := range []int64{0, 10} {
			f := newFakeService()
			f.takes = 100 * time.Millisecond
			f.reserve = func(n int, _ *weir.Request) error {
				if n < 10 {
					return &weir.DeniedError{}
				}
				return nil
			}
			r := runLoad(t, f, &loadtest.Options{
				Duration: 2 * time.Second, Warmup: time.Second, Concurrency: 1, Rate: rate,
			}, "a llm rpm=1")
			if len(f.asked) != 30 || r.Planned != 20 || r.Count(loadtest.Reserve, loadtest.Denied) != 0 ||
				r.Count(loadtest.Reserve, loadtest.Admitted) != 20 || r.Elapsed != 2*time.Second || r.Taken != 20 {
				t.Errorf("rate %d: got %d asked and %+v, want 30 and 20 measured", rate, len(f.asked), r)
			}
		}
	})
}
