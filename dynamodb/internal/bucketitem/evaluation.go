package bucketitem

import (
	"math"
)

// Evaluation is what a batch comes to on an image: which waiters fit, what it does to each limit,
// and the image after it.
type Evaluation struct {
	After    *Image
	admitted []*Waiter
	denied   []*Waiter
	// effects are in the order of the image's limits.
	effects []effect
	// The results of the waiters that fit, and of those that do not.
	AdmittedResults, deniedResults []Result
	// latest is the latest now of the batch.
	latest int64
}

// effect is what an evaluation does to one limit, in milli-units.
type effect struct {
	// net is what the write takes, below zero for a refund.
	net int64
	// need is the least that must be stored besides what is credited; asked says that it must be.
	need  int64
	asked bool
	// charged is true if anything is charged.
	charged bool
	// refunded is what was refunded, and trimmed whether there was more to refund than the limit
	// had room for, by this image.
	refunded int64
	trimmed  bool
	// consumed is by how much the count of consumed units moves.
	consumed int64
}

// evaluate applies updates, then judges waiters in their order. Each one that fits counts for
// those after it.
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
			r.applyDelta(i, &ch, of.Now)
		}
		if !ch.betweenShards {
			r.effects[i].consumed += ch.Milli
		}
	}
}

// undoDelta refunds what was taken from a limit that was forgotten until then. If nothing has
// asked for it since, it is forgotten again.
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

// applyDelta charges a limit, or refunds to it.
func (r *Evaluation) applyDelta(i int, ch *Delta, now int64) {
	c, x := &r.After.Limits[i], &r.effects[i]
	c.Touch(now, r.After.Shards)
	before := c.BalanceMilli
	if ch.Milli >= 0 {
		c.BalanceMilli -= ch.Milli
		x.charged = true
	} else {
		c.refund(-ch.Milli)
		x.refunded += c.BalanceMilli - before
		x.trimmed = x.trimmed || c.BalanceMilli-before < -ch.Milli
	}
	x.net += before - c.BalanceMilli
}

// judge decides on one waiter, all or nothing.
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
		x.consumed += a.Milli
		x.charged = x.charged || a.Milli > 0
	}
}

// correctFound moves what the admitted waiters have found by what other writers took or refunded
// meanwhile, as the written item tells.
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
					found.forgotten = false // others have used it
				}
			}
		}
	}
}

// concerns reports whether the write concerns a limit.
func (r *Evaluation) concerns(i int) bool {
	x := &r.effects[i]
	return x.asked || x.charged || x.refunded > 0 || x.consumed != 0
}

// maxDefined bounds the definitions that one condition checks, because DynamoDB bounds the length
// of an expression. With more, a write relies on the time of the refill, which every change of a
// definition moves, or on the item's stamp (vu).
const maxDefined = 16

// canRequireDefinitions reports whether a write on an image can require the definition of each
// limit that it concerns, changes or removes.
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

// balanceBounds returns the stored balances between which a limit can be charged without crediting
// it up to now: not less than what is needed, and not more than leaves room for all that it has
// gained since the last refill. Above that, its share would have been full, and judging by what is
// stored would credit the same time twice.
func (m *Image) balanceBounds(r *Evaluation, i int) (low, high int64) {
	c := &m.Limits[i]
	rate := ShareOf(&c.BucketLimit, m.Shards)
	low, high = math.MinInt64, math.MaxInt64
	if r.effects[i].asked {
		low = r.effects[i].need
	}
	if r.effects[i].charged {
		high = rate.CapacityMilli - rate.Gain(m.Item.RefilledMS, r.After.Limits[i].Seen)
	}
	if r.effects[i].refunded > 0 {
		high = min(high, rate.CapacityMilli-r.effects[i].refunded)
	}
	return low, high
}

// needsNoRefill reports whether an evaluation can be written without moving the time of the
// refill.
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
