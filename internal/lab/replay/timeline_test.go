package replay

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/lab/trace"
	"github.com/weir-limiter/weir/internal/soak"
)

// sums adds up the counts of a timeline's intervals.
func sums(l *Timeline) Interval {
	var sum Interval
	for i := range l.Intervals {
		sum.add(&l.Intervals[i])
	}
	return sum
}

// TestTimelineSums checks that the intervals cover all events, however late, and agree with the
// totals.
func TestTimelineSums(t *testing.T) {
	t.Parallel()
	for seed := range uint64(soak.Amount(8, 30)) {
		random := rand.New(rand.NewPCG(seed, 1))
		var calls []trace.Call
		at := int64(1_000_000)
		for i := range 1 + random.IntN(400) {
			at += random.Int64N(3000)
			calls = append(calls, callOf(i+2, at, 5, random.Int64N(20)))
		}
		d := &weir.Definitions{System: []weir.Limit{
			{Name: "otpm", Capacity: 60, RefillAmount: 100},
			{Name: "parallel", Kind: weir.Concurrency, Capacity: 5, Timeout: time.Minute},
		}}
		w := NewWorkload(traceOf(calls...), &WorkloadOptions{Latency: Latency{Base: 2 * time.Second}})
		r, err := Run(t.Context(), d, w, &Options{Retry: &RetryOptions{Patience: time.Hour}})
		if err != nil {
			t.Fatal(err)
		}
		l, sum := r.Timeline, sums(r.Timeline)
		if sum.Arrived != r.Totals.Calls || sum.Admitted != r.Totals.Admitted || sum.Errors != r.Totals.Errors ||
			sum.Denied != r.Totals.Calls-r.Retry.AdmittedFirst-r.Totals.Errors ||
			sum.TokensAdmitted != r.Totals.TokensAdmitted.Int64() ||
			sum.DeniedAttempts != r.Retry.Attempts-r.Totals.Admitted-r.Totals.Errors {
			t.Errorf("seed %d: got %+v, want the totals %+v, %+v", seed, sum, r.Totals, r.Retry)
		}
		if n := len(l.Intervals); n > maxIntervals || l.FromMS != calls[0].AtMS {
			t.Errorf("seed %d: got %d intervals from %d, want at most %d", seed, n, l.FromMS, maxIntervals)
		}
		for i, row := range l.Limits {
			denied, peak := int64(0), int64(0)
			for k := range row.Denied {
				denied += row.Denied[k]
				peak = max(peak, row.PeakUse[k])
			}
			if denied != r.Limits[i].Denied || len(row.Denied) != len(l.Intervals) ||
				len(row.PeakUse) != len(l.Intervals) || peak < 1 || peak > row.Capacity {
				t.Errorf("seed %d: got %d denied and %d of %d in use by %s, want %d",
					seed, denied, peak, row.Capacity, row.Limit, r.Limits[i].Denied)
			}
		}
	}
}

// TestTimelineIntervals checks that intervals are equal, that there are as many as there is room
// for, and that their length doubles when a replay goes on.
func TestTimelineIntervals(t *testing.T) {
	t.Parallel()
	counts := newCallCounts([]*subject{{entity: "a", caller: true, limits: []weir.Limit{{Name: "x", Capacity: 9}}}})
	for _, c := range []struct {
		lastMS   int64 // when calls arrive
		events   []int64
		interval int64
		arrived  []int64
	}{
		{0, []int64{0}, 1, []int64{1}},
		{119, []int64{0, 1, 1, 3}, 1, []int64{1, 2, 0, 1}},
		{120, []int64{0, 1, 2, 3}, 2, []int64{2, 2}},
		{119, []int64{0, 1, 1, 3, 120}, 2, nil},
		{119, []int64{0, 1, 1, 3, 480}, 8, nil},
	} {
		l := newTimeline(counts, timeRange{1000, 1000 + c.lastMS})
		for _, at := range c.events {
			a := &Attempt{Call: &trace.Call{Input: math.MaxInt64}, Number: 1, AtMS: 1000 + at}
			v := &Decision{Limits: []weir.LimitStatus{
				{Entity: "a", Limit: "x", Capacity: 9, Available: 9 - at%10, Exceeded: at == 3},
				{Entity: "nobody", Limit: "x", Capacity: 9},
			}}
			if err := l.Reserved(a, v); err != nil {
				t.Fatal(err)
			}
		}
		if l.IntervalMS != c.interval {
			t.Errorf("%v: got intervals of %d ms, want %d", c.events, l.IntervalMS, c.interval)
		}
		for i, want := range c.arrived {
			if got := l.Intervals[i].Arrived; got != want {
				t.Errorf("%v: got %d calls in interval %d, want %d", c.events, got, i, want)
			}
		}
		if sum := sums(&l.Timeline); sum.Arrived != int64(len(c.events)) || sum.TokensAsked != math.MaxInt64 {
			t.Errorf("%v: got %+v, want %d calls and no overflow", c.events, sum, len(c.events))
		}
	}
	l := newTimeline(counts, timeRange{0, 119})
	for _, at := range []int64{0, 5} {
		_ = l.Reserved(&Attempt{Call: &trace.Call{}, Number: 1, AtMS: at}, &Decision{Limits: []weir.LimitStatus{
			{Entity: "a", Limit: "x", Capacity: 9, Available: 9 - at},
		}})
	}
	if got := l.Limits[0].PeakUse; len(got) != 6 || got[0] != 0 || got[1] != -1 || got[5] != 5 {
		t.Errorf("got %v in use, want 0, then nobody who asked, then 5", got)
	}
}

// TestTimelineRows checks that the limits of a row are added up, and that the number of rows is
// bounded.
func TestTimelineRows(t *testing.T) {
	t.Parallel()
	var subjects []*subject
	for i := range 9 {
		subjects = append(subjects, &subject{entity: TenantName(i), caller: true,
			limits: []weir.Limit{{Name: "x", Capacity: 10}}})
	}
	l := newTimeline(newCallCounts(subjects), timeRange{0, 119})
	for i, available := range []int64{4, 7, 9} {
		_ = l.Reserved(&Attempt{Call: &trace.Call{}, Number: 1, AtMS: int64(i)}, &Decision{Limits: []weir.LimitStatus{
			{Entity: TenantName(i % 2), Limit: "x", Capacity: 10, Available: available},
		}})
	}
	row := l.Limits[0]
	if len(l.Limits) != 1 || row.Group != Tenants || row.Capacity != 90 ||
		row.PeakUse[0] != 6 || row.PeakUse[1] != 9 || row.PeakUse[2] != 4 {
		t.Errorf("got %+v, want one row with 6, 6+3 and 1+3 in use", row)
	}
	var limits []weir.Limit
	for i := range maxTimelineRows + 3 {
		limits = append(limits, weir.Limit{Name: TenantName(i), Capacity: 1})
	}
	l = newTimeline(newCallCounts([]*subject{{entity: "a", limits: limits}}), timeRange{0, 9})
	if len(l.Limits) != maxTimelineRows || l.RowsLeftOut != 3 {
		t.Errorf("got %d rows and %d left out, want %d and 3", len(l.Limits), l.RowsLeftOut, maxTimelineRows)
	}
}
