package dynamodb

import (
	"errors"
	"math"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/kernel"
)

// isUnavailable reports whether an error says that the table did not answer.
func isUnavailable(err error) bool { return errors.Is(err, weir.Unavailable) }

// admitted is the answer to a reservation that was taken everywhere.
func (j *reserveOp) admitted() *weir.Outcome {
	for _, e := range j.itemCharges {
		for k := range e.takes {
			a := &e.takes[k]
			taken := &j.out.Taken[a.holding]
			j.fillStatus(e, k)
			j.out.Limits[a.holding].Available -= a.milli / 1000
			taken.Pieces = taken.Pieces[:0]
			for _, d := range e.shardTakes {
				for i := range d.asks {
					if d.asks[i].name == a.name && (d.shard != 0 || len(e.shardTakes) > 1) {
						taken.Pieces = append(taken.Pieces, shardPiece{d.asks[i].milli, d.shard}.toDriver())
					}
				}
			}
		}
	}
	return j.out
}

// deniedOutcome is the answer to one that some limit denied.
func (j *reserveOp) deniedOutcome() *weir.Outcome {
	out := j.out
	out.Denied = true
	for _, e := range j.itemCharges {
		out.Contended = out.Contended || e.found.kind == contended
		for k := range e.takes {
			j.fillStatus(e, k)
		}
	}
	return out
}

// fillStatus fills in what one ask found.
func (j *reserveOp) fillStatus(e *itemCharge, k int) {
	a := &e.takes[k]
	t := &j.made.Takes[a.holding]
	st := &j.out.Limits[a.holding]
	st.Entity, st.Resource, st.Limit = t.Entity, t.Resource, t.Limit.Name
	st.Kind, st.Level = t.Limit.Kind, t.Level
	st.Capacity, st.Requested = t.Ceiling, a.milli/1000
	if k >= len(e.found.found) { // other writers were quicker, and nobody knows the item
		st.AtLeast = true
		return
	}
	c := &e.found.found[k]
	balance, others := c.balance, e.found.others
	if others != nil {
		balance += others[k]
	}
	if others != nil { // what a shard has above its share for a while
		balance = min(balance, c.Capacity)
	}
	st.Available = kernel.Units(balance) - a.belowCapacity/1000
	st.Exceeded = e.found.kind == denied && balance < a.milli+a.belowCapacity
	if e.found.kind == denied && others != nil && !e.exceeded() && c.balance < a.milli+a.belowCapacity {
		st.Exceeded = true // enough, but scattered
	}
	if st.Exceeded {
		st.AtLeast = e.found.shards > 1
		if st.AtLeast {
			all := *c
			all.balance, all.rate = balance, shareOf(&c.BucketLimit, 1)
			c = &all
		}
		st.RetryAfter = waitFor(c, j.now, a.milli+a.belowCapacity)
		if st.AtLeast {
			st.RetryAfter = max(st.RetryAfter, time.Millisecond)
		}
	}
}

// exceeded reports whether all shards together have too little of some limit.
func (e *itemCharge) exceeded() bool {
	for k := range e.takes {
		a := &e.takes[k]
		if e.found.found[k].balance+e.found.others[k] < a.milli+a.belowCapacity {
			return true
		}
	}
	return false
}

// waitFor is how long it takes until a counter holds so much.
func waitFor(c *limitImage, now, milli int64) time.Duration {
	return kernel.Duration(c.wait(now, milli))
}

// rememberDenials keeps what denied a journey. Of a bucket with several shards it also keeps what limits
// had that did not deny, since no image tells.
func (j *reserveOp) rememberDenials() {
	for _, e := range j.itemCharges {
		if e.found.kind != denied || len(e.found.found) < len(e.takes) {
			continue
		}
		for k := range e.takes {
			st := &j.out.Limits[e.takes[k].holding]
			r := rememberedDenial{milli: math.MaxInt64, since: j.now, total: e.found.found[k].balance}
			switch {
			case st.Exceeded && st.RetryAfter > 0:
				r.milli = e.takes[k].milli + e.takes[k].belowCapacity
				r.until = j.now + min(st.RetryAfter.Milliseconds(), maxRefusalMS)
			case e.found.others != nil:
				r.until = j.now + maxRefusalMS
			default:
				continue
			}
			if e.found.others != nil {
				r.total += e.found.others[k]
			}
			e.state.rememberDenial(e.takes[k].name, r)
		}
	}
}

// deniedFromMemory denies a journey by what is remembered, if all its items are known, so that the
// answer can say what each limit has.
func (j *reserveOp) deniedFromMemory() bool {
	refuses := func(e *itemCharge) bool { return e.state.hasDenials() }
	if j.unplanned || !slices.ContainsFunc(j.itemCharges, refuses) {
		return false // as nearly always: nothing need be looked at
	}
	denies := false
	for _, e := range j.itemCharges {
		denied, known := e.judgeFromMemory(j.now)
		if !known {
			return false
		}
		denies = denies || denied
	}
	for _, e := range j.itemCharges {
		if denies {
			for k := range e.takes {
				e.state.queue(0).noteSeen(seenLimit{name: e.takes[k].name, now: j.now, denied: true})
			}
		} else {
			e.found = waiterResult{}
		}
	}
	return denies
}

// judgeFromMemory judges an errand by what is remembered. It is not known where an image does not tell what
// the limits have, or, with several shards, nothing is remembered of one.
func (e *itemCharge) judgeFromMemory(now int64) (denies, known bool) {
	m := e.state.queue(0).expectedImage()
	if m == nil {
		return false, false
	}
	e.found = waiterResult{kind: taken, shards: m.shards}
	for k := range e.takes {
		a := &e.takes[k]
		c := m.limit(a.name)
		r, ok := e.state.rememberedDenial(a.name, now)
		if c == nil || c.Incomplete || a.limit != nil && !c.matches(a.limit) || m.shards > 1 && !ok {
			return false, false
		}
		found, shards := *c, m.shards
		if shards > 1 { // as if all of them were one
			shards = 1
			found.balance, found.seen, found.rate = r.total, r.since, shareOf(&c.BucketLimit, shards)
		}
		found.touch(now, shards)
		e.found.found = append(e.found.found, found)
		if found.balance < a.milli+a.belowCapacity {
			e.found.kind, denies = denied, denies || ok && a.milli+a.belowCapacity >= r.milli
		}
	}
	return denies, true
}
