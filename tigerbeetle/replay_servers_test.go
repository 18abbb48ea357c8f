//go:build cgo

package tigerbeetle

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
)

// TestReplayAfterUpdate checks that a server that knows a lease only from an update answers a
// repeated reservation with its limits.
func TestReplayAfterUpdate(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 0)
	a, b := c.open(fourLimits(10), 0), c.open(fourLimits(10), 0)
	r := unit("w", 2)
	r.LeaseID = weir.NewLeaseID(c.clock.now())
	first, err := a.Reserve(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Extend(t.Context(), r.LeaseID); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		again, err := b.Reserve(t.Context(), r)
		if err != nil || !again.Replay {
			t.Fatalf("got %+v, %v; want a replay", again, err)
		}
		if !slices.Equal(again.Limits, first.Limits) {
			t.Errorf("got the limits %+v, want %+v", again.Limits, first.Limits)
		}
	}
}

// TestReplayExtendedElsewhere checks that a lease that one server extends stays live on all of
// them, even on a server whose own lease table says that it has expired.
func TestReplayExtendedElsewhere(t *testing.T) {
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
			c.pass(20 * time.Minute) // 70 minutes of an hour are over
			if seen {                // the first server has recorded that it expired
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

// TestReplayEndedElsewhere checks that a reservation is not answered again by a server that has not
// noticed that the lease has ended.
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

// TestReplayRemembered checks that a server that has just denied as much still answers for a lease
// that another server reserved.
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

// TestReplayPartlyNamed checks that an update that names some limits keeps, for the others, what
// another server has adjusted the lease to, and that the named totals count, even on a server that
// knows nothing else of the lease.
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

// TestReplayOnEveryServer repeats a reservation on all four kinds of an entity and its parent, on
// the server that took it, on another one, and on one that was started later: while the lease is
// live, after it was ended in every way, after it has expired, and after a denial. With other costs
// or limits the repeat is refused.
func TestReplayOnEveryServer(t *testing.T) {
	t.Parallel()
	type act func(t *testing.T, m *member, id weir.LeaseID)
	settle := func(do func(m *member, id weir.LeaseID) error) act {
		return func(t *testing.T, m *member, id weir.LeaseID) {
			t.Helper()
			if err := do(m, id); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, tc := range []struct {
		what   string
		before act
		passes time.Duration
		want   error // nil means a replay
		used   int64 // of each kind but slots
	}{
		{"live", nil, 0, nil, 3},
		{"adjusted", settle(func(m *member, id weir.LeaseID) error {
			return last(m.Adjust(t.Context(), id, 1, []weir.Costs{{"b": 5, "m": 5, "w": 5}}))
		}), 0, nil, 5},
		{"completed", settle(func(m *member, id weir.LeaseID) error {
			return last(m.Complete(t.Context(), id, []weir.Costs{{"b": 4, "m": 4, "w": 4}}))
		}), 0, weir.Ended, 4},
		{"cancelled", settle(func(m *member, id weir.LeaseID) error {
			return last(m.Cancel(t.Context(), id))
		}), 0, weir.Ended, 0},
		{"expired", nil, 61 * time.Minute, weir.Ended, 3},
		{"extended", settle(func(m *member, id weir.LeaseID) error {
			return last(m.Extend(t.Context(), id))
		}), 59 * time.Minute, nil, 3},
	} {
		t.Run(tc.what, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, 0)
			d := limitsOfAllKinds(10, false)
			d.System[2].Timeout, d.System[3].Window = time.Hour, 3*time.Hour
			a, b := c.open(d, 0), c.open(d, 0)
			r := &weir.Request{
				LeaseID: weir.NewLeaseID(c.clock.now()), Entity: "e", Resource: "r",
				Costs:  weir.Costs{"b": 3, "m": 3, "s": 3, "w": 3},
				Limits: []weir.Limit{{Name: "w", Kind: weir.Window, Capacity: 8, Window: 3 * time.Hour}},
			}
			if l, err := a.Reserve(t.Context(), r); err != nil || l.Replay {
				t.Fatalf("%+v, %v", l, err)
			}
			if tc.before != nil {
				tc.before(t, b, r.LeaseID)
			}
			c.pass(tc.passes)
			for i, m := range []*member{a, b, c.open(d, 0), a, b} {
				c.repeats(m, r, tc.want)
				for _, entity := range []string{"e", "f"} {
					c.usesOf(m, entity, map[string]int64{"b": tc.used, "m": tc.used, "w": tc.used})
				}
				if t.Failed() {
					t.Fatalf("at call %d", i)
				}
			}
		})
	}
}

// repeats repeats a reservation, and tries other requests under its ID.
func (c *cluster) repeats(m *member, r *weir.Request, want error) {
	c.t.Helper()
	l, err := m.Reserve(c.t.Context(), r)
	if !errors.Is(err, want) || err == nil && !l.Replay {
		c.t.Errorf("got %+v, %v, want %v", l, err, want)
	}
	if want == nil {
		want = weir.Conflict
	}
	dearer, wider := *r, *r
	dearer.Costs = weir.Costs{"b": 3, "m": 3, "s": 3, "w": 4}
	wider.Limits = nil
	for _, other := range []*weir.Request{&dearer, &wider} {
		if _, err := m.Reserve(c.t.Context(), other); !errors.Is(err, want) {
			c.t.Errorf("with other content: got %v, want %v", err, want)
		}
	}
}

// TestReplayAtOnce checks that a lease that another server reserved in this very millisecond is not
// denied from memory: it may be what occupies the limit.
func TestReplayAtOnce(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 0)
	a, b := c.open(fourLimits(20), 0), c.open(fourLimits(20), 0)
	r := unit("s", 20)
	r.LeaseID = weir.NewLeaseID(c.clock.now())
	if _, err := a.Reserve(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Reserve(t.Context(), unit("s", 20)); !denied(err) {
		t.Fatalf("another lease: got %v, want denied", err)
	}
	if lease, err := b.Reserve(t.Context(), r); err != nil || !lease.Replay {
		t.Errorf("the same lease: got %v, want the same answer", err)
	}
}
