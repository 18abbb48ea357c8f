package dynamodb

import (
	"context"
	"maps"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
)

// wrongWrites are the worst of what was found, as far as it can be done between weir and the table,
// with the cases that notice. A division by what a leftover does not define is made in the process,
// where nothing stands between.
func wrongWrites() []*wrong {
	return []*wrong{
		{name: "a charge goes by what a process believes", caught: []string{"refill: what it filled up"},
			update: func(u *bucketUpdate) {
				if !u.refills() {
					u.unbounded(true, false)
				}
			}},
		{name: "a refill goes by what a process believes", caught: []string{"refill: an image of a full limit"},
			update: func(u *bucketUpdate) {
				if u.refills() {
					u.unbounded(true, false)
				}
			}},
		{name: "a definition is written over whatever there is", caught: []string{"terms: what was read before"},
			update: func(u *bucketUpdate) {
				if !u.redefines() {
					return
				}
				for _, f := range []string{schema.FieldCapacity, schema.FieldRefill, schema.FieldPeriod, schema.AttrRF} {
					u.requires = without(u.requires, u.of(f))
				}
			}},
		{name: "a cost that no bucket can hold is left out", caught: []string{"counted: a cost that no bucket"},
			store: func(s *Store) weir.Backend { return generous{s} }},
	}
}

// generous does not charge what is too much to count.
type generous struct{ *Store }

// ReserveLazily takes the rest of what is asked.
func (g generous) ReserveLazily(
	ctx context.Context, now time.Time, r *weir.Reservation,
) (*weir.Plan, *weir.Outcome, error) {
	c := *r
	c.Charges = append([]weir.Charge(nil), r.Charges...)
	for i := range c.Charges {
		c.Charges[i].Costs = maps.Clone(c.Charges[i].Costs)
		maps.DeleteFunc(c.Charges[i].Costs, func(_ string, units int64) bool { return units > maxUnits })
	}
	return g.Store.ReserveLazily(ctx, now, &c)
}
