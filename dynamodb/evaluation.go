package dynamodb

import (
	"math"
)

// evaluation is what a batch comes to on an image: who fits, and what the item shall be afterwards.
type evaluation struct {
	after    *image
	admitted []*waiter
	denied   []*waiter
	// net is what the write takes from each limit, below zero where it gives back; need is the least
	// that must be stored besides what is credited; both by position in the image, in milli-units.
	net, need []int64
	// charged and asked say of which limits something is charged, and which of them may not fall below
	// what is needed.
	charged, asked []bool
	// refunded is what was given back to each limit, and trimmed whether there was more to give back than
	// the limit had room for, by this image.
	refunded []int64
	trimmed  []bool
	// verdicts are those of the members that fit, and of those that do not.
	admittedResults, deniedResults []waiterResult
	// latest is the latest now of all.
	latest int64
	// consumed is by how much the counter of what was consumed moves.
	consumed []int64
}

// evaluate applies rides, then judges members in their order. Every one that fits is taken into
// account for those after it.
func evaluate(m *image, rides []*itemUpdate, members []*waiter) *evaluation {
	n := len(m.limits)
	r := &evaluation{
		after: m.clone(), net: make([]int64, n), need: make([]int64, n), consumed: make([]int64, n),
		charged: make([]bool, n), asked: make([]bool, n), refunded: make([]int64, n), trimmed: make([]bool, n),
		latest: math.MinInt64,
	}
	for i := range r.need {
		r.need[i] = math.MinInt64
	}
	for _, ride := range rides {
		r.applyUpdate(ride)
	}
	for _, m := range members {
		r.judge(m)
	}
	return r
}

// applyUpdate applies what is never denied. A limit that the item does not have is nobody's business here.
func (r *evaluation) applyUpdate(of *itemUpdate) {
	r.latest = max(r.latest, of.now)
	for _, ch := range of.deltas {
		i := r.after.index(ch.name)
		if i < 0 || r.after.limits[i].Incomplete {
			continue
		}
		if !r.undoDelta(i, &ch) {
			r.applyDelta(i, &ch, of.now)
		}
		if !ch.betweenShards {
			r.consumed[i] += ch.milli
		}
	}
}

// undoDelta gives back what was taken from a limit that was forgotten until then, if nobody has asked it
// since: then it is forgotten again.
func (r *evaluation) undoDelta(i int, ch *delta) bool {
	c, was := &r.after.limits[i], ch.before
	if was == nil || !was.forgotten || !c.untouchedSince(was, -ch.milli) {
		return false
	}
	c.balance, c.seen = was.balance, was.fullSince
	r.net[i] += ch.milli
	r.refunded[i] -= ch.milli
	return true
}

// applyDelta charges a limit, or gives back to it.
func (r *evaluation) applyDelta(i int, ch *delta, now int64) {
	c := &r.after.limits[i]
	c.touch(now, r.after.shards)
	before := c.balance
	if ch.milli >= 0 {
		c.balance -= ch.milli
		r.charged[i] = true
	} else {
		c.refund(-ch.milli)
		r.refunded[i] += c.balance - before
		r.trimmed[i] = r.trimmed[i] || c.balance-before < -ch.milli
	}
	r.net[i] += before - c.balance
}

// judge decides on one member, all or nothing.
func (r *evaluation) judge(m *waiter) {
	r.latest = max(r.latest, m.now)
	found := make([]limitImage, len(m.asks))
	fits := true
	for k := range m.asks {
		a := &m.asks[k]
		c := r.after.limit(a.name)
		c.touch(m.now, r.after.shards)
		found[k] = *c
		fits = fits && c.balance >= a.needs(r.after.shards)
	}
	v := waiterResult{found: found, shards: r.after.shards}
	if !fits {
		for k := range m.asks {
			r.after.limit(m.asks[k].name).untouch()
		}
		v.kind = denied
		r.denied, r.deniedResults = append(r.denied, m), append(r.deniedResults, v)
		return
	}
	r.admitted, r.admittedResults = append(r.admitted, m), append(r.admittedResults, v)
	for k := range m.asks {
		a := &m.asks[k]
		i := r.after.index(a.name)
		r.need[i] = max(r.need[i], r.net[i]+a.needs(r.after.shards))
		r.after.limits[i].balance -= a.milli
		r.net[i] += a.milli
		r.consumed[i] += a.milli
		r.charged[i] = r.charged[i] || a.milli > 0
		r.asked[i] = true
	}
}

// correctFound moves what the members that fit have found by what others took or gave back in the
// meantime, as the item tells that was written.
func (r *evaluation) correctFound(m *image) {
	for i := range r.after.limits {
		a := &r.after.limits[i]
		c := m.limit(a.Name)
		if c == nil || !r.asked[i] {
			continue
		}
		at := max(a.seen, c.seen)
		moved := c.balanceAt(at) - a.balanceAt(at)
		if moved == 0 {
			continue
		}
		for f := range r.admittedResults {
			for k := range r.admittedResults[f].found {
				if found := &r.admittedResults[f].found[k]; found.Name == a.Name {
					found.balance += moved
					found.forgotten = false // others have used it
				}
			}
		}
	}
}

// concerns reports whether the write concerns a limit.
func (r *evaluation) concerns(i int) bool {
	return r.asked[i] || r.charged[i] || r.refunded[i] > 0 || r.consumed[i] != 0
}

// maxDefined is of how many limits a write can require the definition: DynamoDB's expressions have
// an end. With more, a write goes by the time of the refill, which whoever changes a definition
// moves, or stamps the item (vu).
const maxDefined = 16

// canRequireDefinitions reports whether a write on an image can require the definition of each limit that it
// concerns, changes or removes.
func (r *evaluation) canRequireDefinitions(m *image) bool {
	n := 0
	for i := range r.after.limits {
		c := &r.after.limits[i]
		was := m.limit(c.Name)
		if r.concerns(i) || was != nil && !was.sameDefinition(&c.BucketLimit) {
			n++
		}
	}
	for i := range m.limits {
		if r.after.limit(m.limits[i].Name) == nil {
			n++
		}
	}
	return n <= maxDefined
}

// balanceBounds are between which stored balances a limit can be charged without crediting it up to now,
// as seen in an image: not less than what is needed, and not more than what leaves room for all
// that it has gained since the last refill. Above that its share would have been full, and to go by
// what is stored would credit the same time twice.
func (m *image) balanceBounds(r *evaluation, i int) (low, high int64) {
	c := &m.limits[i]
	rate := shareOf(&c.BucketLimit, m.shards)
	low, high = math.MinInt64, math.MaxInt64
	if r.asked[i] {
		low = r.need[i]
	}
	if r.charged[i] {
		high = rate.CapacityMilli - rate.Gain(m.item.RefilledMS, r.after.limits[i].seen)
	}
	if r.refunded[i] > 0 {
		high = min(high, rate.CapacityMilli-r.refunded[i])
	}
	return low, high
}

// needsNoRefill reports whether a reckoning can be written without moving the time of the refill.
func (m *image) needsNoRefill(r *evaluation) bool {
	it := m.item
	switch {
	case it.Writes != nil && it.Writes.Balance < writeMilli,
		it.TTL != 0 && it.TTL <= seconds(r.latest),
		m.configExpired(r.latest):
		return false
	}
	if !r.canRequireDefinitions(m) {
		return false
	}
	for i := range m.limits {
		if !r.concerns(i) {
			continue
		}
		c, after := &m.limits[i], &r.after.limits[i]
		low, high := m.balanceBounds(r, i)
		if c.Balance < low || c.Balance > high || r.trimmed[i] ||
			after.balance+r.net[i] != c.storedBalanceAt(it.RefilledMS, after.seen, m.shards) {
			return false
		}
	}
	return true
}
