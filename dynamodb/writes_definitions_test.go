package dynamodb

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/dynamodb/internal/bucketitem"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
)

// writesDefinitions returns cases of limits that change while a request uses older ones.
func writesDefinitions() []mistakeCase {
	return []mistakeCase{
		{"definitions: an old read does not overwrite newer ones after a lost write", raiseUndoneDuringWrite},
		{"definitions: a reservation during a change has them from its next call", reservedWithinChange},
		{"definitions: set limits reach the item", setReaches(Options{})},
		{"definitions: set limits reach the item, without speculation", setReaches(Options{NoSpeculation: true})},
		{"definitions: a settlement brings the item to raised limits", settledUnder(1000)},
		{"definitions: a settlement brings the item to lowered limits", settledUnder(60)},
		{"definitions: setting limits reports an unknown outcome", setUnanswered},
		{"definitions: two processes with different limits create an item, the old one first", knownAndUnknownDefinition(100, 50)},
		{"definitions: two processes with different limits create an item, the new one first", knownAndUnknownDefinition(50, 100)},
		{"definitions: two processes with the same limits create an item", knownAndUnknownDefinition(100, 100)},
	}
}

// settledUnder has an operator change the capacity of 100, and a process that knows of it settle a
// lease from before. From then on the bucket gains under the new definition.
func settledUnder(capacity int64) func(w *tableWorld) {
	return func(w *tableWorld) {
		at := weir.Subject{Resource: testResource}
		w.limits(at, per("n", 100, 100, time.Minute))
		here, there := w.process(), w.process()
		leases := []*weir.Lease{here.admit(testEntity, weir.Costs{"n": 40}), here.admit(testEntity, weir.Costs{"n": 60})}
		w.limits(at, per("n", capacity, capacity, time.Minute))
		here.reread(testEntity)
		there.reread(testEntity)
		here.must(leases[0].Complete(w.Context(), weir.Costs{"n": 50}))
		equal(w, "capacity", w.stored(testEntity, 0, "n").Capacity, capacity*1000)
		there.must(there.Complete(w.Context(), leases[1].ID, []weir.Costs{{"n": 60}}))
		w.clock.Advance(30 * time.Second)
		equal(w, "left", here.left(testEntity), capacity/2-10)
	}
}

// reread makes the limiter read the configuration without reserving.
func (p *process) reread(entity string) {
	p.w.Helper()
	p.DropCache()
	if _, err := p.Status(p.w.Context(), entity, testResource); err != nil {
		p.w.Errorf("status: %v", err)
	}
}

// raiseUndoneDuringWrite has an operator undo a raise while a process is about to bring the item to
// it.
func raiseUndoneDuringWrite(w *tableWorld) {
	at := weir.Subject{Resource: testResource}
	w.limits(at, per("n", 100, 100, time.Minute))
	q := w.process()
	p := w.hooked(processOptions{}, interrupted((*bucketUpdate).redefines, func() {
		w.limits(at, per("n", 20, 20, time.Minute))
		q.reread(testEntity)
		if _, err := q.ask(testEntity, weir.Costs{"n": 1}); err != nil {
			w.Errorf("the other process: %v", err)
		}
		equal(w, "capacity by the other process", w.stored(testEntity, 0, "n").Capacity, 20_000)
	}))
	p.admit(testEntity, weir.Costs{"n": 1})
	q.admit(testEntity, weir.Costs{"n": 1})
	w.limits(at, per("n", 10_000, 10_000, time.Minute))
	p.reread(testEntity)
	p.admit(testEntity, weir.Costs{"n": 1})
	equal(w, "capacity", w.stored(testEntity, 0, "n").Capacity, 20_000)
	equal(w, "admitted after that", p.drain(testEntity, "n", 100), 18)
	w.clock.Advance(30 * time.Second)
	equal(w, "admitted in half a minute", p.drain(testEntity, "n", 100), 10)
}

// changing calls a function after limits have been written, before the limiter learns of it.
type changing struct {
	*Store
	then func()
}

// WriteLimits writes the limits and calls the function.
func (c *changing) WriteLimits(
	ctx context.Context, now time.Time, at weir.Subject, limits []weir.Limit,
) error {
	err := c.Store.admin.WriteLimits(ctx, now, at, limits)
	if c.then != nil {
		c.then()
	}
	return err
}

// reservedWithinChange reserves during a change: the limiter still has the old limits then, and the
// store must not take them for limits that were read after the change.
func reservedWithinChange(w *tableWorld) {
	at := weir.Subject{Resource: testResource}
	w.limits(at, noRefill("n", 100))
	c := &changing{}
	p := w.start(processOptions{}, &wrong{store: func(s *Store) driver.Store {
		c.Store = s
		return c
	}})
	p.admit(testEntity, weir.Costs{"n": 1})
	p.admit(testEntity, weir.Costs{"n": 1})
	c.then = func() { p.admit(testEntity, weir.Costs{"n": 1}) }
	if err := p.SetLimits(w.Context(), at, []weir.Limit{noRefill("n", 10)}); err != nil {
		w.Fatalf("set limits: %v", err)
	}
	if _, err := p.ask(testEntity, weir.Costs{"n": 11}); !errors.Is(err, weir.NeverSatisfiable) {
		w.Errorf("eleven of ten: got %v, want never satisfiable", err)
	}
	if n := p.drain(testEntity, "n", 100); n < 9 || n > 10 { // the third take may be one of the ten
		w.Errorf("admitted %d after the change, want the ten", n)
	}
}

// setReaches checks that a process that only sets the limits of an entity brings its item to them.
func setReaches(o Options) func(w *tableWorld) {
	return func(w *tableWorld) {
		w.limits(testSubject(), noRefill("n", 100))
		w.process().admit(testEntity, weir.Costs{"n": 1})
		p := w.process(processOptions{store: o})
		if err := p.SetLimits(w.Context(), testSubject(), []weir.Limit{noRefill("n", 10)}); err != nil {
			w.Fatalf("set limits: %v", err)
		}
		equal(w, "capacity", w.stored(testEntity, 0, "n").Capacity, 10_000)
		equal(w, "admitted", w.process().drain(testEntity, "n", 100), 10)
	}
}

// setUnanswered checks that a caller whose change of limits succeeds can rely on the item.
func setUnanswered(w *tableWorld) {
	w.limits(testSubject(), noRefill("n", 100))
	var lost atomic.Bool
	p := w.hooked(processOptions{}, &wrong{send: func(_ context.Context, _ *bucketUpdate, send func() error) error {
		if lost.CompareAndSwap(true, false) {
			return &client.UnknownError{Err: context.DeadlineExceeded}
		}
		return send()
	}})
	p.admit(testEntity, weir.Costs{"n": 1})
	lost.Store(true)
	ten := []weir.Limit{noRefill("n", 10)}
	err := p.SetLimits(w.Context(), testSubject(), ten)
	p.quiet()
	if lost.Load() || !errors.Is(err, weir.Unavailable) {
		w.Errorf("lost %t: got %v, want unavailable", !lost.Load(), err)
	}
	equal(w, "capacity after the lost write", w.stored(testEntity, 0, "n").Capacity, 100_000)
	if err := p.SetLimits(w.Context(), testSubject(), ten); err != nil {
		w.Errorf("set again: %v", err)
	}
	equal(w, "capacity", w.stored(testEntity, 0, "n").Capacity, 10_000)
}

// inLine returns a waiter without a caller. known is the definition that it holds; nil if it holds
// none.
func (p *process) inLine(name string, units int64, known *weir.Limit) *bucketitem.Waiter {
	m := &bucketitem.Waiter{
		Now: p.w.clock.Now().UnixMilli(), Number: p.store.buckets.Calls.Add(1), Answer: make(chan bucketitem.Result, 1),
		Takes: []bucketitem.Take{{Name: name, Milli: units * 1000, Limit: known}},
	}
	if known != nil {
		m.Config = bucketitem.NewConfig(&driver.Judged{Level: weir.LevelSystem, Limits: []weir.Limit{*known}})
	}
	m.State.Store(bucketitem.Sent)
	return m
}

// knownAndUnknownDefinition has two requests wait for an item that the process has not seen. Only
// the one that holds the item's definition is charged without another read of the item.
func knownAndUnknownDefinition(first, second int64) func(w *tableWorld) {
	return func(w *tableWorld) {
		w.system(noRefill("n", 100))
		w.process().admit(testEntity, weir.Costs{"n": 60})
		p := w.process()
		var members []*bucketitem.Waiter
		for _, capacity := range []int64{first, second} {
			known := noRefill("n", capacity)
			members = append(members, p.inLine("n", 5, &known))
		}
		p.line(testEntity).Commit(&bucketitem.Batch{Waiters: members})
		charged := int64(60)
		for i, capacity := range []int64{first, second} {
			ruling := (<-members[i].Answer).Kind
			if want := capacity == 100; (ruling == bucketitem.Taken) != want {
				w.Errorf("who knows a capacity of %d: got ruling %d, want taken %t", capacity, ruling, want)
			}
			if capacity == 100 {
				charged += 5
			}
		}
		equal(w, "consumed", w.stored(testEntity, 0, "n").Consumed, charged*1000)
	}
}

// TestSettleUnderChangedLimitsWithoutConfig settles a lease after the limits were changed, while
// the configuration cannot be read. A settlement needs none.
func TestSettleUnderChangedLimitsWithoutConfig(t *testing.T) {
	t.Parallel()
	inTableWorld(t, madeTable(t), nil, func(w *tableWorld) {
		at := weir.Subject{Resource: testResource}
		w.limits(at, per("n", 100, 100, time.Minute))
		reads := &batchReads{}
		p := w.process(processOptions{store: Options{Client: []func(*ddb.Options){reads.install}}})
		l := p.admit(testEntity, weir.Costs{"n": 40})
		w.limits(at, per("n", 200, 200, time.Minute))
		p.reread(testEntity)
		reads.fail.Store(1000)
		if _, err := l.Complete(w.Context(), weir.Costs{"n": 50}); err != nil {
			w.Errorf("complete with more: %v", err)
		}
	})
}

// TestSettleRecoveredReads settles leases of another process in one that knows older limits.
func TestSettleRecoveredReads(t *testing.T) {
	t.Parallel()
	inTableWorld(t, madeTable(t), nil, func(w *tableWorld) {
		at := weir.Subject{Resource: testResource}
		w.limits(at, per("n", 100, 100, time.Minute))
		reads := &batchReads{}
		old := w.process(processOptions{store: Options{Client: []func(*ddb.Options){reads.install}}})
		old.admit(testEntity, weir.Costs{"n": 1})
		w.limits(at, per("n", 200, 200, time.Minute))
		p := w.process()
		var leases []*weir.Lease
		for range 10 {
			leases = append(leases, p.admit(testEntity, weir.Costs{"n": 5}))
		}
		equal(w, "capacity", w.stored(testEntity, 0, "n").Capacity, 200_000)
		reads.count.Store(0)
		for _, l := range leases {
			old.must(old.Complete(w.Context(), l.ID, []weir.Costs{{"n": 6}}))
		}
		equal(w, "capacity after", w.stored(testEntity, 0, "n").Capacity, 200_000)
		if n := reads.count.Load(); n > 2 {
			w.Errorf("%d reads of the configuration for 10 settlements", n)
		}
	})
}
