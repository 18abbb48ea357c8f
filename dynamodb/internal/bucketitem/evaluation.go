package bucketitem

import (
	"math"

	"github.com/weir-limiter/weir/internal/sharding"
)

// Evaluation is the effect of a batch on an image: the waiters that fit, the changes of each limit,
// and the image after them.
type Evaluation struct {
	After    *Image
	admitted []*Waiter
	denied   []*Waiter
	// effects are in the order of the limits of After.
	effects []effect
	// The results of the admitted and of the denied waiters, in the same order.
	AdmittedResults, deniedResults []Result
	// latest is the latest now of the batch.
	latest int64
	// moves is the most often that units of the overflows have moved on before.
	moves int
}

// effect is the effect of an evaluation on one limit, in milli-units.
type effect struct {
	// net is the amount that the write takes; below zero for a refund.
	net int64
	// need is the balance that the waiters need: the stored balance and what the write credits must
	// come to at least that. asked is true if a waiter takes of the limit; need counts only then.
	need  int64
	asked bool
	// charged is true if units are taken.
	charged bool
	// refunded is the amount that was refunded. trimmed is true if the limit had no room for a part
	// of a refund, by this image. overflow is the sum of these parts that may go to other shards.
	refunded int64
	trimmed  bool
	overflow int64
	// consumed is the change of the count of consumed units.
	consumed int64
}

// evaluate applies the updates to a copy of the image, then judges the waiters in order. A waiter
// that fits counts for those after it.
func evaluate(m *Image, updates []*Update, waiters []*Waiter) *Evaluation {
	r := &Evaluation{After: m.clone(), effects: make([]effect, len(m.Limits)), latest: math.MinInt64}
	for i := range r.effects {
		r.effects[i].need = math.MinInt64
	}
	for _, u := range updates {
		r.applyUpdate(u)
	}
	for _, m := range waiters {
		r.judge(m)
	}
	return r
}

// applyUpdate applies charges and refunds, which are never denied. It skips limits that the item
// does not have.
func (r *Evaluation) applyUpdate(of *Update) {
	r.latest = max(r.latest, of.Now)
	for _, ch := range of.Deltas {
		i := r.After.index(ch.Name)
		if i < 0 || r.After.Limits[i].Incomplete {
			continue
		}
		if !r.undoDelta(i, &ch) {
			r.applyDelta(i, &ch, of)
		}
		if !ch.betweenShards {
			r.effects[i].consumed += ch.Milli
		}
	}
}

// undoDelta applies a refund that undoes a take from a limit that was forgotten until then. If no
// other request has touched the limit since, it is forgotten again. It reports whether it applied
// the refund.
func (r *Evaluation) undoDelta(i int, ch *Delta) bool {
	c, was := &r.After.Limits[i], ch.before
	if was == nil || !was.forgotten || !c.untouchedSince(was, -ch.Milli) {
		return false
	}
	c.BalanceMilli, c.Seen = was.BalanceMilli, was.fullSince
	x := &r.effects[i]
	x.net += ch.Milli
	x.refunded -= ch.Milli
	return true
}

// applyDelta charges a limit or refunds to it.
func (r *Evaluation) applyDelta(i int, ch *Delta, of *Update) {
	c, x := &r.After.Limits[i], &r.effects[i]
	c.Touch(of.Now, r.After.Shards)
	before := c.BalanceMilli
	if ch.Milli >= 0 {
		c.BalanceMilli -= ch.Milli
		x.charged = true
	} else {
		c.refund(-ch.Milli)
		refunded := c.BalanceMilli - before
		x.refunded += refunded
		x.trimmed = x.trimmed || refunded < -ch.Milli
		if left := -ch.Milli - refunded; left > 0 && of.moves < maxMoves {
			x.overflow += left
			r.moves = max(r.moves, of.moves)
		}
	}
	x.net += before - c.BalanceMilli
}

// judge admits or denies one waiter as a whole.
func (r *Evaluation) judge(m *Waiter) {
	r.latest = max(r.latest, m.Now)
	found := make([]LimitImage, len(m.Takes))
	fits := true
	for k := range m.Takes {
		a := &m.Takes[k]
		c := r.After.Limit(a.Name)
		c.Touch(m.Now, r.After.Shards)
		found[k] = *c
		fits = fits && c.BalanceMilli >= a.Needs(r.After.Shards)
	}
	v := Result{Found: found, Shards: r.After.Shards}
	if !fits {
		for k := range m.Takes {
			r.After.Limit(m.Takes[k].Name).untouch()
		}
		v.Kind = Denied
		r.denied, r.deniedResults = append(r.denied, m), append(r.deniedResults, v)
		return
	}
	r.admitted, r.AdmittedResults = append(r.admitted, m), append(r.AdmittedResults, v)
	for k := range m.Takes {
		a := &m.Takes[k]
		i := r.After.index(a.Name)
		x := &r.effects[i]
		x.need, x.asked = max(x.need, x.net+a.Needs(r.After.Shards)), true
		r.After.Limits[i].BalanceMilli -= a.Milli
		x.net += a.Milli
		if !m.betweenShards {
			x.consumed += a.Milli
		}
		x.charged = x.charged || a.Milli > 0
	}
}

// correctFound corrects the balances that the admitted waiters found by the takes and refunds of
// other writers since the image was made. m is the image of the item as it was written.
func (r *Evaluation) correctFound(m *Image) {
	for i := range r.After.Limits {
		a := &r.After.Limits[i]
		c := m.Limit(a.Name)
		if c == nil || !r.effects[i].asked {
			continue
		}
		at := max(a.Seen, c.Seen)
		moved := c.balanceAt(at) - a.balanceAt(at)
		if moved == 0 {
			continue
		}
		for f := range r.AdmittedResults {
			for k := range r.AdmittedResults[f].Found {
				if found := &r.AdmittedResults[f].Found[k]; found.Name == a.Name {
					found.BalanceMilli += moved
					found.forgotten = false // another writer has used it
				}
			}
		}
	}
}

// concerns reports whether the write touches a limit, or must check it: units for which a limit had
// no room go to other shards, which is wrong if other processes have taken of it.
func (r *Evaluation) concerns(i int) bool {
	x := &r.effects[i]
	return x.asked || x.charged || x.trimmed || x.refunded > 0 || x.consumed != 0
}

// maxDefined bounds the number of definitions that one condition checks, because DynamoDB bounds
// the length of an expression. A write with more limits relies on the time of the refill, which
// every change of a definition moves, or on the item's vu.
const maxDefined = 16

// canRequireDefinitions reports whether a write on the image m can require the definition of each
// limit that it touches, changes or removes.
func (r *Evaluation) canRequireDefinitions(m *Image) bool {
	n := 0
	for i := range r.After.Limits {
		c := &r.After.Limits[i]
		was := m.Limit(c.Name)
		if r.concerns(i) || was != nil && !was.sameDefinition(&c.BucketLimit) {
			n++
		}
	}
	for i := range m.Limits {
		if r.After.Limit(m.Limits[i].Name) == nil {
			n++
		}
	}
	return n <= maxDefined
}

// balanceBounds returns the bounds of the stored balance within which a limit can be charged
// without a refill: at least the need, and at most the capacity less the gain from the last refill
// until now. Above the upper bound the limit was full for a part of that time. A take that leaves
// rf alone would make room, and the next refill would credit that part too (ADR 16).
func (m *Image) balanceBounds(r *Evaluation, i int) (low, high int64) {
	c := &m.Limits[i]
	rate := sharding.Share(&c.BucketLimit, m.Shards)
	low, high = math.MinInt64, math.MaxInt64
	if r.effects[i].asked {
		low = r.effects[i].need
	}
	room := rate.CapacityMilli - rate.Gain(m.Item.RefilledMS, r.After.Limits[i].Seen)
	if r.effects[i].charged {
		high = room
	}
	if n := r.effects[i].refunded; n > 0 && m.Shards == 1 {
		high = min(high, rate.CapacityMilli-n)
	} else if n > 0 { // what is too much for this shard must go to the others
		high = min(high, room-n)
	}
	return low, high
}

// needsNoRefill reports whether the evaluation can be written without moving rf. It cannot if the
// limit of writes or the ttl of the item needs a refill, if a balance is outside its bounds, or if
// this process knows a balance that differs from the one that the stored values give.
func (m *Image) needsNoRefill(r *Evaluation) bool {
	it := m.Item
	switch {
	case it.Writes != nil && it.Writes.Balance < WriteMilli,
		it.TTL != 0 && it.TTL <= seconds(r.latest),
		m.configExpired(r.latest):
		return false
	}
	if !r.canRequireDefinitions(m) {
		return false
	}
	for i := range m.Limits {
		if !r.concerns(i) {
			continue
		}
		c, after := &m.Limits[i], &r.After.Limits[i]
		low, high := m.balanceBounds(r, i)
		if c.Balance < low || c.Balance > high || r.effects[i].trimmed ||
			after.BalanceMilli+r.effects[i].net != c.StoredBalanceAt(it.RefilledMS, after.Seen, m.Shards) {
			return false
		}
	}
	return true
}
