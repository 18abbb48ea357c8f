package dynamodb

import (
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
)

// writesLeftovers returns cases of items that other programs left incomplete: with parts of a
// limit, as a stub, or without wcu.
func writesLeftovers() []mistakeCase {
	return []mistakeCase{
		{"leftovers: of a limit that was removed, of the system's", balanceWithoutDefinition(weir.Subject{})},
		{"leftovers: of a limit that was removed, of an entity's", balanceWithoutDefinition(testSubject())},
		{"leftovers: what is counted on a stub while it becomes an item", unitsOnStub},
		{"leftovers: nothing is taken from an item that counts no writes", uncountedItem},
	}
}

// testSubject returns the subject of the cases.
func testSubject() weir.Subject {
	return weir.Subject{Entity: testEntity, Resource: testResource}
}

// balanceWithoutDefinition tests a balance without a definition, which an adjustment leaves for a
// limit that is no longer on the item. The item stays usable for all processes.
func balanceWithoutDefinition(at weir.Subject) func(w *tableWorld) {
	return func(w *tableWorld) {
		a, b := per("a", 100, 100, time.Minute), per("b", 100, 100, time.Minute)
		w.limits(at, a, b)
		p := w.process()
		l := p.admit(testEntity, weir.Costs{"a": 1, "b": 1})
		w.limits(at, a)
		w.clock.Advance(cacheTime + time.Second)
		p.reread(testEntity)
		w.clock.Advance(2 * time.Second) // the bucket is full, so the next write refills
		p.admit(testEntity, weir.Costs{"a": 1})
		if w.bucket(testEntity, 0).Limit("b") != nil {
			w.Fatalf("b is still on the item")
		}
		w.add(testEntity, adjusted("b", 5)) // of a lease of the Python library
		w.clock.Advance(time.Second)
		p.admit(testEntity, weir.Costs{"a": 1})
		p.must(l.Complete(w.Context(), weir.Costs{"b": 3}))
		p.admit(testEntity, weir.Costs{"a": 1})
		w.process().admit(testEntity, weir.Costs{"a": 1})
		w.clock.Advance(2 * time.Minute)
		equal(w, "admitted when it is full again", p.drain(testEntity, "a", 150), 100)

		w.limits(at, a, b)
		w.clock.Advance(cacheTime + time.Second)
		p.admit(testEntity, weir.Costs{"a": 1})
		equal(w, "admitted by b, added again", p.drain(testEntity, "b", 150), 100)
	}
}

// unitsOnStub tests a stub, which an adjustment of a deleted item creates. Units that are added
// to it after a process has read it are charged too.
func unitsOnStub(w *tableWorld) {
	w.system(noRefill("n", 100))
	w.add(testEntity, adjusted("n", 5))
	first := true
	p := w.hooked(processOptions{}, &wrong{create: func() {
		if first {
			first = false
			w.add(testEntity, adjusted("n", 50))
		}
	}})
	p.admit(testEntity, weir.Costs{"n": 1})
	equal(w, "left", w.stored(testEntity, 0, "n").Balance, 44_000)
	p.deny(testEntity, weir.Costs{"n": 45})
	p.admit(testEntity, weir.Costs{"n": 44})
}

// uncountedItem checks that if an update counts neither units nor a write, it only checks the
// balances.
func uncountedItem(w *tableWorld) {
	w.system(noRefill("n", 100))
	b, err := schema.NewBucket(w.id(testEntity, 0), w.clock.Now().UnixMilli(), []schema.Limit{
		{Name: "n", Capacity: 100, Refill: 1, Seconds: noRefillPeriod},
	})
	if err != nil {
		w.Fatalf("new bucket: %v", err)
	}
	b.Writes, b.Limits[0].Balance = nil, 50_000
	w.put(b)
	p := w.process()
	for range 3 {
		p.admit(testEntity, weir.Costs{"n": 0})
	}
	equal(w, "left", w.stored(testEntity, 0, "n").Balance, 50_000)
	w.edit(testEntity, 0, balance("n", -1))
	p.deny(testEntity, weir.Costs{"n": 0})
}
