package dynamodb

import (
	"errors"
	"fmt"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/limiter"
)

// reachCases returns the cases that check that changed limits reach processes that have no fresh
// configuration.
func reachCases() []mistakeCase {
	cases := []mistakeCase{
		{"O2: default changes reach a process that restarts", reachRestarted},
		{"O2: default changes reach an idle process, cached for a second", reachIdle(time.Second)},
		{"O2: default changes reach an idle process, not cached", reachIdle(-1)},
		{"O2: default changes reach every process, all limits removed", reachRemoved},
		{"O2: default changes reach every process, one limit removed", reachRemovedOne},
		{"O2: default changes reach every process, another parent", reachParent},
		{"O2: default changes reach a bucket that was full for long", reachForgotten},
		{"O2: default changes reach several callers of one item", reachCallers},
		{"O2: default changes reach several processes at once", reachProcesses},
		{"reads: none if the configuration is fresh, one if it is not", reachReads},
		{"undeclared: a parent is charged, cold and warm", undeclaredParent},
	}
	for _, v := range []struct {
		name string
		how  Options
	}{
		{"", Options{}}, {", transactional", Options{Transactional: true}},
		{", without speculation", Options{NoSpeculation: true}},
	} {
		const oneShot = "O2: default changes reach one-shot processes, "
		cases = append(cases, mistakeCase{oneShot + "lowered" + v.name, reachOneShot(v.how)},
			mistakeCase{oneShot + "raised" + v.name, reachRaised(v.how)})
	}
	return cases
}

// onResource sets the limits of the resource with the observer.
func (w *tableWorld) onResource(limits ...weir.Limit) {
	w.Helper()
	w.limits(weir.Subject{Resource: testResource}, limits...)
}

// perDay returns a bucket that regains its capacity each day.
func perDay(capacity int64) weir.Limit { return per("n", capacity, capacity, 24*time.Hour) }

// once reserves in a new process, which then ends.
func (w *tableWorld) once(entity string, c weir.Costs, o ...processOptions) (*weir.Lease, error) {
	w.Helper()
	p := w.process(o...)
	l, err := p.ask(entity, c)
	if err := p.Close(); err != nil {
		w.Fatalf("close: %v", err)
	}
	return l, err
}

// reachOneShot runs 33 processes that make one call each after a default was lowered.
func reachOneShot(o Options) func(w *tableWorld) {
	return func(w *tableWorld) {
		w.onResource(perDay(100))
		w.process().admit(testEntity, weir.Costs{"n": 1})
		w.onResource(perDay(5))
		admitted := 0
		for range 33 {
			w.clock.Advance(100 * time.Millisecond)
			if l, _ := w.once(testEntity, weir.Costs{"n": 3}, processOptions{store: o}); l != nil {
				admitted += 3
			}
		}
		if admitted == 0 || admitted > 5 {
			w.Errorf("33 one-shot calls: admitted %d units of 5", admitted)
		}
	}
}

// reachRaised checks that after a default was raised, a bucket keeps its use and refills at the new
// rate. A new bucket has the new capacity.
func reachRaised(o Options) func(w *tableWorld) {
	return func(w *tableWorld) {
		w.onResource(per("n", 10, 10, 10*time.Second))
		w.process().admit(testEntity, weir.Costs{"n": 10})
		w.onResource(per("n", 1000, 1000, 10*time.Second))
		w.clock.Advance(100 * time.Millisecond)
		l, err := w.once(testEntity, weir.Costs{"n": 1}, processOptions{store: o}) // a hundred a second from now on
		if _, denied := errors.AsType[*weir.DeniedError](err); l != nil || !denied {
			w.Errorf("a tenth of a second after ten of ten: got %v, want denied", err)
		}
		admitted := 0
		for range 100 {
			w.clock.Advance(100 * time.Millisecond)
			if l, _ := w.once(testEntity, weir.Costs{"n": 10}, processOptions{store: o}); l != nil {
				admitted += 10
			}
		}
		equal(w, "admitted in ten seconds", admitted, 1000)
		if _, err := w.once("new", weir.Costs{"n": 1000}); err != nil {
			w.Errorf("all of the raised limit: %v", err)
		}
	}
}

// reachRestarted has a process that has just started reserve on many entities.
func reachRestarted(w *tableWorld) {
	const entities = 50
	name := func(i int) string { return fmt.Sprintf("e%d", i) }
	w.onResource(perDay(1000))
	old := w.process()
	for i := range entities {
		old.admit(name(i), weir.Costs{"n": 1})
	}
	if err := old.Close(); err != nil {
		w.Fatalf("close: %v", err)
	}
	w.onResource(perDay(10))
	p := w.process()
	var admitted, fitting int
	for i := range entities {
		if l, _ := p.ask(name(i), weir.Costs{"n": 900}); l != nil {
			admitted += 900
		}
		fitting += p.drain(name(i), "n", 50)
	}
	if admitted > 0 || fitting != 10*entities {
		w.Errorf("admitted %d units of requests above the capacity and %d of others, want 0 and %d",
			admitted, fitting, 10*entities)
	}
}

// reachIdle tests a process that runs throughout, and is idle for longer than the cache time.
func reachIdle(ttl time.Duration) func(w *tableWorld) {
	return func(w *tableWorld) {
		w.onResource(perDay(100))
		p := w.process(processOptions{limiter: limiter.Options{CacheTTL: ttl}})
		p.admit(testEntity, weir.Costs{"n": 1})
		w.onResource(perDay(5))
		w.clock.Advance(3500 * time.Millisecond)
		if l, err := p.ask(testEntity, weir.Costs{"n": 40}); l != nil || !errors.Is(err, weir.NeverSatisfiable) {
			w.Errorf("40 of 5: got %v, want never satisfiable", err)
		}
		equal(w, "admitted", p.drain(testEntity, "n", 20), 5)
	}
}

// reachRemoved checks that a subject whose limits were all removed is refused by every process, and
// nothing is charged.
func reachRemoved(w *tableWorld) {
	w.onResource(noRefill("n", 100))
	idle := w.process(processOptions{limiter: limiter.Options{CacheTTL: time.Second}})
	idle.admit(testEntity, weir.Costs{"n": 10})
	w.onResource()
	w.clock.Advance(1500 * time.Millisecond)
	if l, err := idle.ask(testEntity, weir.Costs{"n": 30}); l != nil || !errors.Is(err, weir.NoLimits) {
		w.Errorf("an idle process: got %v, want no limits", err)
	}
	for range 3 {
		if l, err := w.once(testEntity, weir.Costs{"n": 20}); l != nil || !errors.Is(err, weir.NoLimits) {
			w.Errorf("a one-shot process: got %v, want no limits", err)
		}
	}
	equal(w, "left", w.stored(testEntity, 0, "n").Balance, 90_000)
}

// reachRemovedOne checks that a request for a removed limit is refused, and nothing of it is
// charged.
func reachRemovedOne(w *tableWorld) {
	w.onResource(noRefill("m", 50), noRefill("n", 100))
	w.process().admit(testEntity, weir.Costs{"m": 1, "n": 10})
	w.onResource(noRefill("n", 100))
	l, err := w.once(testEntity, weir.Costs{"m": 1, "n": 10})
	if l != nil || !errors.Is(err, weir.UnknownLimit) {
		w.Errorf("got %v, want an unknown limit", err)
	}
	equal(w, "left", w.stored(testEntity, 0, "n").Balance, 90_000)
	l, err = w.once(testEntity, weir.Costs{"n": 90})
	if l == nil {
		w.Errorf("got %v, want all that is left", err)
	}
}

// reachParent checks that the parent in the configuration is charged, and no other.
func reachParent(w *tableWorld) {
	w.onResource(noRefill("n", 100))
	for _, parent := range []string{"old", "new"} {
		if err := w.eye.SetEntity(w.Context(), parent, "", false); err != nil {
			w.Fatalf("set entity: %v", err)
		}
	}
	w.family("child", "old")
	w.process().admit("child", weir.Costs{"n": 1})
	item := w.bucket("child", 0)
	if err := w.eye.SetEntity(w.Context(), "child", "new", true); err != nil {
		w.Fatalf("set entity: %v", err)
	}
	w.put(item) // as if its bucket items had not been stamped
	if _, err := w.once("child", weir.Costs{"n": 60}); err != nil {
		w.Errorf("the child: %v", err)
	}
	equal(w, "left of the old parent", w.stored("old", 0, "n").Balance, 99_000)
	equal(w, "left of the new parent", w.stored("new", 0, "n").Balance, 40_000)
	equal(w, "left of the child", w.stored("child", 0, "n").Balance, 39_000)
}

// reachForgotten checks that a bucket that was full for more than a minute counts as never used,
// and has the whole of a raised capacity.
func reachForgotten(w *tableWorld) {
	w.onResource(per("n", 10, 10, time.Second))
	w.process().admit(testEntity, weir.Costs{"n": 5})
	w.clock.Advance(2 * time.Minute)
	w.onResource(perDay(1000))
	for range 10 {
		if _, err := w.once(testEntity, weir.Costs{"n": 100}); err != nil {
			w.Errorf("100 of 1,000: %v", err)
		}
	}
}

// reachCallers checks that all callers that ask at the same time in a process without a
// configuration are judged by the one that it reads, and it reads once.
func reachCallers(w *tableWorld) {
	w.onResource(perDay(1000))
	w.process().admit(testEntity, weir.Costs{"n": 1})
	w.onResource(perDay(10))
	p := w.process()
	const callers = 40
	admitted := make([]int, callers)
	concurrently(callers, func(i int) {
		r := &weir.Request{Entity: testEntity, Resource: testResource, Costs: weir.Costs{"n": 1}}
		if l, _ := p.Reserve(w.Context(), r); l != nil {
			admitted[i] = 1
		}
	})
	p.quiet()
	sum := 0
	for _, n := range admitted {
		sum += n
	}
	sum += p.drain(testEntity, "n", 20)
	equal(w, "admitted", sum, 10)
}

// reachProcesses tests processes that start together: they write before any of them has the
// configuration, and one of them trims the bucket after the others have taken units from it.
func reachProcesses(w *tableWorld) {
	w.onResource(perDay(1000))
	w.process().admit(testEntity, weir.Costs{"n": 1})
	w.onResource(perDay(100))
	const processes, callers = 5, 8
	var started []*process
	for range processes {
		started = append(started, w.process())
	}
	admitted := make([]int, processes*callers)
	concurrently(len(admitted), func(i int) {
		r := &weir.Request{Entity: testEntity, Resource: testResource, Costs: weir.Costs{"n": 3}}
		if l, _ := started[i%processes].Reserve(w.Context(), r); l != nil {
			admitted[i] = 3
		}
	})
	sum := 0
	for _, n := range admitted {
		sum += n
	}
	for _, p := range started {
		p.quiet()
		sum += p.drain(testEntity, "n", 200)
	}
	equal(w, "admitted", sum, 100)
}

// reachReads checks that a process reads the configuration of a bucket once in a cache time.
func reachReads(w *tableWorld) {
	w.onResource(noRefill("n", 1000))
	w.process().admit(testEntity, weir.Costs{"n": 1})
	counter := &testkit.Counter{}
	p := w.process(processOptions{store: Options{Client: []func(*ddb.Options){counter.Install}}})
	counter.Reset()
	for range 3 {
		for range 12 {
			p.admit(testEntity, weir.Costs{"n": 1})
			w.clock.Advance(5 * time.Second)
		}
	}
	equal(w, "reads in three minutes", counter.Snapshot().Reads(), 3)
}

// undeclaredParent checks that a child that the Python library has declared may name a parent that
// was never declared. The parent is charged by the limits that apply to it, whether or not the
// configuration is known.
func undeclaredParent(w *tableWorld) {
	w.onResource(noRefill("n", 100))
	w.family("child", "ghost")
	w.limits(weir.Subject{Entity: "child", Resource: testResource}, noRefill("n", 1000))
	_, err := w.eye.store.client.API.DeleteItem(w.Context(), &ddb.DeleteItemInput{
		TableName: &w.table.Name, Key: schema.MetaKey(w.eye.store.config.Namespace, "ghost").Item(),
	})
	if err != nil {
		w.Fatalf("delete: %v", err)
	}
	p := w.process()
	p.admit("child", weir.Costs{"n": 10}) // creates its item
	p.admit("child", weir.Costs{"n": 10})
	if _, err := w.once("child", weir.Costs{"n": 10}); err != nil {
		w.Errorf("cold: %v", err)
	}
	equal(w, "left of the parent", w.stored("ghost", 0, "n").Balance, 70_000)
	for _, p := range []*process{p, w.process()} {
		p.deny("child", weir.Costs{"n": 71})
	}
	equal(w, "left of the child", w.stored("child", 0, "n").Balance, 970_000)
}
