//go:build cgo

package tigerbeetle

import (
	"math"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/kernel"
)

// estimate is the believed use of a limit: the cluster's latest answer, and the effects of this
// server's chains after it. The kernel does the arithmetic.
type estimate struct {
	bucket   bucketEstimate
	expiring expiringEstimate
	periods  []periodAccount
}

// available returns the units that can be taken of a limit of a kind at an instant.
func (e *estimate) available(kind weir.Kind, now, capacity int64) int64 {
	switch kind {
	case weir.Bucket:
		return e.bucket.available(now)
	case weir.Budget:
		return capacity - e.usedAt(now)
	default:
		return capacity - e.expiring.occupied(now)
	}
}

// freeAt returns the first millisecond at which need units are available without other calls. bound
// reports that it is a lower bound.
func (e *estimate) freeAt(kind weir.Kind, now, need, capacity int64) (at int64, bound bool) {
	switch kind {
	case weir.Bucket:
		return e.bucket.freeAt(now, need), false
	case weir.Budget:
		b := e.budget(nil)
		b.Capacity = capacity
		return b.FitsAt(now, need), false
	default:
		return e.expiring.freeAt(now, capacity-need)
	}
}

// periodAccount holds what is known of the account of one period of a budget.
type periodAccount struct {
	account tb.Uint128
	// end is in Unix milliseconds.
	end           int64
	used          int64
	accountExists bool
	funded        bool
}

// usedAt returns the units of a budget that are used in periods that have not ended.
func (e *estimate) usedAt(now int64) int64 {
	var few [4]kernel.Period
	b := e.budget(few[:0])
	return b.Used(now)
}

// budget returns the periods as a counter of the kernel. It appends them to memory.
func (e *estimate) budget(memory []kernel.Period) kernel.Budget {
	for i := range e.periods {
		memory = append(memory, kernel.Period{EndMS: e.periods[i].end, Used: e.periods[i].used})
	}
	return kernel.Budget{Periods: memory}
}

// bucketEstimate holds what is known of a bucket.
type bucketEstimate struct {
	anchor anchor
	// balance is the balance at the anchor, less what was taken after that, in milli-units.
	balance int64

	// moving is set while a call has the claim to move the anchor to next; moved is closed when
	// that call releases it.
	moving bool
	next   anchor
	moved  chan struct{}
	// moveMS is how long the last successful move took, in milliseconds.
	moveMS int64
}

// balanceAt returns the balance at an instant, in milli-units.
func (k *bucketEstimate) balanceAt(now int64) int64 {
	return k.anchor.rate.Refill(k.balance, k.anchor.b, now)
}

func (k *bucketEstimate) available(now int64) int64 { return kernel.Units(k.balanceAt(now)) }

func (k *bucketEstimate) freeAt(now, need int64) int64 {
	now = max(now, k.anchor.b)
	return k.anchor.rate.ReachedAt(k.balanceAt(now), need*1000, now)
}

// forgotten reports whether the bucket counts as never used (docs/semantics.md, 8.4); used is its
// touched instant.
func (k *bucketEstimate) forgotten(now, used int64) bool {
	b := kernel.Bucket{Rate: k.anchor.rate, BalanceMilli: k.balance, SeenMS: k.anchor.b}
	return now-used >= kernel.ForgetMS && b.Idle(now, kernel.ForgetMS)
}

// move updates the balance after the anchor was moved. A bucket that was forgotten starts full.
func (k *bucketEstimate) move(to anchor, fromForgotten bool) {
	balance := to.rate.CapacityMilli
	if k.anchor.b > 0 && !fromForgotten {
		balance = min(balance, k.balanceAt(to.b))
	}
	k.anchor, k.balance = to, balance
}

// fits reports whether the balance less the units still fits 64 bits.
func (k *bucketEstimate) fits(now, units int64) bool {
	milli, ok := kernel.Milli(units)
	return ok && (k.anchor.b == 0 || k.balanceAt(now) >= math.MinInt64+milli)
}

// expiringEstimate is the estimate of a window or a concurrency limit: the units whose ends are
// known, in the queue, and the number of the others.
type expiringEstimate struct {
	kernel.Queue
	// others is the number of units in use whose ends are not known.
	others int64
	// until is when the last of the others ends at the latest.
	until int64
}

// expire drops the units that have ended.
func (h *expiringEstimate) expire(now int64) {
	if now >= h.until {
		h.others = 0
	}
	h.Expire(now)
}

// occupied returns the units in use at an instant.
func (h *expiringEstimate) occupied(now int64) int64 {
	h.expire(now)
	return h.Total() + h.others
}

// clone returns a deep copy.
func (h *expiringEstimate) clone() expiringEstimate {
	return expiringEstimate{h.Clone(), h.others, h.until}
}

// lower lowers the number of units in use by n. If the others do not suffice, it is not known which
// units have returned, so the ends of all of them are dropped; the last ends at until at the
// latest.
func (h *expiringEstimate) lower(n, until int64) {
	if n <= h.others {
		h.others -= n
		return
	}
	*h = expiringEstimate{others: max(h.Total()+h.others-n, 0), until: until}
}

// lateMS is how much later than the lease says the cluster may return a unit, in milliseconds.
const lateMS = 1000

// remove drops units that an update returned before their end. The queue may have them with an end
// up to lateMS later, if they were taken again by an update and then read from the cluster. Units
// that the queue does not have are among the others.
func (h *expiringEstimate) remove(until, units int64) {
	units -= h.Remove(until, until+lateMS, units)
	h.others = max(h.others-units, 0)
}

// freeAt returns the first instant at which no more than most units are in use. bound reports that
// it is a lower bound: it assumes that the units whose ends are not known return first.
func (h *expiringEstimate) freeAt(now, most int64) (at int64, bound bool) {
	h.expire(now)
	at = h.FreeAt(now, h.Total()-most)
	if at == math.MaxInt64 || h.others == 0 {
		return at, false
	}
	return max(at, now+1), true
}

// applyDelta applies what an update takes or, with grown below zero, gives back.
func (k *bucketEstimate) applyDelta(grown int64) {
	if k.anchor.b == 0 {
		return
	}
	if grown >= 0 {
		k.balance -= grown * 1000
		return
	}
	// The refund is added to the balance at the anchor and cut at the capacity there, although the
	// bucket has regained more until now. The result is the same, because the refill after the
	// anchor is cut at the capacity too.
	milli := int64(fundUnits)
	if -grown <= milli/1000 {
		milli = -grown * 1000
	}
	k.balance = k.anchor.rate.Refund(k.balance, milli)
}
