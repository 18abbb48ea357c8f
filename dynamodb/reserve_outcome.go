package dynamodb

import (
	"errors"
	"math"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/bucketitem"
	"github.com/weir-limiter/weir/kernel"
)

// isUnavailable reports whether an error says that the table did not answer.
func isUnavailable(err error) bool { return errors.Is(err, weir.Unavailable) }

// admitted is the answer to a reservation that was taken everywhere.
func (j *reserveOp) admitted() *weir.Outcome {
	for _, e := range j.itemCharges {
		for k := range e.takes {
			a := &e.takes[k]
			taken := &j.out.Taken[a.Holding]
			j.fillStatus(e, k)
			j.out.Limits[a.Holding].Available -= a.Milli / 1000
			taken.Pieces = taken.Pieces[:0]
			for _, d := range e.shardTakes {
				for i := range d.asks {
					if d.asks[i].Name == a.Name && (d.shard != 0 || len(e.shardTakes) > 1) {
						taken.Pieces = append(taken.Pieces, shardPiece{d.asks[i].Milli, d.shard}.toDriver())
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
		out.Contended = out.Contended || e.found.Kind == bucketitem.Contended
		for k := range e.takes {
			j.fillStatus(e, k)
		}
	}
	return out
}

// fillStatus fills in what one ask found.
func (j *reserveOp) fillStatus(e *itemCharge, k int) {
	a := &e.takes[k]
	t := &j.made.Takes[a.Holding]
	st := &j.out.Limits[a.Holding]
	st.Entity, st.Resource, st.Limit = t.Entity, t.Resource, t.Limit.Name
	st.Kind, st.Level = t.Limit.Kind, t.Level
	st.Capacity, st.Requested = t.Ceiling, a.Milli/1000
	if k >= len(e.found.Found) { // other writers were quicker, and nobody knows the item
		st.AtLeast = true
		return
	}
	c := &e.found.Found[k]
	balance, others := c.BalanceMilli, e.found.Others
	if others != nil {
		balance += others[k]
	}
	if others != nil { // what a shard has above its share for a while
		balance = min(balance, c.Capacity)
	}
	st.Available = kernel.Units(balance) - a.BelowCapacity/1000
	st.Exceeded = e.found.Kind == bucketitem.Denied && balance < a.Milli+a.BelowCapacity
	if e.found.Kind == bucketitem.Denied && others != nil && !e.exceeded() && c.BalanceMilli < a.Milli+a.BelowCapacity {
		st.Exceeded = true // enough, but scattered
	}
	if st.Exceeded {
		st.AtLeast = e.found.Shards > 1
		if st.AtLeast {
			all := *c
			all.BalanceMilli, all.Rate = balance, bucketitem.ShareOf(&c.BucketLimit, 1)
			c = &all
		}
		st.RetryAfter = waitFor(c, j.now, a.Milli+a.BelowCapacity)
		if st.AtLeast {
			st.RetryAfter = max(st.RetryAfter, time.Millisecond)
		}
	}
}

// exceeded reports whether all shards together have too little of some limit.
func (e *itemCharge) exceeded() bool {
	for k := range e.takes {
		a := &e.takes[k]
		if e.found.Found[k].BalanceMilli+e.found.Others[k] < a.Milli+a.BelowCapacity {
			return true
		}
	}
	return false
}

// waitFor is how long it takes until a counter holds so much.
func waitFor(c *bucketitem.LimitImage, now, milli int64) time.Duration {
	return kernel.Duration(c.Wait(now, milli))
}

// rememberDenials keeps what denied a journey. Of a bucket with several shards it also keeps what limits
// had that did not deny, since no image tells.
func (j *reserveOp) rememberDenials() {
	for _, e := range j.itemCharges {
		if e.found.Kind != bucketitem.Denied || len(e.found.Found) < len(e.takes) {
			continue
		}
		for k := range e.takes {
			st := &j.out.Limits[e.takes[k].Holding]
			r := bucketitem.Denial{Milli: math.MaxInt64, Since: j.now, Total: e.found.Found[k].BalanceMilli}
			switch {
			case st.Exceeded && st.RetryAfter > 0:
				r.Milli = e.takes[k].Milli + e.takes[k].BelowCapacity
				r.Until = j.now + min(st.RetryAfter.Milliseconds(), bucketitem.MaxRefusalMS)
			case e.found.Others != nil:
				r.Until = j.now + bucketitem.MaxRefusalMS
			default:
				continue
			}
			if e.found.Others != nil {
				r.Total += e.found.Others[k]
			}
			e.state.RememberDenial(e.takes[k].Name, r)
		}
	}
}

// deniedFromMemory denies a journey by what is remembered, if all its items are known, so that the
// answer can say what each limit has.
func (j *reserveOp) deniedFromMemory() bool {
	refuses := func(e *itemCharge) bool { return e.state.HasDenials() }
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
				e.state.Queue(0).NoteSeen(bucketitem.SeenLimit{Name: e.takes[k].Name, Now: j.now, Denied: true})
			}
		} else {
			e.found = bucketitem.Result{}
		}
	}
	return denies
}

// judgeFromMemory judges an errand by what is remembered. It is not known where an image does not tell what
// the limits have, or, with several shards, nothing is remembered of one.
func (e *itemCharge) judgeFromMemory(now int64) (denies, known bool) {
	m := e.state.Queue(0).ExpectedImage()
	if m == nil {
		return false, false
	}
	e.found = bucketitem.Result{Kind: bucketitem.Taken, Shards: m.Shards}
	for k := range e.takes {
		a := &e.takes[k]
		c := m.Limit(a.Name)
		r, ok := e.state.RecallDenial(a.Name, now)
		if c == nil || c.Incomplete || a.Limit != nil && !c.Matches(a.Limit) || m.Shards > 1 && !ok {
			return false, false
		}
		found, shards := *c, m.Shards
		if shards > 1 { // as if all of them were one
			shards = 1
			found.BalanceMilli, found.Seen, found.Rate = r.Total, r.Since, bucketitem.ShareOf(&c.BucketLimit, shards)
		}
		found.Touch(now, shards)
		e.found.Found = append(e.found.Found, found)
		if found.BalanceMilli < a.Milli+a.BelowCapacity {
			e.found.Kind, denies = bucketitem.Denied, denies || ok && a.Milli+a.BelowCapacity >= r.Milli
		}
	}
	return denies, true
}
