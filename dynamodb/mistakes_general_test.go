package dynamodb

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
)

// generalCases returns the mistakes of the field between processes.
func generalCases() []mistakeCase {
	return []mistakeCase{
		{"concurrent requests that together pass a limit, flat", concurrentCallers(1, false)},
		{"concurrent requests that together pass a limit, on eight shards", concurrentCallers(8, false)},
		{"concurrent requests that together pass a limit, a parent's", concurrentCallers(1, true)},
		{"leaked units come back by the refill alone", unsettledStaysCharged},
		{"denied by one limit but charged by another", deniedCharged},
		{"over-reservation blocking traffic", overReserved},
		{"double refunds between processes", refundedOnce},
	}
}

// concurrentCallers has 64 callers in each of two processes ask for five times the capacity.
func concurrentCallers(shards int, parent bool) func(w *tableWorld) {
	return func(w *tableWorld) {
		const capacity = 120
		w.system(noRefill("n", capacity))
		if shards > 1 {
			w.split(testEntity, shards, schema.Limit{Name: "n", Capacity: capacity, Refill: 1, Seconds: noRefillPeriod})
		}
		who := func(int) string { return testEntity }
		if parent {
			for i := range 4 {
				w.family(fmt.Sprintf("child%d", i), testEntity)
			}
			who = func(i int) string { return fmt.Sprintf("child%d", i%4) }
		}
		ps := []*process{w.process(), w.process()}
		var admitted, denied, contended, other atomic.Int64
		concurrently(128, func(i int) {
			for range 5 {
				_, err := ps[i%2].Reserve(w.Context(), &weir.Request{
					Entity: who(i / 2), Resource: testResource, Costs: weir.Costs{"n": 1},
				})
				d, isDenial := errors.AsType[*weir.DeniedError](err)
				switch {
				case err == nil:
					admitted.Add(1)
				case isDenial && d.Contended:
					contended.Add(1)
				case isDenial:
					denied.Add(1)
				default:
					other.Add(1)
				}
			}
		})
		ps[0].quiet()
		ps[1].quiet()
		at := admitted.Load()
		w.Logf("admitted %d at once, denied %d, contended %d", at, denied.Load(), contended.Load())
		equal(w, "errors", other.Load(), 0)
		w.clock.Advance(2 * time.Second)
		rest := int64(0)
		for i := range 4 {
			rest += int64(ps[0].drain(who(i), "n", 200))
		}
		equal(w, "admitted in all", at+rest, capacity)
		left, consumed := w.sum(testEntity, "n")
		equal(w, "left", left, 0)
		equal(w, "consumed", consumed, capacity*1000)
	}
}

// unsettledStaysCharged checks that units that a process took and never settled stay charged, and
// return with the refill.
func unsettledStaysCharged(w *tableWorld) {
	w.system(per("rpm", 60, 60, time.Minute))
	gone := w.process()
	for range 6 {
		gone.admit(testEntity, weir.Costs{"rpm": 10})
	}
	_ = gone.Close()
	p := w.process()
	p.deny(testEntity, weir.Costs{"rpm": 1})
	w.clock.Advance(30 * time.Second)
	equal(w, "admitted after half a minute", p.drain(testEntity, "rpm", 100), 30)
	w.clock.Advance(time.Minute)
	equal(w, "admitted after another", p.drain(testEntity, "rpm", 100), 60)
}

// deniedCharged checks that a request that one limit denies is not charged on any: not on another
// limit, on the child, or in another charge.
func deniedCharged(w *tableWorld) {
	w.system(noRefill("a", 100), noRefill("b", 5))
	w.family(testEntity, "parent")
	p := w.process()
	other := w.process()
	other.admit("parent", weir.Costs{"b": 5})
	for range 5 {
		w.clock.Advance(2 * time.Second)
		p.deny(testEntity, weir.Costs{"a": 1, "b": 1}) // only the parent's b denies
	}
	l, err := p.Reserve(w.Context(), &weir.Request{Charges: []weir.Charge{
		{Entity: "lonely", Resource: testResource, Costs: weir.Costs{"a": 7}},
		{Entity: "parent", Resource: testResource, Costs: weir.Costs{"b": 1}},
	}})
	p.quiet()
	if l != nil || err == nil {
		w.Errorf("two charges: got %v, %v, want denied", l != nil, err)
	}
	for _, e := range []string{testEntity, "parent", "lonely"} {
		if w.raw(e, 0) == nil {
			continue // it was never created
		}
		equal(w, e+": left of a", w.stored(e, 0, "a").Balance, 100_000)
		equal(w, e+": consumed of a", w.stored(e, 0, "a").Consumed, 0)
	}
	equal(w, "left of b", w.stored(testEntity, 0, "b").Balance, 5000)
	p.admit(testEntity, weir.Costs{"a": 100})
}

// overReserved checks that units that were not used are free for all processes after the
// settlement.
func overReserved(w *tableWorld) {
	w.system(noRefill("n", 100))
	p, other := w.process(), w.process()
	l := p.admit(testEntity, weir.Costs{"n": 90})
	other.deny(testEntity, weir.Costs{"n": 20})
	p.must(l.Complete(w.Context(), weir.Costs{"n": 5}))
	w.clock.Advance(2 * time.Second) // the other process remembers its denial for one second
	other.admit(testEntity, weir.Costs{"n": 95})
	other.deny(testEntity, weir.Costs{"n": 1})
}

// refundedOnce checks that a lease that is cancelled many times concurrently is refunded once.
func refundedOnce(w *tableWorld) {
	w.system(noRefill("n", 100))
	p, other := w.process(), w.process()
	other.admit(testEntity, weir.Costs{"n": 50})
	l := p.admit(testEntity, weir.Costs{"n": 20})
	concurrently(16, func(i int) {
		q := p
		if i%4 == 3 {
			q = other // a process that does not have the lease
		}
		if _, err := q.Cancel(w.Context(), l.ID); err != nil && q == p {
			w.Errorf("cancel: %v", err)
		}
	})
	p.quiet()
	equal(w, "left", w.stored(testEntity, 0, "n").Balance, 50_000)
	equal(w, "consumed", w.stored(testEntity, 0, "n").Consumed, 50_000)
}
