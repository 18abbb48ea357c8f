package model_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance/model"
	"github.com/weir-limiter/weir/internal/soak"
	"github.com/weir-limiter/weir/limiter"
)

// cloneWorld has a limit of each kind, and leases for random calls.
type cloneWorld struct {
	*testing.T
	random *rand.Rand
	start  time.Time
	now    time.Time
	ids    []weir.LeaseID
}

func (c *cloneWorld) open() *model.Model {
	c.Helper()
	m, err := model.New(&weir.Definitions{System: []weir.Limit{
		{Name: "b", Kind: weir.Bucket, Capacity: 50, RefillAmount: 1, RefillPeriod: time.Second},
		{Name: "c", Kind: weir.Concurrency, Capacity: 20, Timeout: time.Minute},
		{Name: "u", Kind: weir.Budget, Capacity: 90, Every: "hour"},
		{Name: "w", Kind: weir.Window, Capacity: 60, Window: time.Minute},
	}}, model.Settings{Start: c.start, Options: limiter.Options{
		Now: func() time.Time { return c.now }, LeaseLifetime: 2 * time.Minute, LeaseMemory: time.Minute,
	}}, nil)
	if err != nil {
		c.Fatal(err)
	}
	return m
}

// cloneCall is a call about a lease at an instant. It returns the answer as text.
type cloneCall struct {
	at   time.Time
	id   weir.LeaseID
	make func(m *model.Model) string
}

// call returns a random call at the current instant.
func (c *cloneWorld) call() cloneCall {
	id, seq := c.ids[c.random.IntN(len(c.ids))], c.random.Int64N(5)+1
	costs := weir.Costs{}
	for _, name := range []string{"b", "c", "u", "w"} {
		if c.random.IntN(2) == 0 {
			costs[name] = c.random.Int64N(8)
		}
	}
	verb := c.random.IntN(9)
	return cloneCall{c.now, id, func(m *model.Model) string {
		var answer any
		var err error
		switch verb {
		case 0, 1, 2:
			var l *weir.Lease
			l, err = m.Reserve(c.Context(), &weir.Request{
				LeaseID: id, Entity: "e", Resource: "r", Costs: costs,
			})
			if err == nil {
				answer = []any{l.ID, l.Expires, l.HoldsUntil, l.Limits}
			}
		case 3:
			answer, err = m.Adjust(c.Context(), id, seq, []weir.Costs{costs})
		case 4:
			answer, err = m.Complete(c.Context(), id, []weir.Costs{costs})
		case 5, 6, 7:
			answer, err = m.Cancel(c.Context(), id)
		default:
			answer, err = m.Extend(c.Context(), id)
		}
		if e, ok := errors.AsType[*weir.Error](err); ok {
			return string(e.Code) // it is not specified which of several wrong names is reported
		}
		return fmt.Sprintf("%v %+v", err, answer)
	}}
}

// replay opens a model, makes calls on it, and returns it with the last answer.
func (c *cloneWorld) replay(calls []cloneCall) (m *model.Model, answer string) {
	c.Helper()
	m = c.open()
	for _, call := range calls {
		c.now = call.at
		answer = call.make(m)
	}
	return m, answer
}

// TestCloneFor checks that a clone answers a call as a model does on which all calls were made,
// whether or not another clone of the same model was called before, at an earlier or a later
// instant.
func TestCloneFor(t *testing.T) {
	t.Parallel()
	for seed := range uint64(soak.Amount(12, 100)) {
		c := &cloneWorld{T: t, random: rand.New(rand.NewPCG(seed, 1)), start: time.Unix(1_800_000_000, 0)}
		c.now = c.start
		for range 8 {
			c.ids = append(c.ids, weir.NewLeaseID(c.now))
		}
		m, calls := c.open(), []cloneCall(nil)
		for range 30 {
			var clones, same [3]*model.Model
			var made [3]cloneCall
			c.ids[c.random.IntN(len(c.ids))] = weir.NewLeaseID(c.now)
			last := c.now
			for i := range clones {
				c.now = last.Add(time.Duration(c.random.IntN(c.random.IntN(60_000)+1)) * time.Millisecond)
				made[i] = c.call()
				clones[i] = m.CloneFor(made[i].id)
				got := made[i].make(clones[i])
				var want string
				same[i], want = c.replay(append(calls[:len(calls):len(calls)], made[i]))
				if got != want {
					t.Fatalf("seed %d, call %d: got the answer\n%s\nwant\n%s", seed, len(calls), got, want)
				}
			}
			for i := range clones {
				if !clones[i].SameNow(same[i]) {
					t.Fatalf("seed %d, call %d: SameNow: got false after the same calls", seed, len(calls))
				}
			}
			i := c.random.IntN(len(clones))
			m, calls, c.now = clones[i], append(calls, made[i]), made[i].at
		}
	}
}

// TestSameNow checks that models are the same if calls at one instant cannot distinguish them, in
// whatever order of calls they were made.
func TestSameNow(t *testing.T) {
	t.Parallel()
	c := &cloneWorld{T: t, start: time.Unix(1_800_000_000, 0)}
	c.now = c.start
	c.ids = []weir.LeaseID{weir.NewLeaseID(c.now), weir.NewLeaseID(c.now)}
	reserve := func(i int, n int64) func(*model.Model) {
		return func(m *model.Model) {
			_, err := m.Reserve(t.Context(), &weir.Request{
				LeaseID: c.ids[i], Entity: "e", Resource: "r", Costs: weir.Costs{"w": n, "b": n},
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	adjust := func(i int, seq, n int64) func(*model.Model) {
		return func(m *model.Model) {
			if _, err := m.Adjust(t.Context(), c.ids[i], seq, []weir.Costs{{"w": n}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	complete := func(i int, n int64) func(*model.Model) {
		return func(m *model.Model) {
			if _, err := m.Complete(t.Context(), c.ids[i], []weir.Costs{{"w": n}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	cancel := func(i int) func(*model.Model) {
		return func(m *model.Model) {
			_, _ = m.Cancel(t.Context(), c.ids[i]) // an unknown lease is an error
		}
	}
	type calls []func(*model.Model)
	for _, x := range []struct {
		name string
		a, b calls
		want bool
	}{
		{"the order of two reservations", calls{reserve(0, 1), reserve(1, 2)}, calls{reserve(1, 2), reserve(0, 1)}, true},
		{"the order of two settlements", calls{reserve(0, 1), reserve(1, 1), cancel(0), complete(1, 2)},
			calls{reserve(1, 1), complete(1, 2), reserve(0, 1), cancel(0)}, true},
		{"pieces of a window", calls{reserve(0, 3), adjust(0, 1, 3)}, calls{reserve(0, 3), adjust(0, 1, 3)}, true},
		{"units in use", calls{reserve(0, 1)}, calls{reserve(0, 2)}, false},
		{"callers with a reservation", calls{reserve(0, 1)}, calls{reserve(1, 1)}, false},
		{"what two leases stand for", calls{reserve(0, 1), reserve(1, 2)}, calls{reserve(0, 2), reserve(1, 1)}, false},
		{"what a lease stands for", calls{reserve(0, 1), reserve(1, 2), adjust(0, 1, 2)},
			calls{reserve(0, 1), reserve(1, 2), adjust(0, 1, 1), adjust(1, 1, 3)}, false},
		{"the sequence number", calls{reserve(0, 1), adjust(0, 1, 1)}, calls{reserve(0, 1), adjust(0, 2, 1)}, false},
		{"how a lease ended", calls{reserve(0, 0), complete(0, 0)}, calls{reserve(0, 0), cancel(0)}, false},
		{"the actuals", calls{reserve(0, 1), reserve(1, 2), complete(0, 1), complete(1, 2)},
			calls{reserve(0, 1), reserve(1, 2), complete(0, 2), complete(1, 1)}, false},
		{"a voided ID", calls{reserve(0, 1), cancel(1)}, calls{reserve(0, 1)}, false},
	} {
		a, b := c.open(), c.open()
		for _, do := range x.a {
			do(a)
		}
		for _, do := range x.b {
			do(b)
		}
		if got := a.SameNow(b); got != x.want || b.SameNow(a) != got || !a.SameNow(a) {
			t.Errorf("%s: got %v, want %v", x.name, got, x.want)
		}
	}
}
