package loadtest_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-limiter/weir/internal/lab/loadtest"
)

// TestCoordinatedOmission uses a service that answers in a millisecond and stalls once for a
// second. In an open loop the report must show a wait for every call that was due during the stall.
// In a closed loop it shows one slow call, because the caller makes no other call during the stall.
func TestCoordinatedOmission(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		stalling := func() *fakeService {
			f := newFakeService()
			f.takes, f.stall, f.stalls = ms, 500, time.Second
			return f
		}
		// There are 1,000 calls, one every 10 ms, with one request at a time. The k-th call after
		// the stall began waits for its end and for the k calls before it.
		var want []time.Duration
		for i := range 1000 {
			d := ms
			if k := i - 500; k >= 0 {
				d = max(ms, time.Duration(1001-9*k)*ms)
			}
			want = append(want, d)
		}
		slices.Sort(want)
		f := stalling()
		open := runLoad(t, f, &loadtest.Options{Duration: 10 * time.Second, Concurrency: 1, Rate: 100}, "a llm rpm=1")
		got := rowOf(open, loadtest.Reserve, loadtest.Admitted)
		q := got.Latency
		for _, c := range []struct {
			name string
			got  time.Duration
			rank int
		}{
			{"p50", q.P50, 500}, {"p90", q.P90, 900}, {"p95", q.P95, 950}, {"p99", q.P99, 990},
			{"p99.9", q.P999, 999}, {"max", q.Max, 1000},
		} {
			if !near(c.got, want[c.rank-1]) {
				t.Errorf("open loop, %s: got %v, want %v", c.name, c.got, want[c.rank-1])
			}
		}
		if q.P99 < 900*ms || q.P999 > q.Max || !near(got.Service.P99, ms) || got.Service.Max != 1001*ms {
			t.Errorf("got latency %+v and service time %+v, want the stall in the first alone", q, got.Service)
		}
		// The calls that are behind the stalled one by more than 20 ms: 1000 - 9k of them, for the
		// k-th.
		if got.Count != 1000 || open.Planned != 1000 || open.Started != 1000 || open.Late != 108 ||
			open.LateMax != 991*ms || open.Unsent != 0 {
			t.Errorf("got %d answered and %+v, want 1,000 and 108 late", got.Count, open)
		}

		closed := runLoad(t, stalling(), &loadtest.Options{
			Duration: 10 * time.Second, Concurrency: 1, Think: loadtest.DurationRange{Least: 9 * ms, Most: 9 * ms},
		}, "a llm rpm=1")
		got = rowOf(closed, loadtest.Reserve, loadtest.Admitted)
		if !near(got.Latency.P99, ms) || !near(got.Latency.P999, ms) && got.Count > 1000 ||
			got.Latency.Max != 1001*ms || got.Count != 900 || closed.Late != 0 {
			t.Errorf("closed loop: got %+v, want 900 calls and one of 1.001s alone", got)
		}
	})
}

// TestOpenLoopUnsentCalls checks that calls for which a service is too slow are sent for ten seconds
// after the end, and that the rest is counted as unsent.
func TestOpenLoopUnsentCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFakeService()
		f.takes = 1100 * time.Millisecond
		began := time.Now()
		r := runLoad(t, f, &loadtest.Options{Duration: 10 * time.Second, Concurrency: 2, Rate: 10}, "a llm rpm=1")
		// 100 calls are due in 10 s. One begins every 1.1 s from 0 s on, one from 0.1 s on, before
		// 20 s.
		if r.Planned != 100 || r.Started != 38 || r.Unsent != 62 || r.Count(loadtest.Reserve, loadtest.Admitted) != 38 {
			t.Errorf("got %+v, want 38 of 100", r)
		}
		if took := time.Since(began); took != 21*time.Second {
			t.Errorf("took %v, want 21s", took)
		}
		if r.Elapsed != 10*time.Second || r.Served != 21*time.Second {
			t.Errorf("got %v measured and served in %v, want 10s and 21s", r.Elapsed, r.Served)
		}
		if f.mostAtOnce != 2 {
			t.Errorf("got %d requests at once, want 2", f.mostAtOnce)
		}
		f = newFakeService()
		f.takes = 100 * time.Millisecond
		r = runLoad(t, f, &loadtest.Options{Duration: 10 * time.Second, Concurrency: 2, Rate: 10}, "a llm rpm=1")
		if r.Planned != 100 || r.Started != 100 || r.Unsent != 0 || r.Late != 0 {
			t.Errorf("got %+v, want 100 of 100 in time", r)
		}
		for i, at := range f.at {
			if want := time.Duration(i) * 100 * time.Millisecond; at != want {
				t.Fatalf("call %d: got it after %v, want %v", i, at, want)
			}
		}
	})
}

// TestOpenLoopFlush checks that leases that are settled early, at the end, do not delay calls that
// were due before it.
func TestOpenLoopFlush(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		f := newFakeService()
		f.takes, f.settleTakes = ms, 15*ms
		f.stall, f.stalls = 990, 200*ms // from 9.9 s on
		hour := loadtest.DurationRange{Least: 59 * time.Minute, Most: 59 * time.Minute}
		r := runLoad(t, f, &loadtest.Options{Duration: 10 * time.Second, Concurrency: 1, Rate: 100, Think: hour},
			"a llm rpm=1")
		got := rowOf(r, loadtest.Reserve, loadtest.Admitted)
		if r.Planned != 1000 || r.Unsent != 0 || r.LateMax > 200*ms || got.Latency.Max != 201*ms {
			t.Errorf("got %+v, want every call sent, at most 200ms late", r)
		}
		if r.Count(loadtest.Complete, loadtest.Done) != 0 || r.Served > 10200*ms {
			t.Errorf("got %+v, want no completion measured", r)
		}
	})
}
