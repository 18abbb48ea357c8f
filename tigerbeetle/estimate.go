//go:build cgo

package tigerbeetle

import (
	"math"

	"github.com/weir-limiter/weir/kernel"
)

// bucketKnown is what is known of a bucket.
type bucketKnown struct {
	anchor anchor
	// balance is in milli-units, at the anchor, less what was taken since.
	balance int64

	// flying is true while a call is on its way that moves the anchor, to b of next; landed is closed
	// when it is back.
	flying bool
	next   anchor
	landed chan struct{}
	// trip is how long the last such call took that moved it, in milliseconds.
	trip int64
}

// at is the balance at an instant, in milli-units.
func (k *bucketKnown) at(now int64) int64 {
	r := k.anchor.rate.arithmetic()
	return r.Refill(k.balance, k.anchor.b, max(now, k.anchor.b))
}

func (k *bucketKnown) available(now int64) int64 { return kernel.Units(k.at(now)) }

func (k *bucketKnown) freeAt(now, need int64) int64 {
	r := k.anchor.rate.arithmetic()
	now = max(now, k.anchor.b)
	wait := r.Wait(k.at(now), need*1000, now)
	if wait > math.MaxInt64-max(now, 0) {
		return math.MaxInt64
	}
	return now + wait
}

// gain is what the bucket regains until an instant, in milli-units. It may be more than a balance
// can be: the way out of a deep debt is up to twice as long.
func (k *bucketKnown) gain(now int64) uint64 {
	if k.anchor.b == 0 {
		return 0
	}
	r := k.anchor.rate.arithmetic()
	return r.WideGain(k.anchor.b, now)
}

// follow is the anchor after the one that is known: at an instant, under a definition. It is false
// where nothing would change. It moves though nothing has been regained: a chain that moves it
// fails where another server has, and so knows the capacity that its check goes by.
func (k *bucketKnown) follow(now int64, r rate, version uint32) (anchor, bool) {
	a := k.anchor
	changed := a.rate != r && (a.b == 0 || !older(version, a.version))
	if now <= a.b {
		if !changed || a.k == countMask {
			return a, false
		}
		a.k++
	} else {
		a.b, a.k = now, 0
	}
	if changed {
		a.rate, a.version = r, version&versionMask
	}
	return a, true
}

// fullMS is for how long a bucket is full before it is as one that was never used, in milliseconds
// (docs/semantics.md, 8.4).
const fullMS = 60_000

// forgotten is true where the bucket has been full for so long, and nobody has asked.
func (k *bucketKnown) forgotten(now, used int64) bool {
	r := k.anchor.rate.arithmetic()
	seen := max(used, k.anchor.b)
	return now-seen >= fullMS && now-fullMS >= r.FullAt(k.balance, k.anchor.b)
}

// older is true where a version came before another one; they begin anew after 24 bits.
func older(version, other uint32) bool {
	return (version-other)&versionMask > versionMask/2
}

// move takes in that the anchor was moved, and what that did to the balance.
func (k *bucketKnown) move(to anchor, anew bool) {
	if k.anchor.b == 0 || anew { // it begins full
		k.anchor, k.balance = to, to.rate.capacity*1000
		return
	}
	was := k.anchor.rate
	r := was.arithmetic()
	k.balance = r.Refill(k.balance, k.anchor.b, max(to.b, k.anchor.b))
	k.balance = min(k.balance, to.rate.capacity*1000)
	k.anchor = to
}

// give adds milli-units, up to the capacity.
func (k *bucketKnown) give(milli int64) {
	most := k.anchor.rate.capacity * 1000
	// The balance is at most the capacity. From a deep debt there is more room than an int64 holds.
	if uint64(milli) >= uint64(most)-uint64(k.balance) {
		k.balance = most
		return
	}
	k.balance += milli
}

// counts is true where so many units less still fit 64 bits.
func (k *bucketKnown) counts(now, units int64) bool {
	milli, ok := kernel.Milli(units)
	return ok && (k.anchor.b == 0 || k.at(now) >= math.MinInt64+milli)
}
