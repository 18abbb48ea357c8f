package dynamodb

import (
	"slices"
	"strings"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
)

// terms are what the configuration says of a subject: the limits that its bucket items must have,
// and no others, by name.
type terms struct {
	level  weir.Level
	limits []weir.Limit
	// standing is true where the configuration says nothing, and these are the limits that the item
	// has.
	standing bool
}

// permanent reports whether bucket items under these terms are never deleted by themselves:
// somebody gave the entity limits of its own.
func (t *terms) permanent() bool { return !schema.Expires(t.level) }

// limit returns the limit of that name, or nil.
func (t *terms) limit(name string) *weir.Limit {
	for i := range t.limits {
		if t.limits[i].Name == name {
			return &t.limits[i]
		}
	}
	return nil
}

// stored is a limit as items store it, with nothing in it yet.
func stored(l *weir.Limit) schema.BucketLimit {
	return schema.BucketLimit{
		Name: l.Name, Capacity: l.Capacity * 1000, Refill: l.RefillAmount * 1000,
		PeriodMS: l.RefillPeriod.Milliseconds(),
	}
}

// limitOf is a stored limit as a definition.
func limitOf(l *schema.BucketLimit) weir.Limit {
	return weir.Limit{
		Name: l.Name, Kind: weir.Bucket, Capacity: l.Capacity / 1000, RefillAmount: l.Refill / 1000,
		RefillPeriod: time.Duration(l.PeriodMS) * time.Millisecond,
	}
}

// fulfilled reports whether the image has exactly the limits of the terms, as they are defined.
func (t *terms) fulfilled(m *image) bool {
	if len(m.limits) != len(t.limits) {
		return false
	}
	for i := range t.limits {
		c := m.limit(t.limits[i].Name)
		if c == nil || c.Incomplete || !c.is(&t.limits[i]) {
			return false
		}
	}
	return true
}

// adapt is the image under terms: limits that were changed are defined anew, those that were added
// are full, and those that were removed are gone.
func (m *image) adapt(t *terms, ghosts map[string]counter) *image {
	a := *m
	a.limits = make([]counter, 0, len(t.limits))
	for i := range t.limits {
		s := stored(&t.limits[i])
		if was := m.limit(s.Name); was != nil && !was.Incomplete {
			c := *was
			c.Capacity, c.Refill, c.PeriodMS = s.Capacity, s.Refill, s.PeriodMS
			a.limits = append(a.limits, c)
			continue
		}
		c := fresh(s, m.shards)
		if ghost, ok := ghosts[s.Name]; ok {
			ghost.BucketLimit, ghost.seed = s, true
			c = ghost
		}
		a.limits = append(a.limits, c)
	}
	slices.SortFunc(a.limits, func(x, y counter) int { return strings.Compare(x.Name, y.Name) })
	return &a
}

// fresh is a limit that nobody has used: a share of it, full since 1970, so that it is forgotten
// until it is asked.
func fresh(s schema.BucketLimit, shards int) counter {
	c := newCounter(s, 0, shards)
	c.balance, c.seed = c.rate.CapacityMilli, true
	return c
}
