package dynamodb

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/internal/schema"
)

// wrongWrites returns the worst faults found, as far as they can be injected between weir and the
// table, with the cases that catch them. A division by a missing definition happens inside the
// process and cannot be injected.
func wrongWrites() []*wrong {
	return []*wrong{
		{name: "a charge goes by what a process believes", caught: []string{"refill: units that others have taken"},
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
		{name: "a definition is written over whatever there is", caught: []string{"definitions: an old read"},
			update: func(u *bucketUpdate) {
				if !u.redefines() {
					return
				}
				for _, f := range []string{schema.FieldCapacity, schema.FieldRefill, schema.FieldPeriod, schema.AttrRF} {
					u.requires = without(u.requires, u.of(f))
				}
			}},
		{name: "a cost that no bucket can hold is left out", caught: []string{"overflow: a cost that no bucket"},
			store: func(s *Store) driver.Store { return skipsOverflow{s} }},
	}
}

// skipsOverflow does not charge a cost that would overflow. It reports the limits with the largest
// capacity, because otherwise the limiter would refuse such a cost itself.
type skipsOverflow struct{ *Store }

// ReadConfig returns the limits with the largest capacity.
func (g skipsOverflow) ReadConfig(
	ctx context.Context, of weir.Subject, consistent bool,
) (*weir.Config, error) {
	c, err := g.Store.ReadConfig(ctx, of, consistent)
	if err != nil {
		return nil, err
	}
	for i := range c.Levels {
		l := &c.Levels[i]
		l.Limits = slices.Clone(l.Limits)
		for j := range l.Limits {
			l.Limits[j].Capacity = math.MaxInt64
		}
	}
	return c, nil
}

// Reserve takes the remaining costs, under the stored definitions.
func (g skipsOverflow) Reserve(
	ctx context.Context, now time.Time, p *driver.Plan, out *driver.Outcome,
) error {
	c := *p
	c.Subjects, c.Takes = slices.Clone(p.Subjects), nil
	for i := range c.Subjects {
		config, err := g.Store.ReadConfig(ctx, c.Subjects[i].Subject, true)
		if err != nil {
			return err
		}
		c.Subjects[i].Limits = config.Levels[0].Limits
	}
	for _, t := range p.Clone().Takes {
		if t.Cost() > maxUnits {
			continue
		}
		for _, j := range c.Subjects {
			for k := range j.Limits {
				if j.Subject == t.Subject && j.Limits[k].Name == t.Limit.Name {
					t.Limit, t.Ceiling = &j.Limits[k], j.Limits[k].Capacity
				}
			}
		}
		c.Takes = append(c.Takes, t)
	}
	some := c.Outcome()
	err := g.Store.Reserve(ctx, now, &c, some)
	out.At, out.Denied, out.Contended = some.At, some.Denied, some.Contended
	copy(out.Limits, some.Limits)
	copy(out.Taken, some.Taken)
	return err
}
