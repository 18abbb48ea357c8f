package memory

import (
	"context"
	"strconv"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/kernel"
)

// activeChange is a change of an update while it is applied.
type activeChange struct {
	limitRef
	limit *weir.Limit // the definition in force
	claim kernel.Change
}

// Update changes what a lease stands for. If a counter could not hold the change, it returns an
// error with code [weir.Invalid] and applies nothing.
func (s *Store) Update(_ context.Context, now time.Time, u *driver.Update, out *driver.Outcome) error {
	var few [8]activeChange
	changes := few[:min(len(few), len(u.Changes))]
	if len(u.Changes) > len(few) {
		changes = make([]activeChange, len(u.Changes))
	}
	var set stripeSet
	for i := range u.Changes {
		c, of := &changes[i], &u.Changes[i]
		c.limit = of.Limit
		c.claim = kernel.Change{Pieces: of.Holding.Pieces, From: of.From, To: of.To, Ends: u.Ends()}
		if i > 0 && of.Holding.Subject == u.Changes[i-1].Holding.Subject {
			c.sameSubjectAs(&changes[i-1].limitRef)
		} else {
			c.locate(s, &set, of.Holding.Subject)
		}
	}
	out.At = now.Truncate(time.Millisecond)
	ms := now.UnixMilli()
	if err := s.applyChanges(ms, u, changes, &set, out); err != nil {
		return err
	}
	s.sweep(ms)
	return nil
}

// applyChanges checks every change with the stripes locked, and then applies all of them.
func (s *Store) applyChanges(
	now int64, u *driver.Update, changes []activeChange, set *stripeSet, out *driver.Outcome,
) error {
	s.lock(set)
	defer s.unlock(set)
	var it *subjectState
	for i := range changes {
		c, h := &changes[i], u.Changes[i].Holding
		if c.first {
			it = c.stripe.find(h.Subject, c.hash)
		}
		c.load(now, it, h.Limit, c.limit)
		if c.claim.To > c.claim.From && !c.counter.CanCount(now, c.claim) {
			if !c.limit.Shadow {
				return changeError(&u.Changes[i])
			}
			c.claim.To = c.claim.From // the lease stands for the same as before
			out.Taken[i].Units = c.claim.From
		}
	}
	hour := hourOf(now)
	for i := range changes {
		c := &changes[i]
		out.Taken[i].Pieces = c.apply(now, u.Verb, u.Changes[i].Holding.Subject)
		if change := &u.Changes[i]; out.Taken[i].Units == change.To { // else a shadow limit keeps its units
			c.stripe.count(c.item, c.index, hour, change.Used-change.From)
		}
	}
	return nil
}

// apply applies the change and returns where the lease's units then are. If the limit's state was
// removed as idle, it is created again, so that an overrun always counts. An extend concerns slots
// only, and renews those that the counter still has.
func (c *activeChange) apply(now int64, verb weir.Verb, of weir.Subject) []driver.Piece {
	if verb == weir.VerbExtend {
		slots, ok := c.counter.(*kernel.Concurrency)
		if !ok || c.index < 0 {
			return c.claim.Pieces
		}
		c.define(now, c.limit)
		return slots.Extend(now, c.claim.Pieces)
	}
	c.store(of, c.limit)
	c.define(now, c.limit)
	return c.counter.Apply(now, c.claim)
}

func changeError(c *driver.Change) error {
	return &weir.Error{
		Code: weir.Invalid, Field: "totals." + c.Limit.Name, Value: strconv.FormatInt(c.To, 10),
		Reason: "is more than a limit can count",
	}
}
