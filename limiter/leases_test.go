package limiter

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
)

var leaseStart = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// tableOf returns a table that was opened at leaseStart.
func tableOf(size int) *leaseTable {
	return newLeaseTable(&Options{LeaseMemory: 10 * time.Minute, LeaseMemorySize: size, MaxLeases: 1 << 30}, leaseStart)
}

// live adds a lease that was reserved at a time and expires an hour later.
func (t *leaseTable) live(tb testing.TB, id weir.LeaseID, at time.Time) {
	tb.Helper()
	e, err := t.acquire(tb.Context(), id, t.clock(at), true)
	if err != nil {
		tb.Fatal(err)
	}
	e.activate(&driver.LeaseRecord{ID: id, State: driver.LeaseLive, At: at, Expires: at.Add(time.Hour)})
	t.release(e)
}

// finish completes a lease.
func (t *leaseTable) finish(tb testing.TB, id weir.LeaseID, at time.Time) {
	tb.Helper()
	e, err := t.acquire(tb.Context(), id, t.clock(at), false)
	if err != nil || e == nil {
		tb.Fatalf("got %v, %v; want a lease", e, err)
	}
	e.end(leaseCompleted, at.UnixMilli())
	t.release(e)
}

// state returns the state in which the table has a lease; empty if it has none.
func (t *leaseTable) state(tb testing.TB, id weir.LeaseID, at time.Time) driver.LeaseState {
	tb.Helper()
	now := t.clock(at)
	e, err := t.acquire(tb.Context(), id, now, false)
	if err != nil {
		tb.Fatal(err)
	}
	if e == nil {
		return ""
	}
	defer t.release(e)
	return e.state.state()
}

func TestLeaseLife(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		size   int
		finish time.Duration // 0 means never
		ahead  time.Duration // of the time in the ID
		at     time.Duration
		want   driver.LeaseState
	}{
		{"live", 10, 0, 0, time.Hour - time.Millisecond, driver.LeaseLive},
		{"expired", 10, 0, 0, time.Hour, driver.LeaseExpired},
		{"expired, still known", 10, 0, 0, 70 * time.Minute, driver.LeaseExpired},
		{"expired, forgotten", 10, 0, 0, 70*time.Minute + time.Millisecond, ""},
		{"completed", 10, time.Second, 0, time.Second, driver.LeaseCompleted},
		{"completed, still known", 10, time.Second, 0, 10*time.Minute + time.Second, driver.LeaseCompleted},
		{"completed, forgotten", 10, time.Second, 0, 10*time.Minute + time.Second + time.Millisecond, ""},
		{"completed before its ID's time", 10, time.Second, time.Minute, 11 * time.Minute, driver.LeaseCompleted},
		{"and forgotten", 10, time.Second, time.Minute, 11*time.Minute + time.Millisecond, ""},
		{"many segments", 1_000_000, time.Second, 0, 10*time.Minute + time.Second, driver.LeaseCompleted},
		{"many segments, forgotten", 1_000_000, time.Second, 0, 10*time.Minute + 1001*time.Millisecond, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			table := tableOf(tt.size)
			id := weir.NewLeaseID(leaseStart.Add(tt.ahead))
			table.live(t, id, leaseStart)
			if tt.finish > 0 {
				table.finish(t, id, leaseStart.Add(tt.finish))
			}
			if got := table.state(t, id, leaseStart.Add(tt.at)); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			// A forgotten ID is refused, so that it cannot be charged again.
			if tt.want == "" {
				if err := table.checkID(id, table.clock(leaseStart.Add(tt.at)), &table.callers.own); err == nil {
					t.Error("a forgotten ID is taken again")
				}
			}
		})
	}
}

func TestFullMemoryForgetsTheOldestAndMovesTheHorizon(t *testing.T) {
	t.Parallel()
	table := tableOf(3)
	at := leaseStart
	var ids []weir.LeaseID
	for range 5 {
		at = at.Add(time.Second)
		ids = append(ids, weir.NewLeaseID(at))
		table.live(t, ids[len(ids)-1], at)
		table.finish(t, ids[len(ids)-1], at)
	}
	for i, id := range ids {
		known := table.state(t, id, at) == driver.LeaseCompleted
		refused := table.checkID(id, table.clock(at), &table.callers.own) != nil
		if wantKnown := i >= 2; known != wantKnown || refused == wantKnown {
			t.Errorf("lease %d: got known %v, refused %v; want known %v", i, known, refused, wantKnown)
		}
	}
}

func TestHorizon(t *testing.T) {
	t.Parallel()
	later := leaseStart.Add(time.Hour)
	for _, tt := range []struct {
		name string
		id   time.Time
		now  time.Time
		ok   bool
	}{
		{"now", later, later, true},
		{"the lease memory ago", later.Add(-10 * time.Minute), later, true},
		{"older", later.Add(-10*time.Minute - time.Millisecond), later, false},
		{"a minute ahead", later.Add(time.Minute), later, true},
		{"more than a minute ahead", later.Add(time.Minute + time.Millisecond), later, false},
		{"the table's opening", leaseStart, leaseStart.Add(time.Second), true},
		{"before the table was opened", leaseStart.Add(-time.Millisecond), leaseStart.Add(time.Second), false},
	} {
		table := tableOf(10)
		err := table.checkID(weir.NewLeaseID(tt.id), table.clock(tt.now), &table.callers.own)
		if (err == nil) != tt.ok {
			t.Errorf("%s: got %v, want ok %v", tt.name, err, tt.ok)
		}
		if e, isErr := errors.AsType[*weir.Error](err); isErr && (e.Code != weir.Invalid || e.Field != "lease_id") {
			t.Errorf("%s: got %v, want invalid lease_id", tt.name, err)
		}
	}
}

func TestLeaseClock(t *testing.T) {
	t.Parallel()
	table := tableOf(10)
	for _, tt := range []struct{ bring, want time.Duration }{
		{time.Hour, time.Hour},
		{time.Hour - 5*time.Second, time.Hour},
		{time.Hour - time.Minute, time.Hour},
		{time.Hour + time.Second, time.Hour + time.Second},
		// A step back of more than a minute corrects a clock that was ahead.
		{time.Minute, time.Minute},
	} {
		got := time.Duration(table.clock(leaseStart.Add(tt.bring))-leaseStart.UnixMilli()) * time.Millisecond
		if got != tt.want {
			t.Errorf("brought %v: got %v, want %v", tt.bring, got, tt.want)
		}
	}
}

func TestTwoCallsWithOneLeaseWaitForOneAnother(t *testing.T) {
	t.Parallel()
	table := tableOf(10)
	id := weir.NewLeaseID(leaseStart)
	table.live(t, id, leaseStart)
	var inside, most, turns atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 500 {
				e, err := table.acquire(t.Context(), id, leaseStart.UnixMilli(), false)
				if err != nil || e == nil {
					t.Errorf("got %v, %v", e, err)
					return
				}
				most.Store(max(most.Load(), inside.Add(1)))
				turns.Add(1)
				inside.Add(-1)
				table.release(e)
			}
		})
	}
	all.Wait()
	if most.Load() != 1 || turns.Load() != 4000 {
		t.Errorf("got %d at once in %d turns, want 1 in 4000", most.Load(), turns.Load())
	}
}

func TestWaitingForALeaseEndsWithTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table := tableOf(10)
		id := weir.NewLeaseID(leaseStart)
		e, err := table.acquire(t.Context(), id, leaseStart.UnixMilli(), true)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := table.acquire(ctx, id, leaseStart.UnixMilli(), true); !errors.Is(err, weir.Unavailable) ||
			!errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want unavailable after the deadline", err)
		}
		table.release(e)
		if n := table.segment(id).index.len; n != 0 {
			t.Errorf("got %d entries, want none: nothing was reserved", n)
		}
	})
}

// Leases are removed once they need not be remembered, whether they were settled or have expired,
// as long as some calls a second sweep the table.
func TestLeaseTableShrinks(t *testing.T) {
	t.Parallel()
	const leases = 100_000
	table := tableOf(1_000_000)
	for i := range leases {
		id := weir.NewLeaseID(leaseStart)
		table.live(t, id, leaseStart)
		if i%2 == 0 {
			table.finish(t, id, leaseStart)
		}
	}
	at := leaseStart.Add(time.Hour)
	for range 600 * 10 { // the lease memory
		at = at.Add(100 * time.Millisecond)
		table.state(t, weir.NewLeaseID(at), at)
	}
	for range 1000 { // ten more seconds, for those that expired all at once
		at = at.Add(10 * time.Millisecond)
		table.state(t, weir.NewLeaseID(at), at)
	}
	left, peak := 0, 0
	for i := range table.segments {
		left += table.segments[i].index.len
		for _, c := range table.segments[i].index.chunks {
			peak += c.places.len
		}
	}
	if left > leases/100 || peak > leases/10 {
		t.Errorf("got %d leases left and maps for %d, want almost none", left, peak)
	}
	t.Logf("%d of %d leases left after the lease memory", left, leases)
}
