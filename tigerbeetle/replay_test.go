//go:build cgo

package tigerbeetle

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
)

// TestReplayAfterDenials checks that a lease that was denied any number of times, by several
// servers, is admitted once there is room, and that its ID is then a replay or a conflict.
func TestReplayAfterDenials(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 0)
	servers := []*member{c.open(fourLimits(10), 0), c.open(fourLimits(10), 0)}
	blocker, err := servers[0].Reserve(t.Context(), unit("w", 10))
	if err != nil {
		t.Fatal(err)
	}
	r := unit("w", 1)
	r.Costs["m"] = 1
	r.LeaseID = weir.NewLeaseID(c.clock.now())
	for i := range 60 {
		if _, err := servers[i%2].Reserve(t.Context(), r); !denied(err) {
			t.Fatalf("attempt %d: %v", i, err)
		}
		c.pass(1100 * time.Millisecond) // until the denial is forgotten
	}
	if _, err := servers[1].Cancel(t.Context(), blocker.ID); err != nil {
		t.Fatal(err)
	}
	c.pass(1100 * time.Millisecond)
	for i := range 4 {
		l, err := servers[i%2].Reserve(t.Context(), r)
		if err != nil || l.Replay != (i > 0) {
			t.Fatalf("once there is room, call %d: %+v, %v", i, l, err)
		}
	}
	for i, costs := range []weir.Costs{{"w": 2, "m": 1}, {"w": 1}} {
		other := *r
		other.Costs = costs
		for _, m := range append(servers, c.open(fourLimits(10), 0)) {
			if _, err := m.Reserve(t.Context(), &other); !errors.Is(err, weir.Conflict) {
				t.Errorf("other costs %d: %v", i, err)
			}
		}
	}
	third := c.open(fourLimits(10), 0)
	if _, err := third.Complete(t.Context(), r.LeaseID, []weir.Costs{{"w": 3, "m": 3}}); err != nil {
		t.Errorf("complete after many attempts: %v", err)
	}
	c.uses(third, map[string]int64{"w": 3, "m": 3})
}

// uses compares the units in use with those wanted.
func (c *cluster) uses(m *member, want map[string]int64) {
	c.t.Helper()
	c.usesOf(m, "e", want)
}

func (c *cluster) usesOf(m *member, entity string, want map[string]int64) {
	c.t.Helper()
	statuses, err := m.Status(c.t.Context(), entity, "r")
	if err != nil {
		c.t.Fatal(err)
	}
	for _, s := range statuses {
		if n, ok := want[s.Limit]; ok && s.Capacity-s.Available != n {
			c.t.Errorf("%s: %d in use, want %d", s.Limit, s.Capacity-s.Available, n)
		}
	}
}

// TestReplayLost checks that a call whose answer was lost counts once, on whichever server it is
// repeated.
func TestReplayLost(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		verb string
		want map[string]int64
		do   func(m *member, id weir.LeaseID) error
	}{
		{"reserve", map[string]int64{"b": 4, "m": 4, "s": 1, "w": 4}, nil},
		{"adjust", map[string]int64{"b": 7, "m": 2, "s": 1, "w": 7}, func(m *member, id weir.LeaseID) error {
			_, err := m.Adjust(t.Context(), id, 1, []weir.Costs{{"b": 7, "m": 2, "w": 7}})
			return err
		}},
		{"complete", map[string]int64{"b": 9, "m": 9, "s": 0, "w": 1}, func(m *member, id weir.LeaseID) error {
			_, err := m.Complete(t.Context(), id, []weir.Costs{{"b": 9, "m": 9, "w": 1}})
			return err
		}},
		{"cancel", map[string]int64{"b": 0, "m": 0, "s": 0, "w": 0}, func(m *member, id weir.LeaseID) error {
			_, err := m.Cancel(t.Context(), id)
			return err
		}},
		{"extend", map[string]int64{"b": 4, "m": 4, "s": 1, "w": 4}, func(m *member, id weir.LeaseID) error {
			_, err := m.Extend(t.Context(), id)
			return err
		}},
	} {
		for _, elsewhere := range []bool{false, true} {
			c := newCluster(t, 0)
			a, b := c.open(fourLimits(10), 0), c.open(fourLimits(10), 0)
			again := a
			if elsewhere {
				again = b
			}
			r := &weir.Request{
				LeaseID: weir.NewLeaseID(c.clock.now()), Entity: "e", Resource: "r",
				Costs: weir.Costs{"b": 4, "m": 4, "s": 1, "w": 4},
			}
			do := tc.do
			if do == nil {
				do = func(m *member, _ weir.LeaseID) error {
					_, err := m.Reserve(t.Context(), r)
					return err
				}
			} else if _, err := a.Reserve(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			a.net.lose.Store(true)
			if err := do(a, r.LeaseID); !errors.Is(err, weir.Unavailable) {
				t.Errorf("%s: with the answer lost: %v", tc.verb, err)
			}
			c.pass(3 * time.Millisecond)
			if err := do(again, r.LeaseID); err != nil {
				t.Errorf("%s, elsewhere %t: again: %v", tc.verb, elsewhere, err)
			}
			if err := do(a, r.LeaseID); err != nil {
				t.Errorf("%s, elsewhere %t: on the first once more: %v", tc.verb, elsewhere, err)
			}
			c.uses(b, tc.want)
		}
	}
}

// TestReplayRace checks that of two servers that complete one lease with different actuals one is
// refused.
func TestReplayRace(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 0)
	a, b := c.open(fourLimits(10), 0), c.open(fourLimits(10), 0)
	for range 20 {
		l, err := a.Reserve(t.Context(), &weir.Request{
			Entity: "e", Resource: "r", Costs: weir.Costs{"m": 1, "w": 1},
		})
		if err != nil {
			t.Fatal(err)
		}
		errs := make([]error, 2)
		var all sync.WaitGroup
		for i, m := range []*member{a, b} {
			all.Go(func() {
				n := int64(i) * 2 // actuals of zero, or of two
				_, errs[i] = m.Complete(t.Context(), l.ID, []weir.Costs{{"m": n, "w": n}})
			})
		}
		all.Wait()
		winner := 0
		if errs[0] != nil {
			winner = 1
		}
		if errs[winner] != nil || !errors.Is(errs[1-winner], weir.Conflict) {
			t.Fatalf("got %v", errs)
		}
		used := int64(winner) * 2
		c.uses(a, map[string]int64{"m": used, "w": used})
		if used > 0 { // what was used stays in use: start over
			break
		}
	}
}

// TestReplayMissedUpdates checks that a server that has missed updates of a lease settles what the
// lease stands for now.
func TestReplayMissedUpdates(t *testing.T) {
	t.Parallel()
	begin := func() (a, b *member, c *cluster, id weir.LeaseID) {
		c = newCluster(t, 0)
		a, b = c.open(fourLimits(10), 0), c.open(fourLimits(10), 0)
		l, err := a.Reserve(t.Context(), &weir.Request{
			Entity: "e", Resource: "r", Costs: weir.Costs{"b": 2, "m": 2, "w": 2},
		})
		if err != nil {
			t.Fatal(err)
		}
		return a, b, c, l.ID
	}
	all := func(n int64) []weir.Costs { return []weir.Costs{{"b": n, "m": n, "w": n}} }
	a, b, c, id := begin()
	if _, err := b.Adjust(t.Context(), id, 7, all(6)); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Adjust(t.Context(), id, 5, all(1)); err != nil {
		t.Errorf("an adjust with an earlier number: %v", err)
	}
	c.uses(b, map[string]int64{"b": 6, "m": 6, "w": 6})
	if _, err := a.Adjust(t.Context(), id, 8, all(3)); err != nil {
		t.Errorf("the next adjust: %v", err)
	}
	c.uses(b, map[string]int64{"b": 3, "m": 3, "w": 3})
	if _, err := b.Complete(t.Context(), id, all(4)); err != nil {
		t.Error(err)
	}
	c.uses(a, map[string]int64{"b": 4, "m": 4, "w": 4})
	for verb, err := range map[string]error{
		"adjust": last(a.Adjust(t.Context(), id, 9, all(1))), "extend": last(a.Extend(t.Context(), id)),
	} {
		if !errors.Is(err, weir.Ended) {
			t.Errorf("%s of a lease that another server completed: %v", verb, err)
		}
	}
	if _, err := a.Cancel(t.Context(), id); !errors.Is(err, weir.Conflict) {
		t.Errorf("cancel of a lease that another server completed: %v", err)
	}
	if _, err := a.Complete(t.Context(), id, all(4)); err != nil {
		t.Errorf("complete once more: %v", err)
	}
	c.uses(a, map[string]int64{"b": 4, "m": 4, "w": 4})
}

func last(_ *weir.Receipt, err error) error { return err }

// TestReplayUnnamed checks that limits that an update does not name keep what another server has
// adjusted them to, for each charge separately.
func TestReplayUnnamed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		what     string
		complete bool
		totals   []weir.Costs
		want     map[string]int64 // of b, m, s, w after the other server's 2, 3+4, 2, 6+1
	}{
		{"nothing", true, nil, map[string]int64{"b": 2, "m": 7, "s": 0, "w": 7}},
		{"nothing", false, nil, map[string]int64{"b": 2, "m": 7, "s": 2, "w": 7}},
		{"one", true, []weir.Costs{{"b": 5}, {}}, map[string]int64{"b": 5, "m": 7, "s": 0, "w": 7}},
		{"one", false, []weir.Costs{{"b": 1}, {}},
			map[string]int64{"b": 1, "m": 7, "s": 2, "w": 7}},
		{"of a charge", true, []weir.Costs{{"m": 9}, {"w": 0}},
			map[string]int64{"b": 2, "m": 13, "s": 0, "w": 6}},
		{"of a charge", false, []weir.Costs{{"w": 2, "s": 1}, {}},
			map[string]int64{"b": 2, "m": 7, "s": 1, "w": 3}},
	} {
		c := newCluster(t, 0)
		a, b := c.open(fourLimits(20), 0), c.open(fourLimits(20), 0)
		l, err := a.Reserve(t.Context(), &weir.Request{Charges: []weir.Charge{
			{Entity: "e", Resource: "r", Costs: weir.Costs{"b": 4, "m": 1, "s": 3, "w": 2}},
			{Entity: "e", Resource: "r", Costs: weir.Costs{"m": 1, "s": 0, "w": 3}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Adjust(t.Context(), l.ID, 1, []weir.Costs{
			{"b": 2, "m": 3, "s": 2, "w": 6}, {"m": 4, "w": 1},
		}); err != nil {
			t.Fatal(err)
		}
		if tt.complete {
			err = last(a.Complete(t.Context(), l.ID, tt.totals))
		} else {
			err = last(a.Adjust(t.Context(), l.ID, 2, tt.totals))
		}
		if err != nil {
			t.Errorf("%s named, complete %t: %v", tt.what, tt.complete, err)
		}
		c.uses(b, tt.want)
		if t.Failed() {
			t.Fatalf("%s named, complete %t", tt.what, tt.complete)
		}
	}
}

// TestReplayEarlierSequenceNumber checks that an adjust with an earlier sequence number changes
// nothing on a server that has learned of the later one by another call.
func TestReplayEarlierSequenceNumber(t *testing.T) {
	t.Parallel()
	for _, extends := range []int{1, 2} {
		c := newCluster(t, 0)
		d := fourLimits(10)
		a, b, third := c.open(d, 0), c.open(d, 0), c.open(d, 0)
		l, err := a.Reserve(t.Context(), unit("w", 1))
		if err != nil {
			t.Fatal(err)
		}
		adjust := func(m *member, seq, n int64) *weir.Receipt {
			t.Helper()
			r, err := m.Adjust(t.Context(), l.ID, seq, []weir.Costs{{"w": n}})
			if err != nil {
				t.Fatalf("adjust %d: %v", seq, err)
			}
			return r
		}
		adjust(third, 1, 2) // the third server knows the lease
		at := adjust(b, 9, 4).At
		for range extends {
			c.pass(time.Second)
			if _, err := third.Extend(t.Context(), l.ID); err != nil {
				t.Fatal(err)
			}
		}
		for _, seq := range []int64{5, 6, 9} {
			if got := adjust(third, seq, 7).At; !got.Equal(at) {
				t.Errorf("adjust %d after 9: applied at %s, want %s", seq, got, at)
			}
			c.uses(b, map[string]int64{"w": 4})
		}
		adjust(third, 10, 6)
		c.uses(b, map[string]int64{"w": 6})
	}
}

// TestReplayCannotRaiseSlots checks that an adjust cannot raise the slots of a charge above what it
// has now, whatever the other charges have.
func TestReplayCannotRaiseSlots(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 0)
	a, b := c.open(fourLimits(10), 0), c.open(fourLimits(10), 0)
	l, err := a.Reserve(t.Context(), &weir.Request{Charges: []weir.Charge{
		{Entity: "e", Resource: "r", Costs: weir.Costs{"s": 2}},
		{Entity: "e", Resource: "r", Costs: weir.Costs{"s": 2}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Adjust(t.Context(), l.ID, 1, []weir.Costs{{}, {"s": 0}}); err != nil {
		t.Fatal(err)
	}
	_, err = a.Adjust(t.Context(), l.ID, 2, []weir.Costs{{"s": 1}, {"s": 1}})
	if !errors.Is(err, weir.Invalid) {
		t.Errorf("got %v, want %v", err, weir.Invalid)
	}
	c.uses(b, map[string]int64{"s": 2})
}
