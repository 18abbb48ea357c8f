package memory

import (
	"context"
	"strconv"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/kernel"
)

// change is what an update does to one holding.
type change struct {
	claim
	spot
}

// claim is what one lease stands for on one limit, and shall stand for.
type claim struct {
	// limit is the definition in force.
	limit *weir.Limit
	// pieces are where the lease's units are; they belong to the caller.
	pieces []weir.Piece
	// from and to are the units that the lease stands for before and after.
	from, to int64
	// lives is false where the lease ends, so that nobody will ask for its pieces.
	lives bool
}

// Update makes a lease stand for something else. It is refused, with [weir.Invalid] and before anything
// is applied, if a count would no longer fit 64 bits.
func (s *Store) Update(_ context.Context, now time.Time, u *weir.Update, out *weir.Outcome) error {
	var few [8]change
	changes := few[:min(len(few), len(u.Changes))]
	if len(u.Changes) > len(few) {
		changes = make([]change, len(u.Changes))
	}
	var set stripeSet
	for i := range u.Changes {
		c, of := &changes[i], &u.Changes[i]
		c.claim = claim{limit: of.Limit, pieces: of.Holding.Pieces, from: of.From, to: of.To, lives: !u.Ends()}
		if i > 0 && of.Holding.Subject == u.Changes[i-1].Holding.Subject {
			c.follow(&changes[i-1].spot)
		} else {
			c.locate(s, &set, of.Holding.Subject)
		}
	}
	out.At = wholeMS(now)
	ms := now.UnixMilli()
	if err := s.change(ms, u, changes, &set, out); err != nil {
		return err
	}
	s.sweep(ms)
	return nil
}

// change checks every change under the stripes' locks, then applies them all.
func (s *Store) change(
	now int64, u *weir.Update, changes []change, set *stripeSet, out *weir.Outcome,
) error {
	s.lock(set)
	defer s.unlock(set)
	var it *item
	for i := range changes {
		c, h := &changes[i], u.Changes[i].Holding
		if c.first {
			it = c.stripe.find(h.Subject, c.hash)
		}
		c.open(now, it, h.Limit, c.limit)
		if c.to > c.from && !c.counter.Counts(now, kernel.Claim{Pieces: c.pieces, From: c.from, To: c.to}) {
			if !c.limit.Shadow {
				return unfit(&u.Changes[i])
			}
			c.to = c.from // it stands for what it did
			out.Taken[i].Units = c.from
		}
	}
	for i := range changes {
		out.Taken[i].Pieces = changes[i].apply(now, u.Verb, u.Changes[i].Holding.Subject)
	}
	return nil
}

// apply makes the change and returns where the lease's units are. It makes a state that was
// forgotten anew, so that an overrun always counts. An extend is about slots alone, and renews only
// what there is.
func (c *change) apply(now int64, verb weir.Verb, of weir.Subject) []weir.Piece {
	if verb == weir.VerbExtend {
		slots, ok := c.counter.(*kernel.Concurrency)
		if !ok || c.state == nil {
			return c.pieces
		}
		c.define(now, c.limit)
		return slots.Extend(now, c.pieces)
	}
	c.keep(of, c.limit)
	c.define(now, c.limit)
	return c.counter.Settle(now, kernel.Claim{Pieces: c.pieces, From: c.from, To: c.to, Ends: !c.lives})
}

func unfit(c *weir.Change) error {
	return &weir.Error{
		Code: weir.Invalid, Field: "totals." + c.Limit.Name, Value: strconv.FormatInt(c.To, 10),
		Reason: "is more than can be counted",
	}
}
