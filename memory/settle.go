package memory

import (
	"context"
	"strconv"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/takes"
)

// change is what a settlement does to one holding.
type change struct {
	claim
	spot
	// stays is true where a shadow limit cannot count more, so that the lease's parts are as before.
	stays bool
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

// Settle makes a lease stand for something else. It is refused, with [weir.Invalid] and before
// anything is applied, where a count would no longer fit 64 bits or slots would grow. The holdings
// given are not changed.
func (s *Store) Settle(
	_ context.Context, now time.Time, st *weir.Settlement,
) (*weir.Outcome, error) {
	return s.settle(now, st)
}

func (s *Store) settle(now time.Time, st *weir.Settlement) (*weir.Outcome, error) {
	if st.Verb != weir.VerbExtend && len(st.Totals) != len(st.Holdings) {
		return nil, &weir.Error{
			Code: weir.Invalid, Field: "totals", Value: strconv.Itoa(len(st.Totals)),
			Reason: "must be one for each of " + strconv.Itoa(len(st.Holdings)) + " holdings",
		}
	}
	var few [8]change
	changes := few[:min(len(few), len(st.Holdings))]
	if len(st.Holdings) > len(few) {
		changes = make([]change, len(st.Holdings))
	}
	var set stripeSet
	for i := range st.Holdings {
		c, h := &changes[i], &st.Holdings[i]
		if err := c.read(st, i); err != nil {
			return nil, err
		}
		if i > 0 && h.Subject == st.Holdings[i-1].Subject {
			c.follow(&changes[i-1].spot)
		} else {
			c.locate(s, &set, h.Subject)
		}
	}
	out := st.Outcome(wholeMS(now))
	if st.Verb == weir.VerbAdjust || st.Verb == weir.VerbExtend {
		out.Holdings = make([]weir.Holding, len(st.Holdings))
	}
	ms := now.UnixMilli()
	if err := s.change(ms, st, changes, &set, out.Holdings); err != nil {
		return nil, err
	}
	s.sweep(ms)
	return out, nil
}

// read finds out what is asked of one holding.
func (c *change) read(st *weir.Settlement, i int) error {
	h := &st.Holdings[i]
	c.limit, c.pieces, c.from = h.Limit, h.Pieces, h.Cost()
	c.to = c.from
	c.lives = st.Verb == weir.VerbAdjust || st.Verb == weir.VerbExtend
	if i < len(st.Limits) && st.Limits[i] != nil {
		c.limit = st.Limits[i]
	}
	if st.Verb == weir.VerbExtend {
		return nil
	}
	slots := h.Limit.Kind == weir.Concurrency
	if slots && !c.lives {
		c.to = 0
		return nil
	}
	var ok bool
	if c.to, ok = takes.Sum(st.Totals[i]); !ok {
		return unfit(st, i, "is more than can be counted")
	}
	if slots && c.to > c.from {
		return unfit(st, i, "the lease stands for only "+strconv.FormatInt(c.from, 10))
	}
	return nil
}

// change checks every change under the stripes' locks, then applies them all. Holdings are those of
// a lease that lives on.
func (s *Store) change(
	now int64, st *weir.Settlement, changes []change, set *stripeSet, holdings []weir.Holding,
) error {
	s.lock(set)
	defer s.unlock(set)
	var it *item
	for i := range changes {
		c, h := &changes[i], &st.Holdings[i]
		if c.first {
			it = c.stripe.find(h.Subject, c.hash)
		}
		c.open(now, it, h.Limit, c.limit)
		if c.to > c.from && !c.counter.counts(now, c.claim) {
			if !c.limit.Shadow {
				return unfit(st, i, "is more than can be counted")
			}
			c.to, c.stays = c.from, true
		}
	}
	for i := range changes {
		pieces := changes[i].apply(now, st.Verb, st.Holdings[i].Subject)
		if holdings == nil {
			continue
		}
		holdings[i] = st.Holdings[i]
		holdings[i].Limit = changes[i].limit
		holdings[i].Pieces = pieces
		if st.Verb == weir.VerbAdjust && !changes[i].stays {
			holdings[i].Parts = append([]weir.Part(nil), st.Totals[i]...)
		}
	}
	return nil
}

// apply makes the change and returns where the lease's units are. It makes a state that was
// forgotten anew, so that an overrun always counts. An extend is about slots alone, and renews only
// what there is.
func (c *change) apply(now int64, verb weir.Verb, of weir.Subject) []weir.Piece {
	if verb == weir.VerbExtend {
		o, ok := c.counter.(*occupancy)
		if !ok || c.limit.Kind != weir.Concurrency || c.fresh || o.idle(now, forgetMS) {
			return c.pieces
		}
		return o.extend(now, c.pieces, c.limit)
	}
	c.keep(of, c.limit)
	return c.counter.settle(now, c.claim)
}

func unfit(st *weir.Settlement, i int, reason string) error {
	t := weir.Take{Parts: st.Totals[i]}
	return &weir.Error{
		Code: weir.Invalid, Field: "totals." + st.Holdings[i].Limit.Name,
		Value: strconv.FormatInt(t.Cost(), 10), Reason: reason,
	}
}
