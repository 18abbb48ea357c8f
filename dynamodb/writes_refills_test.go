package dynamodb

import (
	"sync/atomic"
	"time"

	"github.com/weir-limiter/weir"
)

// writesRefills returns cases of limits that a process has not used lately.
func writesRefills() []mistakeCase {
	return []mistakeCase{
		{"refill: units that others have taken are not credited again", filledOnce},
		{"refill: an image of a full limit does not lose later refills", gainNotInImage},
		{"refill: a raised capacity does not revive what others have taken", raisedAfterTaken},
		{"refill: an item does not expire before a debt that was made meanwhile", debtMeanwhile},
		{"refill: an admission reports what others have left", availableAfterOthers},
		{"refill: settlements that change nothing leave nothing behind", nothingKept},
	}
}

// filledOnce checks that the gain of a limit stops at its capacity. If another process then uses
// the limit, it matters when it was full.
func filledOnce(w *tableWorld) {
	w.system(per("a", 100, 100, time.Minute), per("b", 100, 100, time.Minute))
	p, q := w.process(), w.process()
	p.admit(testEntity, weir.Costs{"a": 1})
	p.admit(testEntity, weir.Costs{"a": 1})
	q.admit(testEntity, weir.Costs{"a": 1})
	q.admit(testEntity, weir.Costs{"b": 100})
	for range 3 {
		p.admit(testEntity, weir.Costs{"a": 1}) // makes the process see the item
		w.clock.Advance(2 * time.Minute)
		p.admit(testEntity, weir.Costs{"a": 1}) // refills b too
		q.admit(testEntity, weir.Costs{"b": 99})
		p.deny(testEntity, weir.Costs{"b": 2})
		p.admit(testEntity, weir.Costs{"b": 1})
		equal(w, "left of b", w.stored(testEntity, 0, "b").Balance, 0)
	}
}

// gainNotInImage tests a gain of thirty units, of which only ten fit by the image of b.
func gainNotInImage(w *tableWorld) {
	w.system(per("fast", 1000, 1000, time.Minute), per("slow", 100, 10, time.Hour))
	a, b := w.process(), w.process()
	a.admit(testEntity, weir.Costs{"fast": 1})
	b.admit(testEntity, weir.Costs{"fast": 1})
	a.admit(testEntity, weir.Costs{"slow": 10})
	b.admit(testEntity, weir.Costs{"fast": 500}) // b sees 90
	a.admit(testEntity, weir.Costs{"fast": 1})
	a.admit(testEntity, weir.Costs{"slow": 90}) // none is left
	w.clock.Advance(3 * time.Hour)
	b.admit(testEntity, weir.Costs{"fast": 1})
	equal(w, "left after three hours", w.stored(testEntity, 0, "slow").Balance, 30_000)
	a.deny(testEntity, weir.Costs{"slow": 31})
	a.admit(testEntity, weir.Costs{"slow": 30})
}

// raisedAfterTaken checks that only a limit that was unused for a minute returns full.
func raisedAfterTaken(w *tableWorld) {
	at := weir.Subject{Resource: testResource}
	w.limits(at, noRefill("n", 100), noRefill("x", 100))
	a, b := w.process(), w.process()
	a.admit(testEntity, weir.Costs{"x": 1})
	b.admit(testEntity, weir.Costs{"x": 1})
	b.admit(testEntity, weir.Costs{"x": 1})
	w.clock.Advance(10 * time.Minute)
	b.admit(testEntity, weir.Costs{"n": 50})
	w.limits(at, noRefill("n", 200), noRefill("x", 100))
	a.reread(testEntity)
	a.deny(testEntity, weir.Costs{"n": 51})
	a.admit(testEntity, weir.Costs{"n": 50})
	equal(w, "left", w.stored(testEntity, 0, "n").Balance, 0)
}

// debtMeanwhile has another process make a debt while a refill by an older image is in flight.
func debtMeanwhile(w *tableWorld) {
	w.system(per("a", 100, 100, time.Minute), per("b", 100, 100, time.Minute))
	var armed atomic.Bool
	a := w.process()
	var l *weir.Lease
	b := w.hooked(processOptions{}, interrupted(func(*bucketUpdate) bool { return armed.Load() }, func() {
		if _, err := l.Complete(w.Context(), weir.Costs{"b": 10_100}); err != nil { // a hundred minutes
			w.Errorf("complete: %v", err)
		}
	}))
	l = a.admit(testEntity, weir.Costs{"a": 1, "b": 100})
	b.admit(testEntity, weir.Costs{"a": 1})
	b.admit(testEntity, weir.Costs{"a": 1})
	w.clock.Advance(10 * time.Second)
	repaid := w.clock.Now().Add(99 * time.Minute).Unix()
	if ttl := w.bucket(testEntity, 0).TTL; ttl >= repaid {
		w.Errorf("without a debt the item has %d more seconds", ttl-w.clock.Now().Unix())
	}
	armed.Store(true)
	b.admit(testEntity, weir.Costs{"a": 1})
	a.quiet()
	if got := w.stored(testEntity, 0, "b").Balance; got > -9_000_000 {
		w.Fatalf("b has %d, which is no debt", got)
	}
	if ttl := w.bucket(testEntity, 0).TTL; ttl < repaid {
		w.Errorf("the item may go in %d s, before the debt is repaid", ttl-w.clock.Now().Unix())
	}
}

// availableAfterOthers checks that the write that admits returns the item, and so the takes and
// refunds of other processes.
func availableAfterOthers(w *tableWorld) {
	w.system(noRefill("n", 100))
	p, q := w.process(), w.process()
	p.admit(testEntity, weir.Costs{"n": 1})
	p.admit(testEntity, weir.Costs{"n": 1})
	l := q.admit(testEntity, weir.Costs{"n": 30})
	found := p.admit(testEntity, weir.Costs{"n": 10}).Limits
	equal(w, "available after another has taken", found[0].Available, 58)
	q.must(l.Cancel(w.Context()))
	found = p.admit(testEntity, weir.Costs{"n": 10}).Limits
	equal(w, "available after it has given back", found[0].Available, 78)
	found = p.admit(testEntity, weir.Costs{"n": 10}).Limits
	equal(w, "available when nobody came between", found[0].Available, 68)
}

// nothingKept checks that a settlement that changes nothing writes nothing, and the process keeps
// no record of it.
func nothingKept(w *tableWorld) {
	w.system(noRefill("n", 100))
	p := w.process()
	l := p.admit(testEntity, weir.Costs{"n": 1})
	p.log.take()
	for range 500 {
		p.must(l.Adjust(w.Context(), weir.Costs{"n": 1}))
	}
	equal(w, "writes", kinds(p.log.take()), "")
	if n := len(p.line(testEntity).SeenLimits); n > 1 {
		w.Errorf("%d sightings are kept", n)
	}
	p.must(l.Adjust(w.Context(), weir.Costs{"n": 2}))
	equal(w, "left", w.stored(testEntity, 0, "n").Balance, 98_000)
}
