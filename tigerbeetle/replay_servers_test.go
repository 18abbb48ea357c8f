//go:build cgo

package tigerbeetle

import (
	"errors"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
)

// TestReplayRenewed: a lease that one server extends lives on for all of them, also for one whose
// own table says that its time is over.
func TestReplayRenewed(t *testing.T) {
	t.Parallel()
	settle := map[string]func(m *member, r *weir.Request) error{
		"reserve": func(m *member, r *weir.Request) error {
			l, err := m.Reserve(t.Context(), r)
			if err == nil && !l.Replay {
				t.Error("reserve: not a replay")
			}
			return err
		},
		"adjust": func(m *member, r *weir.Request) error {
			return last(m.Adjust(t.Context(), r.LeaseID, 1, []weir.Costs{{"w": 3}}))
		},
		"complete": func(m *member, r *weir.Request) error {
			return last(m.Complete(t.Context(), r.LeaseID, []weir.Costs{{"w": 3}}))
		},
		"cancel": func(m *member, r *weir.Request) error { return last(m.Cancel(t.Context(), r.LeaseID)) },
		"extend": func(m *member, r *weir.Request) error { return last(m.Extend(t.Context(), r.LeaseID)) },
	}
	for verb, do := range settle {
		for _, seen := range []bool{false, true} {
			c := newCluster(t, 0)
			a, b := c.open(fourLimits(10), 0), c.open(fourLimits(10), 0)
			r := unit("w", 2)
			r.LeaseID = weir.NewLeaseID(c.clock.now())
			if _, err := a.Reserve(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			c.pass(50 * time.Minute)
			if _, err := b.Extend(t.Context(), r.LeaseID); err != nil {
				t.Fatal(err)
			}
			c.pass(20 * time.Minute) // of an hour, 70 minutes are over
			if seen {                // the first has noted that it expired
				if _, err := a.Reserve(t.Context(), unit("w", 1)); err != nil {
					t.Fatal(err)
				}
			}
			for i := range 2 {
				if err := do(a, r); err != nil {
					t.Errorf("%s, call %d: %v", verb, i, err)
				}
			}
			if verb == "complete" || verb == "cancel" {
				continue
			}
			if _, err := b.Complete(t.Context(), r.LeaseID, []weir.Costs{{"w": 1}}); err != nil {
				t.Errorf("%s, then complete on the other: %v", verb, err)
			}
			c.pass(61 * time.Minute)
			if _, err := a.Cancel(t.Context(), r.LeaseID); err == nil {
				t.Errorf("%s: a lease that was completed an hour ago was cancelled", verb)
			}
		}
	}
}

// TestReplayEndedElsewhere: a reservation is not answered again by a server that has not heard that
// the lease is over.
func TestReplayEndedElsewhere(t *testing.T) {
	t.Parallel()
	for _, verb := range []weir.Verb{weir.VerbCancel, weir.VerbComplete} {
		for _, after := range []time.Duration{0, 20 * time.Minute} {
			c := newCluster(t, 0)
			a, b := c.open(fourLimits(10), 0), c.open(fourLimits(10), 0)
			r := unit("w", 2)
			r.LeaseID = weir.NewLeaseID(c.clock.now())
			for i, m := range []*member{a, b, a, b} {
				if l, err := m.Reserve(t.Context(), r); err != nil || l.Replay != (i > 0) {
					t.Fatalf("call %d: %+v, %v", i, l, err)
				}
			}
			var err error
			if verb == weir.VerbCancel {
				_, err = b.Cancel(t.Context(), r.LeaseID)
			} else {
				_, err = b.Complete(t.Context(), r.LeaseID, []weir.Costs{{"w": 1}})
			}
			if err != nil {
				t.Fatal(err)
			}
			c.pass(after)
			for _, m := range []*member{a, b, c.open(fourLimits(10), 0)} {
				_, err := m.Reserve(t.Context(), r)
				if !errors.Is(err, weir.Ended) && !errors.Is(err, weir.Invalid) {
					t.Errorf("%s %s ago: got %v, want %v", verb, after, err, weir.Ended)
				}
			}
		}
	}
}

// TestReplayRemembered: a server that has just denied as much answers a lease that another server
// took.
func TestReplayRemembered(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 0)
	a, b := c.open(fourLimits(10), 0), c.open(fourLimits(10), 0)
	r := unit("w", 10)
	r.LeaseID = weir.NewLeaseID(c.clock.now())
	c.pass(5 * time.Millisecond)
	if _, err := a.Reserve(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	for range 3 { // the second and third from memory
		if _, err := b.Reserve(t.Context(), unit("w", 10)); !denied(err) {
			t.Fatalf("got %v, want a denial", err)
		}
	}
	if b.store.Stats().Remembered != 2 {
		t.Fatalf("%d denials from memory, want 2", b.store.Stats().Remembered)
	}
	if l, err := b.Reserve(t.Context(), r); err != nil || !l.Replay {
		t.Errorf("repeated: %+v, %v", l, err)
	}
	other := unit("w", 9)
	other.LeaseID = r.LeaseID
	if _, err := c.open(fourLimits(10), 0).Reserve(t.Context(), other); !errors.Is(err, weir.Conflict) {
		t.Errorf("with other costs: got %v, want %v", err, weir.Conflict)
	}
}

// TestReplayPartlyNamed: a settlement that names some limits lets the lease stand, on the others,
// for what another server has adjusted it to; and what it names counts, also where nothing else is
// known.
func TestReplayPartlyNamed(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		actuals []weir.Costs
		want    map[string]int64
	}{
		{nil, map[string]int64{"b": 5, "m": 6, "w": 7}},
		{[]weir.Costs{{}}, map[string]int64{"b": 5, "m": 6, "w": 7}},
		{[]weir.Costs{{"w": 3}}, map[string]int64{"b": 5, "m": 6, "w": 3}},
		{[]weir.Costs{{"b": 2, "s": 1}}, map[string]int64{"b": 2, "m": 6, "w": 7}},
		{[]weir.Costs{{"b": 2, "m": 2, "w": 2}}, map[string]int64{"b": 2, "m": 2, "w": 2}},
	} {
		c := newCluster(t, 0)
		a, b := c.open(fourLimits(10), 0), c.open(fourLimits(10), 0)
		l, err := a.Reserve(t.Context(), &weir.Request{
			Entity: "e", Resource: "r", Costs: weir.Costs{"b": 2, "m": 2, "w": 2},
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Adjust(t.Context(), l.ID, 1, []weir.Costs{{"b": 5, "m": 6, "w": 7}}); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Complete(t.Context(), l.ID, tc.actuals); err != nil {
			t.Errorf("%v: %v", tc.actuals, err)
		}
		c.uses(b, tc.want)
	}
}
