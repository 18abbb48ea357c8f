package dynamodb

import (
	"errors"
	"strings"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
)

// limitCases returns the predecessors' mistakes with limits that are changed or brought.
func limitCases() []mistakeCase {
	cases := []mistakeCase{
		{"N1: names with - or .", oddNames},
		{"V1: negative costs", negativeCosts},
		{"O1: brought limits ignored on the fast path", broughtLimits},
		{"removed limits leave nothing on the item", removedLimit},
		{"capacity set back and forth", changedAndChangedBack},
	}
	for name, at := range testPlaces() {
		cases = append(cases,
			mistakeCase{"L1: changed limits, one more at the " + name, addedLimit(at)},
			mistakeCase{"L2: changed limits, a lowered one at the " + name, loweredLimit(at)},
			mistakeCase{"O2: default changes reach live buckets from the " + name, changedDefaultApplies(at)})
	}
	return cases
}

// testPlaces returns a place of each level of the configuration.
func testPlaces() map[string]weir.Subject {
	return map[string]weir.Subject{
		"system":   {},
		"resource": {Resource: testResource},
		"entity":   {Entity: testEntity, Resource: testResource},
		"default":  {Entity: testEntity, Resource: weir.DefaultResource},
	}
}

// cacheTime is the time for which a limiter uses the configuration that it has read.
const cacheTime = time.Minute

// addedLimit checks that a limit that is added to an existing item starts full, and is then judged
// like any other.
func addedLimit(at weir.Subject) func(w *tableWorld) {
	return func(w *tableWorld) {
		w.limits(at, noRefill("n", 100))
		old := w.process()
		old.admit(testEntity, weir.Costs{"n": 10})
		w.limits(at, noRefill("n", 100), noRefill("more", 7))
		w.clock.Advance(cacheTime + time.Second)
		fresh := w.process()
		both := weir.Costs{"n": 1, "more": 1}
		admitted := 0
		for i := range 20 {
			p := old
			if i%2 == 1 {
				p = fresh
			}
			if l, _ := p.ask(testEntity, both); l != nil {
				admitted++
			}
		}
		equal(w, "admitted", admitted, 7)
		equal(w, "left", w.stored(testEntity, 0, "n").Balance, 83_000)
		equal(w, "left of the added one", w.stored(testEntity, 0, "more").Balance, 0)
		old.admit(testEntity, weir.Costs{"n": 83})
	}
}

// loweredLimit checks that the first write after the cache time trims a lowered limit to its
// capacity, for all processes.
func loweredLimit(at weir.Subject) func(w *tableWorld) {
	return func(w *tableWorld) {
		w.limits(at, noRefill("n", 100))
		old, blind := w.process(), w.process()
		old.admit(testEntity, weir.Costs{"n": 1})
		w.limits(at, noRefill("n", 10))
		w.clock.Advance(cacheTime + time.Second)
		old.admit(testEntity, weir.Costs{"n": 1})
		if l := w.stored(testEntity, 0, "n"); l.Capacity != 10_000 || l.Balance != 9_000 {
			w.Errorf("the item has %d of %d, want it trimmed to ten, less one", l.Balance, l.Capacity)
		}
		if _, err := old.ask(testEntity, weir.Costs{"n": 11}); !errors.Is(err, weir.NeverSatisfiable) {
			w.Errorf("eleven of ten: got %v, want never satisfiable", err)
		}
		old.admit(testEntity, weir.Costs{"n": 1})
		l := w.stored(testEntity, 0, "n")
		total := blind.drain(testEntity, "n", 50) + old.drain(testEntity, "n", 50)
		equal(w, "admitted after that", int64(total)*1000, l.Balance)
	}
}

// changedDefaultApplies checks that a busy bucket is judged by a changed default after the cache
// time at the latest.
func changedDefaultApplies(at weir.Subject) func(w *tableWorld) {
	return func(w *tableWorld) {
		w.limits(at, noRefill("n", 100))
		p := w.process()
		p.admit(testEntity, weir.Costs{"n": 1})
		w.limits(at, noRefill("n", 5))
		for range 6 { // never idle
			w.clock.Advance(cacheTime / 6)
			_, _ = p.ask(testEntity, weir.Costs{"n": 1})
		}
		w.clock.Advance(time.Second)
		got := p.drain(testEntity, "n", 50)
		w.Logf("admitted %d after the cache time", got)
		if got > 5 {
			w.Errorf("admitted %d of five", got)
		}
		equal(w, "capacity", w.stored(testEntity, 0, "n").Capacity, 5000)
	}
}

func oddNames(w *tableWorld) {
	const a, b, c = "in-put.tok_ens", "a.b-c", "Set-_.x"
	w.system(noRefill(a, 50), per(b, 20, 20, time.Minute))
	p, other := w.process(), w.process()
	l := p.admit(testEntity, weir.Costs{a: 5, b: 20})
	p.must(l.Adjust(w.Context(), weir.Costs{a: 7}))
	w.clock.Advance(30 * time.Second)
	l = other.admit(testEntity, weir.Costs{a: 5, b: 10})
	other.must(l.Cancel(w.Context()))
	other.deny(testEntity, weir.Costs{b: 11})
	l = other.admit(testEntity, weir.Costs{a: 1})
	other.must(l.Complete(w.Context(), weir.Costs{a: 3}))
	equal(w, "left", w.stored(testEntity, 0, a).Balance, 40_000)
	w.system(noRefill(a, 50), noRefill(c, 9))
	w.clock.Advance(cacheTime + time.Second)
	p.admit(testEntity, weir.Costs{a: 1, c: 9})
	p.deny(testEntity, weir.Costs{c: 1})
	equal(w, "left", w.stored(testEntity, 0, a).Balance, 39_000)
	for name := range w.raw(testEntity, 0) {
		if strings.HasPrefix(name, schema.BucketAttribute(b, "")) {
			w.Errorf("%s is still there", name)
		}
	}
}

func negativeCosts(w *tableWorld) {
	w.system(noRefill("n", 100))
	cold, warm := w.process(), w.process()
	warm.admit(testEntity, weir.Costs{"n": 60})
	warm.log.take()
	for _, p := range []*process{cold, warm} {
		for _, c := range []weir.Costs{{"n": -1}, {"n": -50}, {"n": 1, "m": -9223372036854775808}} {
			if _, err := p.ask(testEntity, c); !errors.Is(err, weir.Invalid) {
				w.Errorf("%v: got %v, want invalid", c, err)
			}
		}
		if writes := p.log.take(); len(writes) > 0 {
			w.Errorf("%s was written", kinds(writes))
		}
	}
	l := warm.admit(testEntity, weir.Costs{"n": 1})
	if _, err := l.Adjust(w.Context(), weir.Costs{"n": -5}); !errors.Is(err, weir.Invalid) {
		w.Errorf("adjust: got %v, want invalid", err)
	}
	warm.must(l.Cancel(w.Context()))
	equal(w, "left", w.stored(testEntity, 0, "n").Balance, 40_000)
}

// broughtLimits checks that a request that brings a lower limit is held to it, on an item that has
// more.
func broughtLimits(w *tableWorld) {
	w.system(noRefill("n", 100))
	p := w.process()
	p.admit(testEntity, weir.Costs{"n": 1}) // speculative writes from here on
	bring := func(capacity int64) (*weir.Lease, error) {
		l, err := p.Reserve(w.Context(), &weir.Request{
			Entity: testEntity, Resource: testResource, Costs: weir.Costs{"n": 1},
			Limits: []weir.Limit{noRefill("n", capacity)},
		})
		p.quiet()
		return l, err
	}
	admitted := 0
	for range 11 {
		if l, _ := bring(3); l != nil {
			admitted++
		}
	}
	equal(w, "admitted", admitted, 2)
	if _, err := bring(1000); err != nil { // a higher brought limit raises nothing
		w.Errorf("brought a higher limit: %v", err)
	}
	equal(w, "left", w.stored(testEntity, 0, "n").Balance, 96_000)
	equal(w, "capacity", w.stored(testEntity, 0, "n").Capacity, 100_000)
}

// removedLimit checks that the next write that refills removes all attributes of a removed limit.
func removedLimit(w *tableWorld) {
	w.system(noRefill("n", 100), noRefill("gone", 100))
	p := w.process()
	l := p.admit(testEntity, weir.Costs{"n": 10, "gone": 10})
	w.system(noRefill("n", 100))
	w.clock.Advance(cacheTime + time.Second)
	other := w.process(processOptions{store: Options{NoSpeculation: true}})
	other.admit(testEntity, weir.Costs{"n": 1})
	p.must(l.Cancel(w.Context())) // the lease still names the limit
	for name := range w.raw(testEntity, 0) {
		if strings.HasPrefix(name, schema.BucketAttribute("gone", "")) {
			w.Errorf("%s is still there", name)
		}
	}
	equal(w, "left", w.stored(testEntity, 0, "n").Balance, 99_000)
}

// changedAndChangedBack checks that changing a capacity and changing it back refills nothing.
func changedAndChangedBack(w *tableWorld) {
	w.system(noRefill("n", 100))
	p, other := w.process(), w.process()
	p.admit(testEntity, weir.Costs{"n": 95})
	for i := range 6 {
		w.system(noRefill("n", int64(50+50*(i%2))))
		w.clock.Advance(cacheTime + time.Second)
		_, _ = other.ask(testEntity, weir.Costs{"n": 0})
	}
	got := p.drain(testEntity, "n", 100) + other.drain(testEntity, "n", 100)
	if got > 5 {
		w.Errorf("admitted %d of the five that were left", got)
	}
	equal(w, "admitted", got, 5)
}
