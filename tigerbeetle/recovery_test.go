//go:build cgo

package tigerbeetle

import (
	"errors"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance"
)

// recoverable returns definitions of all kinds, with a parent that is charged too.
func recoverable() *weir.Definitions {
	d := fourLimits(100)
	d.System[2].Timeout, d.System[3].Window = 2*time.Minute, time.Minute
	d.Entities = map[string]weir.EntityDefinition{"p": {}, "e": {Parent: "p", Cascade: true}}
	return d
}

// TestRecovery checks that a server that never saw a lease settles it as a single server would, by
// comparison with the model.
func TestRecovery(t *testing.T) {
	t.Parallel()
	settle := map[string]func(l weir.Service, id weir.LeaseID) error{
		"complete": func(l weir.Service, id weir.LeaseID) error {
			return last(l.Complete(t.Context(), id, []weir.Costs{{"b": 3, "w": 9}, {"m": 1}}))
		},
		"nothing named": func(l weir.Service, id weir.LeaseID) error {
			return last(l.Complete(t.Context(), id, nil))
		},
		"cancel": func(l weir.Service, id weir.LeaseID) error { return last(l.Cancel(t.Context(), id)) },
		"extend": func(l weir.Service, id weir.LeaseID) error { return last(l.Extend(t.Context(), id)) },
		"adjust": func(l weir.Service, id weir.LeaseID) error {
			return last(l.Adjust(t.Context(), id, 3, []weir.Costs{{"b": 20, "w": 1}, {"s": 1, "m": 30}}))
		},
	}
	for verb, do := range settle {
		for _, after := range []time.Duration{10 * time.Second, 90 * time.Second, 3 * time.Minute} {
			for _, entity := range []string{"e", "stranger"} {
				c := newCluster(t, 0)
				a := c.open(recoverable(), 0)
				only, err := conformance.OpenModel(conformance.Setup{
					Start: c.clock.now(), Definitions: recoverable(),
				}, nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				r := &weir.Request{LeaseID: weir.NewLeaseID(c.clock.now()), Charges: []weir.Charge{
					{Entity: entity, Resource: "r", Costs: weir.Costs{"b": 7, "w": 5}},
					{Entity: entity, Resource: "r2", Costs: weir.Costs{"m": 4, "s": 2}},
				}}
				for _, l := range []weir.Service{a.Limiter, only} {
					if _, err := l.Reserve(t.Context(), r); err != nil {
						t.Fatal(err)
					}
				}
				c.pass(after)
				only.Advance(after)
				b := c.open(recoverable(), 0)
				got, want := do(b.Limiter, r.LeaseID), do(only, r.LeaseID)
				if got != nil || want != nil {
					t.Errorf("%s after %s of %s: got %v, the model %v", verb, after, entity, got, want)
				}
				for _, resource := range []string{"r", "r2"} {
					c.same(b.Limiter, only, entity, resource)
					c.same(b.Limiter, only, "p", resource)
				}
				if c.t.Failed() {
					t.Fatalf("%s after %s of %s", verb, after, entity)
				}
				again, err := b.Reserve(t.Context(), r)
				if _, want := only.Reserve(t.Context(), r); errors.Is(want, weir.Ended) != errors.Is(err, weir.Ended) ||
					err == nil && !again.Replay {
					t.Errorf("%s: reserve again: %v, the model %v", verb, err, want)
				}
			}
		}
	}
}

// same compares a subject's statuses with the model's. Units that are taken again end up to a
// second late, which does not matter to any case here.
func (c *cluster) same(got, want weir.Service, entity, resource string) {
	c.t.Helper()
	is, err := got.Status(c.t.Context(), entity, resource)
	if err != nil {
		c.t.Fatal(err)
	}
	should, err := want.Status(c.t.Context(), entity, resource)
	if err != nil {
		c.t.Fatal(err)
	}
	for i := range should {
		if is[i].Available != should[i].Available {
			c.t.Errorf("%s/%s %s: %d available, the model has %d",
				entity, resource, should[i].Limit, is[i].Available, should[i].Available)
		}
	}
}

// TestRecoveryLong checks that a lease with more transfers than one answer holds is recovered
// completely.
func TestRecoveryLong(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 40)
	a := c.open(fourLimits(1000), 0)
	l, err := a.Reserve(t.Context(), unit("m", 1))
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(100) {
		if _, err := l.Adjust(t.Context(), weir.Costs{"m": 2 + i}); err != nil {
			t.Fatal(err)
		}
	}
	b := c.open(fourLimits(1000), 0)
	if _, err := b.Complete(t.Context(), l.ID, nil); err != nil {
		t.Fatal(err)
	}
	c.uses(b, map[string]int64{"m": 101})
}

// TestRecoveryOfBroughtLimits checks that limits that a request brought, whose names other servers
// do not know, are settled there.
func TestRecoveryOfBroughtLimits(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 0)
	none := &weir.Definitions{}
	a, b := c.open(none, 0), c.open(none, 0)
	r := unit("w", 5)
	r.Limits = []weir.Limit{{Name: "w", Kind: weir.Window, Capacity: 10, Window: time.Minute}}
	l, err := a.Reserve(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Cancel(t.Context(), l.ID); err != nil {
		t.Fatal(err)
	}
	r.LeaseID = weir.LeaseID{}
	r.Costs["w"] = 10
	if _, err := b.Reserve(t.Context(), r); err != nil {
		t.Errorf("after it was given back: %v", err)
	}
}

// TestRecoveryOfUnknownEntity checks that a lease of an entity that this server has never served is
// updated by the limits that it was reserved on, not by other limits of the same names.
func TestRecoveryOfUnknownEntity(t *testing.T) {
	t.Parallel()
	d := recoverable()
	d.Entities["x"] = weir.EntityDefinition{Limits: map[string][]weir.Limit{weir.DefaultResource: {
		{Name: "s", Kind: weir.Concurrency, Capacity: 10, Timeout: 3 * time.Hour},
		{Name: "w", Kind: weir.Window, Capacity: 100, Window: time.Hour},
	}}}
	for _, units := range []int64{5, 0} {
		c := newCluster(t, 0)
		a, b := c.open(d, 0), c.open(d, 0)
		l, err := a.Reserve(t.Context(), &weir.Request{
			Entity: "x", Resource: "r", Costs: weir.Costs{"s": 2, "w": units},
		})
		if err != nil {
			t.Fatal(err)
		}
		in := func(of *member, after time.Duration, slots, window int64) {
			t.Helper()
			c.pass(after)
			got, err := of.Status(t.Context(), "x", "r")
			if err != nil || got[0].Available != 10-slots || got[1].Available != 100-window {
				t.Errorf("%d units: got %+v, %v, want %d and %d less",
					units, got, err, slots, window)
			}
		}
		c.pass(30 * time.Minute)
		if _, err := b.Extend(t.Context(), l.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Adjust(t.Context(), l.ID, 1, []weir.Costs{{"w": 7}}); err != nil {
			t.Fatal(err)
		}
		in(a, 30*time.Minute-time.Second, 2, 7)
		in(b, 3*time.Second, 2, 0)
		if _, err := b.Adjust(t.Context(), l.ID, 2, []weir.Costs{{"w": 8}}); err != nil {
			t.Fatal(err)
		}
		in(a, time.Hour-time.Second, 2, 1)
		in(a, 3*time.Second, 2, 0)
		in(a, time.Hour+30*time.Minute-10*time.Second, 2, 0)
		in(a, 10*time.Second, 0, 0)
	}
}

// TestRecoveryEnds checks that units return at most a second late, however often servers take turns
// to shrink and grow a lease, and that units added after the end return in their own time.
func TestRecoveryEnds(t *testing.T) {
	t.Parallel()
	for _, turns := range [][]int64{
		{19, 18, 17, 16, 15, 14, 13}, {21, 9, 30, 5, 12, 4, 1}, {0, 3, 2, 4, 1, 8, 6},
	} {
		c := newCluster(t, 0)
		a, b := c.open(fourLimits(100), 0), c.open(fourLimits(100), 0)
		l, err := a.Reserve(t.Context(), unit("w", 20))
		if err != nil {
			t.Fatal(err)
		}
		adjust := func(i int, to int64) {
			t.Helper()
			m := []*member{a, b}[i%2]
			_, err := m.Adjust(t.Context(), l.ID, int64(i), []weir.Costs{{"w": to}})
			if err != nil {
				t.Fatal(err)
			}
		}
		var now int64
		for i, to := range turns {
			c.pass(300 * time.Millisecond)
			adjust(i+1, to)
			now = to
		}
		end := l.ReservedAt.Add(time.Hour)
		c.clock.to(end.Add(-time.Millisecond))
		c.uses(b, map[string]int64{"w": now})
		for _, m := range []*member{a, b} { // the lease has expired
			if _, err := m.Extend(t.Context(), l.ID); err != nil {
				t.Fatal(err)
			}
		}
		adjust(8, now+2) // added while the rest is held
		c.clock.to(end.Add(1000 * time.Millisecond))
		c.uses(b, map[string]int64{"w": 0})
		adjust(9, now+5) // three are added now
		c.pass(time.Minute)
		adjust(10, now+4)
		c.clock.to(end.Add(time.Hour + 999*time.Millisecond))
		c.uses(b, map[string]int64{"w": 2})
		c.pass(time.Second)
		c.uses(a, map[string]int64{"w": 0})
	}
}

// TestRecoveryExtended checks that a lease that another server has extended is live on the server
// that reserved it, even after its first hour, and has ended everywhere after its second.
func TestRecoveryExtended(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{70 * time.Minute, 91 * time.Minute} {
		c := newCluster(t, 0)
		a, b := c.open(fourLimits(10), 0), c.open(fourLimits(10), 0)
		r := unit("b", 4)
		r.LeaseID = weir.NewLeaseID(c.clock.now())
		if _, err := a.Reserve(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		c.pass(30 * time.Minute)
		if _, err := b.Extend(t.Context(), r.LeaseID); err != nil {
			t.Fatal(err)
		}
		c.pass(after - 30*time.Minute)
		want := error(nil)
		if after > 90*time.Minute {
			want = weir.Ended
		}
		again, err := a.Reserve(t.Context(), r)
		if !errors.Is(err, want) || err == nil && !again.Replay {
			t.Errorf("reserve after %s: %+v, %v, want a replay or %v", after, again, err, want)
		}
		for _, m := range []*member{a, b, a} { // the first server is asked again after it has learned of the end
			_, err := m.Adjust(t.Context(), r.LeaseID, 1, []weir.Costs{{"b": 3}})
			if !errors.Is(err, want) {
				t.Errorf("adjust after %s: %v, want %v", after, err, want)
			}
		}
		_, err = a.Complete(t.Context(), r.LeaseID, []weir.Costs{{"b": 1}})
		if !errors.Is(err, want) {
			t.Errorf("complete after %s: %v, want %v", after, err, want)
		}
		if _, err := a.Reserve(t.Context(), r); !errors.Is(err, weir.Ended) {
			t.Errorf("reserve again after %s: %v, want %v", after, err, weir.Ended)
		}
		used := int64(4)
		if want == nil {
			used = 1
		}
		c.uses(b, map[string]int64{"b": used})
	}
}

// TestRecoveryRecorded checks that another server knows of an adjust that moved no units and was
// only recorded.
func TestRecoveryRecorded(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 0)
	a, b := c.open(recoverable(), 0), c.open(recoverable(), 0)
	l, err := a.Reserve(t.Context(), unit("w", 5))
	if err != nil {
		t.Fatal(err)
	}
	c.pass(2 * time.Minute)
	for i, to := range []int64{1, 4} { // units that have returned, and then three more
		m := []*member{a, b}[i]
		_, err := m.Adjust(t.Context(), l.ID, int64(i+1), []weir.Costs{{"w": to}})
		if err != nil {
			t.Fatal(err)
		}
	}
	c.uses(a, map[string]int64{"w": 3})
}
