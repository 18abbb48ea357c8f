package dynamodb

import (
	"math"

	"github.com/weir-limiter/weir"
)

// reckoning is what a batch comes to on an image: who fits, and what the item shall be afterwards.
type reckoning struct {
	after *image
	fits  []*member
	short []*member
	// net is what the write takes from each limit, below zero where it gives back; need is the least
	// that must be stored besides what is credited; both by position in the image, in milli-units.
	net, need []int64
	// charged and asked say of which limits something is charged, and which of them may not fall below
	// what is needed.
	charged, asked []bool
	// given is what was given back to each limit, and trimmed whether there was more to give back than
	// the limit had room for, by this image.
	given   []int64
	trimmed []bool
	// verdicts are those of the members that fit, and of those that do not.
	fitting, lacking []verdict
	// latest is the latest now of all.
	latest int64
	// counts is by how much the counter of what was consumed moves.
	counts []int64
}

// reckon applies rides, then judges members in their order. Every one that fits is taken into
// account for those after it.
func reckon(m *image, rides []*ride, members []*member) *reckoning {
	n := len(m.limits)
	r := &reckoning{
		after: m.clone(), net: make([]int64, n), need: make([]int64, n), counts: make([]int64, n),
		charged: make([]bool, n), asked: make([]bool, n), given: make([]int64, n), trimmed: make([]bool, n),
		latest: math.MinInt64,
	}
	for i := range r.need {
		r.need[i] = math.MinInt64
	}
	for _, ride := range rides {
		r.ride(ride)
	}
	for _, m := range members {
		r.judge(m)
	}
	return r
}

// ride applies what is never denied. A limit that the item does not have is nobody's business here.
func (r *reckoning) ride(of *ride) {
	r.latest = max(r.latest, of.now)
	for _, ch := range of.changes {
		i := r.after.index(ch.name)
		if i < 0 || r.after.limits[i].Incomplete {
			continue
		}
		if !r.undo(i, &ch) {
			r.change(i, &ch, of.now)
		}
		if !ch.moves {
			r.counts[i] += ch.milli
		}
	}
}

// undo gives back what was taken from a limit that was forgotten until then, if nobody has asked it
// since: then it is forgotten again.
func (r *reckoning) undo(i int, ch *change) bool {
	c, was := &r.after.limits[i], ch.from
	if was == nil || !was.forgotten || !c.untouchedSince(was, -ch.milli) {
		return false
	}
	c.balance, c.seen = was.balance, was.fullSince
	r.net[i] += ch.milli
	r.given[i] -= ch.milli
	return true
}

// change charges a limit, or gives back to it.
func (r *reckoning) change(i int, ch *change, now int64) {
	c := &r.after.limits[i]
	c.touch(now, r.after.shards)
	before := c.balance
	if ch.milli >= 0 {
		c.balance -= ch.milli
		r.charged[i] = true
	} else {
		c.give(-ch.milli)
		r.given[i] += c.balance - before
		r.trimmed[i] = r.trimmed[i] || c.balance-before < -ch.milli
	}
	r.net[i] += before - c.balance
}

// judge decides on one member, all or nothing.
func (r *reckoning) judge(m *member) {
	r.latest = max(r.latest, m.now)
	found := make([]counter, len(m.asks))
	fits := true
	for k := range m.asks {
		a := &m.asks[k]
		c := r.after.limit(a.name)
		c.touch(m.now, r.after.shards)
		found[k] = *c
		fits = fits && c.balance >= a.needs(r.after.shards)
	}
	v := verdict{found: found, shards: r.after.shards}
	if !fits {
		for k := range m.asks {
			r.after.limit(m.asks[k].name).forgetAgain()
		}
		v.ruling = denied
		r.short, r.lacking = append(r.short, m), append(r.lacking, v)
		return
	}
	r.fits, r.fitting = append(r.fits, m), append(r.fitting, v)
	for k := range m.asks {
		a := &m.asks[k]
		i := r.after.index(a.name)
		r.need[i] = max(r.need[i], r.net[i]+a.needs(r.after.shards))
		r.after.limits[i].balance -= a.milli
		r.net[i] += a.milli
		r.counts[i] += a.milli
		r.charged[i] = r.charged[i] || a.milli > 0
		r.asked[i] = true
	}
}

// correct moves what the members that fit have found by what others took or gave back in the
// meantime, as the item tells that was written.
func (r *reckoning) correct(m *image) {
	for i := range r.after.limits {
		a := &r.after.limits[i]
		c := m.limit(a.Name)
		if c == nil || !r.asked[i] {
			continue
		}
		at := max(a.seen, c.seen)
		moved := c.at(at) - a.at(at)
		if moved == 0 {
			continue
		}
		for f := range r.fitting {
			for k := range r.fitting[f].found {
				if found := &r.fitting[f].found[k]; found.Name == a.Name {
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

// has reports whether the image has every limit that a member asks, with the definition that it
// knows.
func (m *image) has(of *member) bool {
	for k := range of.asks {
		a := &of.asks[k]
		c := m.limit(a.name)
		if c == nil || c.Incomplete || a.limit != nil && !c.is(a.limit) {
			return false
		}
	}
	return true
}

// is reports whether the limit is stored as it is defined.
func (c *counter) is(l *weir.Limit) bool {
	return c.Capacity == l.Capacity*1000 && c.Refill == l.RefillAmount*1000 &&
		c.PeriodMS == l.RefillPeriod.Milliseconds()
}

// noting is the image with what was reckoned on it, where nothing is written: limits that were
// asked have been seen.
func (m *image) noting(after *image) *image {
	c := m.clone()
	for i := range c.limits {
		if a := after.limit(c.limits[i].Name); a != nil {
			l := &c.limits[i]
			l.balance, l.seen, l.rate, l.whole = a.balance, a.seen, a.rate, a.whole
		}
	}
	return c
}

// sighting is a limit that was judged or settled without a write.
type sighting struct {
	name string
	now  int64
	// limit is the definition in force, if the item may have another one; nil if it has not.
	limit *weir.Limit
	// denied is true if it was judged for a request that was denied.
	denied bool
}

// touched is the image after limits were asked.
func (m *image) touched(all ...sighting) *image {
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
			s := stored(a.limit)
			l.Capacity, l.Refill, l.PeriodMS = s.Capacity, s.Refill, s.PeriodMS
		}
		l.touch(a.now, c.shards)
		if a.denied {
			l.forgetAgain()
		}
		l.BucketLimit = item
	}
	return c
}
