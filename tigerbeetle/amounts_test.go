//go:build cgo

package tigerbeetle

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
)

// largest returns a limit of each kind with the largest capacity.
func largest() *weir.Definitions {
	d := fourLimits(math.MaxInt64)
	d.System[0].Capacity = math.MaxInt64 / 1000
	return d
}

// TestAmountsTakenAndReturned checks that units taken and given back many times are not counted as
// in use, and that servers started afterwards report the units in use.
func TestAmountsTakenAndReturned(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 0)
	a := c.open(largest(), 0)
	for _, l := range largest().System {
		r := unit(l.Name, l.Capacity)
		for range 5 { // the sum passes 2^64 twice
			lease, err := a.Reserve(t.Context(), r)
			if err != nil {
				t.Fatalf("%s: %v", l.Name, err)
			}
			b := c.open(largest(), 0)
			c.uses(b, map[string]int64{l.Name: l.Capacity})
			_, err = b.Reserve(t.Context(), unit(l.Name, 1))
			if e, ok := errors.AsType[*weir.DeniedError](err); !ok || e.Contended {
				t.Errorf("%s: one more: got %v, want a denial", l.Name, err)
			}
			if _, err := a.Cancel(t.Context(), lease.ID); err != nil {
				t.Fatalf("%s: %v", l.Name, err)
			}
			c.uses(c.open(largest(), 0), map[string]int64{l.Name: 0})
		}
	}
}

// TestAmountsRecovered checks that a server that never saw a lease recovers what it stands for,
// even if that is the largest amount.
func TestAmountsRecovered(t *testing.T) {
	t.Parallel()
	for _, l := range largest().System {
		if l.Kind == weir.Concurrency { // slots cannot grow
			continue
		}
		for _, to := range []int64{l.Capacity - 1, l.Capacity} {
			c := newCluster(t, 0)
			a := c.open(largest(), 0)
			lease, err := a.Reserve(t.Context(), unit(l.Name, 1))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := lease.Adjust(t.Context(), weir.Costs{l.Name: to}); err != nil {
				t.Fatal(err)
			}
			if _, err := c.open(largest(), 0).Cancel(t.Context(), lease.ID); err != nil {
				t.Errorf("%s of %d: %v", l.Name, to, err)
			}
			c.uses(a, map[string]int64{l.Name: 0})
		}
	}
}

// TestAmountsDebt checks that a debt of several servers that does not fit 64 bits denies requests
// and is never taken for credit.
func TestAmountsDebt(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 0)
	d := &weir.Definitions{System: []weir.Limit{bucketOf(20)}}
	servers := []*member{c.open(d, 0), c.open(d, 0)}
	var leases []*weir.Lease
	for _, m := range servers {
		l, err := m.Reserve(t.Context(), unit("b", 1))
		if err != nil {
			t.Fatal(err)
		}
		leases = append(leases, l)
	}
	for _, l := range leases {
		if _, err := l.Complete(t.Context(), weir.Costs{"b": math.MaxInt64 / 1000}); err != nil {
			t.Error(err)
		}
	}
	c.pass(time.Second)
	third := c.open(d, 0)
	statuses, err := third.Status(t.Context(), "e", "r")
	if err != nil || statuses[0].Available > -9e15 {
		t.Errorf("%+v, %v", statuses, err)
	}
	for _, m := range append(servers, third) {
		_, err := m.Reserve(t.Context(), unit("b", 1))
		if e, ok := errors.AsType[*weir.DeniedError](err); !ok || e.Contended || e.RetryAfter < time.Hour {
			t.Errorf("got %v, want a denial", err)
		}
	}
}

// TestAmountsAddedLate checks that units added to a lease after its window has ended are occupied
// for a full window from then on, even on a server that never saw the lease, and whatever the lease
// was reserved with.
func TestAmountsAddedLate(t *testing.T) {
	t.Parallel()
	for _, shadow := range []bool{false, true} {
		for _, began := range []int64{0, 3} {
			c := newCluster(t, 0)
			d := fourLimits(10)
			d.System = d.System[3:]
			d.System[0].Window, d.System[0].Shadow = time.Minute, shadow
			lease, err := c.open(d, 0).Reserve(t.Context(), unit("w", began))
			if err != nil {
				t.Fatal(err)
			}
			later := func(by time.Duration, totals, want int64) {
				t.Helper()
				c.pass(by)
				m := c.open(d, 0)
				if totals >= 0 {
					seq := int64(1) + c.clock.now().Unix()
					_, err := m.Adjust(t.Context(), lease.ID, seq, []weir.Costs{{"w": totals}})
					if err != nil {
						t.Errorf("to %d: %v", totals, err)
					}
				}
				c.uses(m, map[string]int64{"w": want})
			}
			later(30*time.Second, 5, 5)
			later(29*time.Second, -1, 5)
			later(2*time.Second, -1, 0)
			later(time.Second, 7, 2)
			later(50*time.Second, 6, 1)
			later(time.Second, 20, 15)
			later(11*time.Second, -1, 14)
			later(47*time.Second, -1, 14)
			later(3*time.Second, -1, 0)
		}
	}
}

// TestAmountsOfTwoCharges checks that two charges of a lease together stand for at most the largest
// amount.
func TestAmountsOfTwoCharges(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 0)
	for _, l := range largest().System {
		if l.Kind == weir.Concurrency {
			continue
		}
		a := c.open(largest(), 0)
		one := weir.Charge{Entity: "e", Resource: "r", Costs: weir.Costs{l.Name: 1}}
		lease, err := a.Reserve(t.Context(), &weir.Request{Charges: []weir.Charge{one, one}})
		if err != nil {
			t.Fatal(err)
		}
		of := func(n, m int64) []weir.Costs { return []weir.Costs{{l.Name: n}, {l.Name: m}} }
		most := l.Capacity
		for _, parts := range [][]weir.Costs{of(most, 1), of(most-1, 2), of(most, most)} {
			if _, err := lease.Adjust(t.Context(), parts...); !errors.Is(err, weir.Invalid) {
				t.Errorf("%s: %v: got %v, want %v", l.Name, parts, err, weir.Invalid)
			}
			c.uses(a, map[string]int64{l.Name: 2})
		}
		for _, parts := range [][]weir.Costs{of(most, 0), of(most-1, 1), of(0, most)} {
			if _, err := lease.Adjust(t.Context(), parts...); err != nil {
				t.Errorf("%s: %v: %v", l.Name, parts, err)
			}
			c.uses(a, map[string]int64{l.Name: l.Capacity})
		}
		if _, err := c.open(largest(), 0).Cancel(t.Context(), lease.ID); err != nil {
			t.Error(err)
		}
		c.uses(a, map[string]int64{l.Name: 0})
	}
}

// TestAmountsCalendars checks that a budget denies if the use in periods of several calendars does
// not fit 64 bits.
func TestAmountsCalendars(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 0)
	var last *member
	var leases []*weir.Lease
	for _, every := range []string{"hour", "day", "week", "month"} {
		m := weir.Limit{Name: "m", Kind: weir.Budget, Capacity: math.MaxInt64, Every: every}
		last = c.open(&weir.Definitions{System: []weir.Limit{m}}, 0)
		lease, err := last.Reserve(t.Context(), unit("m", 1))
		if err != nil {
			t.Fatalf("%s: %v", every, err)
		}
		leases = append(leases, lease)
	}
	for i, lease := range leases {
		if _, err := lease.Adjust(t.Context(), weir.Costs{"m": math.MaxInt64}); err != nil {
			t.Fatal(err)
		}
		if got := left(t, last.Limiter, "m"); got < 0 || got > math.MaxInt64-int64(len(leases)-i) {
			t.Errorf("%d calendars used up: %d available", i+1, got)
		}
	}
	if _, err := last.Reserve(t.Context(), unit("m", 1)); !denied(err) {
		t.Errorf("one more: got %v, want a denial", err)
	}
	for _, lease := range leases {
		if _, err := lease.Cancel(t.Context()); err != nil {
			t.Error(err)
		}
	}
	c.pass(2 * time.Second) // a denial is remembered for one second
	if _, err := last.Reserve(t.Context(), unit("m", math.MaxInt64)); err != nil {
		t.Errorf("after they were cancelled: %v", err)
	}
}
