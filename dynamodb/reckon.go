package dynamodb

import (
	"math"

	"github.com/weir-limiter/weir"
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

// index is the position of a limit, or -1.
func (m *image) index(name string) int {
	for i := range m.limits {
		if m.limits[i].Name == name {
			return i
		}
	}
	return -1
}

// hasAll reports whether the image has every limit that a member asks, with the definition that it
// knows.
func (m *image) hasAll(of *waiter) bool {
	for k := range of.asks {
		a := &of.asks[k]
		c := m.limit(a.name)
		if c == nil || c.Incomplete || a.limit != nil && !c.matches(a.limit) {
			return false
		}
	}
	return true
}

// matches reports whether the limit is stored as it is defined.
func (c *limitImage) matches(l *weir.Limit) bool {
	return c.Capacity == l.Capacity*1000 && c.Refill == l.RefillAmount*1000 &&
		c.PeriodMS == l.RefillPeriod.Milliseconds()
}

// withSeen is the image with what was reckoned on it, where nothing is written: limits that were
// asked have been seen.
func (m *image) withSeen(after *image) *image {
	c := m.clone()
	for i := range c.limits {
		if a := after.limit(c.limits[i].Name); a != nil {
			l := &c.limits[i]
			l.balance, l.seen, l.rate, l.capacity = a.balance, a.seen, a.rate, a.capacity
		}
	}
	return c
}

// seenLimit is a limit that was judged or settled without a write.
type seenLimit struct {
	name string
	now  int64
	// limit is the definition in force, if the item may have another one; nil if it has not.
	limit *weir.Limit
	// denied is true if it was judged for a request that was denied.
	denied bool
}

// withSeenLimits is the image after limits were asked.
func (m *image) withSeenLimits(all ...seenLimit) *image {
	if len(all) == 0 {
		return m
	}
	c := m.clone()
	for _, a := range all {
		l := c.limit(a.name)
		if l == nil || l.Incomplete {
			continue
		}
		item := l.BucketLimit
		if a.limit != nil {
			s := storedLimit(a.limit)
			l.Capacity, l.Refill, l.PeriodMS = s.Capacity, s.Refill, s.PeriodMS
		}
		l.touch(a.now, c.shards)
		if a.denied {
			l.untouch()
		}
		l.BucketLimit = item
	}
	return c
}
