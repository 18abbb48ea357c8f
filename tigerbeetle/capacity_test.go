//go:build cgo

package tigerbeetle

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/soak"
	"github.com/weir-limiter/weir/limiter"
)

// only returns definitions with one of the four limits.
func only(limit string, capacity int64) *weir.Definitions {
	d := fourLimits(capacity)
	for i, l := range d.System {
		if l.Name == limit {
			return &weir.Definitions{System: d.System[i : i+1]}
		}
	}
	return nil
}

// reload puts definitions in force on servers, one after another.
func (c *cluster) reload(d *weir.Definitions, servers ...*member) {
	c.t.Helper()
	for _, m := range servers {
		if err := m.store.WriteConfig(c.t.Context(), c.clock.now(), d); err != nil {
			c.t.Fatal(err)
		}
	}
}

// TestCapacityLoweredAndRaised changes a capacity from 20 to 10 and back twice, with fewer and with
// more units in use than the lower one, taken by leases that stay live and by leases that are
// completed. After each change either server admits exactly what the definition in force leaves.
func TestCapacityLoweredAndRaised(t *testing.T) {
	t.Parallel()
	for _, limit := range []string{"b", "m", "s", "w"} {
		for _, used := range []int64{4, 10, 16} {
			for _, open := range []bool{true, false} {
				c := newCluster(t, 0)
				a, b := c.open(only(limit, 20), 0), c.open(only(limit, 20), 0)
				lease, err := a.Reserve(t.Context(), unit(limit, used))
				if err != nil {
					t.Fatal(err)
				}
				if !open {
					if limit == "s" { // its slots would return
						continue
					}
					if _, err := lease.Complete(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				// A bucket's balance is trimmed to a lower capacity, and does not rise with a
				// higher one until it refills.
				left := 20 - used
				for i, capacity := range []int64{10, 20, 10, 20} {
					c.pass(time.Second)
					c.reload(only(limit, capacity), []*member{a, b}[i%2], []*member{b, a}[i%2])
					want := max(capacity-used, 0)
					if limit == "b" {
						left = min(left, capacity)
						want = left
					}
					if got := c.room(b, limit, want); got != want {
						t.Errorf("%s, %d used, open %t: step %d: admitted %d, want %d",
							limit, used, open, i, got, want)
					}
				}
				if _, err := lease.Cancel(t.Context()); open && err != nil {
					t.Errorf("%s, %d used: %v", limit, used, err)
				}
			}
		}
	}
}

// room checks that exactly want units of a limit are admitted, and gives them back.
func (c *cluster) room(m *member, limit string, want int64) int64 {
	c.t.Helper()
	_, err := m.Reserve(c.t.Context(), unit(limit, want+1))
	if err == nil {
		c.t.Errorf("%s: one more than %d was admitted", limit, want)
		return want + 1
	}
	if !denied(err) && !errors.Is(err, weir.NeverSatisfiable) {
		c.t.Errorf("%s: %v", limit, err)
	}
	if want == 0 {
		return 0
	}
	lease, err := m.Reserve(c.t.Context(), unit(limit, want))
	if err != nil {
		c.t.Errorf("%s: %d: %v", limit, want, err)
		return 0
	}
	if _, err := lease.Cancel(c.t.Context()); err != nil {
		c.t.Error(err)
	}
	return want
}

// TestCapacityChangeNotNoticed checks that a server that was idle while a capacity was lowered and
// raised again, or that has not noticed yet that it was lowered, admits no more of a slow bucket
// than either definition leaves.
func TestCapacityChangeNotNoticed(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 0)
	a, b := c.open(only("b", 20), 0), c.open(only("b", 20), 0)
	if got := c.admits(a, "b", 1); got != 1 {
		t.Fatal(got)
	}
	c.pass(time.Second)
	c.reload(only("b", 10), b)
	if got := c.admits(b, "b", 30); got != 10 {
		t.Errorf("admitted %d of the lowered capacity, want 10", got)
	}
	c.pass(time.Second)
	c.reload(only("b", 20), b, a)
	if got := c.admits(a, "b", 30); got != 0 {
		t.Errorf("admitted %d, want 0: a raised capacity leaves the bucket to fill", got)
	}

	c = newCluster(t, 0)
	a, b = c.open(only("b", 20), 0), c.open(only("b", 20), 0)
	if got := c.admits(a, "b", 15); got != 15 {
		t.Fatal(got)
	}
	c.pass(time.Second)
	c.reload(only("b", 10), b)
	if got := c.admits(b, "b", 1); got != 1 {
		t.Fatal(got)
	}
	c.pass(time.Millisecond)
	if got := c.admits(a, "b", 30); got != 4 { // before its next poll
		t.Errorf("admitted %d of the 4 that are left", got)
	}
}

// TestCapacityAtOnce has two servers put different definitions in force at the same time,
// repeatedly. One set is in force in the end; the other server reports that, and agrees after a
// reload.
func TestCapacityAtOnce(t *testing.T) {
	t.Parallel()
	for _, limit := range []string{"b", "m", "s", "w"} {
		c := newCluster(t, 0)
		servers := []*member{c.open(only(limit, 20), 0), c.open(only(limit, 20), 0)}
		for round := range 20 {
			var all sync.WaitGroup
			for i, m := range servers {
				all.Go(func() {
					d := only(limit, int64(10+10*((i+round)%2)))
					if err := m.store.WriteConfig(t.Context(), c.clock.now(), d); err != nil {
						t.Errorf("%s: %v", limit, err)
					}
				})
			}
			all.Wait()
			ready := -1
			for i, m := range servers {
				if m.store.Ready(t.Context()) == nil {
					if ready >= 0 {
						t.Errorf("%s: both are ready, with different definitions", limit)
					}
					ready = i
				}
			}
			if ready < 0 {
				t.Fatalf("%s: neither is ready", limit)
			}
			capacity := int64(10 + 10*((ready+round)%2))
			c.reload(only(limit, capacity), servers[1-ready])
			for i, m := range servers {
				if err := m.store.Ready(t.Context()); err != nil {
					t.Errorf("%s: server %d after the reload: %v", limit, i, err)
				}
			}
			c.pass(11 * 24 * time.Hour) // until the bucket is full again and everything used has returned
			for _, m := range servers {
				if got := c.room(m, limit, capacity); got != capacity {
					t.Errorf("%s, round %d: admitted %d, want %d", limit, round, got, capacity)
				}
			}
		}
	}
}

// load is callers on two servers that take units and give them back.
type load struct {
	*cluster

	servers                                  []*member
	limit                                    string
	inUse, most, admitted, refused, notReady atomic.Int64
	stop                                     atomic.Bool
}

// call takes one unit at a time and holds up to three.
func (l *load) call(m *member) {
	var held []*weir.Lease
	for !l.stop.Load() {
		l.pass(time.Millisecond)
		lease, err := m.Reserve(l.t.Context(), unit(l.limit, 1))
		switch {
		case err == nil:
			l.admitted.Add(1)
			n := l.inUse.Add(1)
			for most := l.most.Load(); n > most && !l.most.CompareAndSwap(most, n); {
				most = l.most.Load()
			}
			held = append(held, lease)
		case denied(err):
			l.refused.Add(1)
		case errors.Is(err, weir.Unavailable):
			l.notReady.Add(1)
		default:
			l.t.Errorf("%s: %v", l.limit, err)
		}
		if len(held) > 2 || err != nil && len(held) > 0 {
			l.give(held[0])
			held = held[1:]
		}
	}
	for _, lease := range held {
		l.give(lease)
	}
}

func (l *load) give(lease *weir.Lease) {
	l.inUse.Add(-1) // before the unit is free, so that the count is never above what is held
	if _, err := lease.Cancel(l.t.Context()); err != nil {
		l.t.Errorf("%s: %v", l.limit, err)
	}
}

// TestCapacityUnderLoad has two servers change a capacity between 20 and 10 while callers on both
// take units and give them back. No more units than the higher capacity are ever in use, and after
// each change something is admitted.
func TestCapacityUnderLoad(t *testing.T) {
	t.Parallel()
	for _, limit := range []string{"b", "m", "s", "w"} {
		c := newCluster(t, 0)
		l := &load{cluster: c, limit: limit, servers: []*member{
			c.open(only(limit, 20), 0), c.open(only(limit, 20), 0),
		}}
		var callers sync.WaitGroup
		for _, m := range l.servers { // on a busy machine a call must not become unavailable
			patient, err := limiter.New(m.store, &limiter.Options{
				Now: c.clock.now, CacheTTL: -1, StoreTimeout: time.Minute,
			})
			if err != nil {
				t.Fatal(err)
			}
			m.Limiter = patient
		}
		for i := range 8 {
			callers.Go(func() { l.call(l.servers[i%2]) })
		}
		for i := range soak.Amount(6, 200) {
			c.reload(only(limit, int64(10+10*(i%2))), l.servers[i%2], l.servers[1-i%2])
			before := l.admitted.Load()
			for begun := time.Now(); l.admitted.Load() < before+20; runtime.Gosched() {
				if time.Since(begun) > 20*time.Second {
					t.Fatalf("%s: %d admitted after change %d", limit, l.admitted.Load()-before, i)
				}
			}
		}
		for l.most.Load() < 5 { // without a bound: a cluster that denies everything fails by the test's timeout
			runtime.Gosched()
		}
		l.stop.Store(true)
		callers.Wait()
		t.Logf("%s: %d admitted, %d denied, %d not ready, at most %d in use at once",
			limit, l.admitted.Load(), l.refused.Load(), l.notReady.Load(), l.most.Load())
		if l.most.Load() > 20 {
			t.Errorf("%s: %d in use at once, of 20 and 10", limit, l.most.Load())
		}
		if limit != "b" { // a bucket refills by itself
			c.uses(l.servers[0], map[string]int64{limit: 0})
		}
		c.pass(31 * 24 * time.Hour)
		if got := c.room(l.servers[1], limit, 20); got != 20 {
			t.Errorf("%s: admitted %d at the end, want 20", limit, got)
		}
	}
}
