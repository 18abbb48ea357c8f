package dynamodb

import (
	"errors"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/kernel"
)

// isUnavailable reports whether an error says that the table did not answer.
func isUnavailable(err error) bool { return errors.Is(err, weir.Unavailable) }

// admittedOutcome is the answer to a reservation that was taken everywhere.
func (j *journey) admittedOutcome() *weir.Outcome {
	for _, e := range j.errands {
		for k := range e.asks {
			a := &e.asks[k]
			taken := &j.out.Taken[a.holding]
			j.status(e, k)
			j.out.Limits[a.holding].Available -= a.milli / 1000
			taken.Pieces = taken.Pieces[:0]
			for _, d := range e.draws {
				for i := range d.asks {
					if d.asks[i].name == a.name && (d.shard != 0 || len(e.draws) > 1) {
						taken.Pieces = append(taken.Pieces, piece{d.asks[i].milli, d.shard}.kept())
					}
				}
			}
		}
	}
	return j.out
}

// deniedOutcome is the answer to one that some limit denied.
func (j *journey) deniedOutcome() *weir.Outcome {
	out := j.out
	out.Denied = true
	for _, e := range j.errands {
		out.Contended = out.Contended || e.found.ruling == contended
		for k := range e.asks {
			j.status(e, k)
		}
	}
	return out
}

// status fills in what one ask found.
func (j *journey) status(e *errand, k int) {
	a := &e.asks[k]
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
	st.Available = kernel.Units(balance) - a.lowered/1000
	st.Exceeded = e.found.ruling == denied && balance < a.milli+a.lowered
	if e.found.ruling == denied && others != nil && !e.lacks() && c.balance < a.milli+a.lowered {
		st.Exceeded = true // enough, but scattered
	}
	if st.Exceeded {
		st.AtLeast = e.found.shards > 1
		if st.AtLeast {
			all := *c
			all.balance, all.rate = balance, shareOf(&c.BucketLimit, 1)
			c = &all
		}
		st.RetryAfter = wait(c, j.now, a.milli+a.lowered)
		if st.AtLeast {
			st.RetryAfter = max(st.RetryAfter, time.Millisecond)
		}
	}
}

// lacks reports whether all shards together have too little of some limit.
func (e *errand) lacks() bool {
	for k := range e.asks {
		a := &e.asks[k]
		if e.found.found[k].balance+e.found.others[k] < a.milli+a.lowered {
			return true
		}
	}
	return false
}

// wait is how long it takes until a counter holds so much.
func wait(c *counter, now, milli int64) time.Duration {
	return kernel.Duration(c.wait(now, milli))
}
