package aggregator

import (
	"cmp"
	"iter"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
)

// Booking is what a batch of records adds to one usage item.
type Booking struct {
	Namespace, Entity, Resource string
	// Hour is the start of the hour.
	Hour time.Time

	entries []entry // by shard, and then in order
	sums    sums
}

// entry is what one record adds.
type entry struct {
	shard     int
	position  Position
	after     Counts
	units     map[string]int64 // not 0
	overdrawn []string
}

// sums are the sums of entries.
type sums struct {
	units, overdrawn map[string]int64
	events           int64
}

// Book sorts the changes of a batch into bookings, in the order in which they have to be written:
// by hour, so that of one bucket the earlier hour is written first. Changes may be out of order, and
// may occur twice. bases has what was counted last of the buckets whose records may have a gap
// before the first one of the batch.
func Book(changes []*Change, bases map[schema.BucketID]*Base) []*Booking {
	sorted := slices.SortedStableFunc(slices.Values(changes), func(a, b *Change) int {
		return cmp.Or(cmp.Compare(a.Bucket.PK(), b.Bucket.PK()), cmp.Compare(a.Position, b.Position))
	})
	type target struct {
		namespace, entity, resource string
		hour                        time.Time
	}
	open := make(map[target]*Booking)
	var all []*Booking
	for i, c := range sorted {
		if i > 0 && sorted[i-1].Bucket == c.Bucket {
			if sorted[i-1].Position == c.Position {
				continue
			}
		} else if base := bases[c.Bucket]; base != nil {
			followed := *c
			followed.follow(base)
			c = &followed
		}
		to := target{
			c.Bucket.Namespace, c.Bucket.Entity, c.Bucket.Resource, weir.Hourly.Start(c.At),
		}
		e := c.entry()
		b := open[to]
		if b == nil || !b.add(e) { // the sums of a batch need not fit 64 bits
			b = &Booking{
				Namespace: to.namespace, Entity: to.entity, Resource: to.resource, Hour: to.hour,
			}
			b.add(e)
			open[to], all = b, append(all, b)
		}
	}
	slices.SortStableFunc(all, func(a, b *Booking) int { return a.Hour.Compare(b.Hour) })
	return all
}

func (c *Change) entry() entry {
	e := entry{
		shard: c.Bucket.Shard, position: c.Position, after: c.After, overdrawn: c.Overdrawn,
		units: make(map[string]int64),
	}
	for limit := range c.After {
		if n := c.units(limit); n != 0 {
			e.units[limit] = n
		}
	}
	if len(c.Unread) > 0 {
		e.after = maps.Clone(c.After)
		for _, limit := range c.Unread {
			e.after[limit] = unreadCount
		}
	}
	return e
}

// add adds an entry, and reports whether the sums fit 64 bits. If not, the booking is unchanged.
func (b *Booking) add(e entry) bool {
	for limit, n := range e.units {
		sum := b.sums.units[limit]
		if n > 0 && sum > math.MaxInt64-n || n < 0 && sum < math.MinInt64-n {
			return false
		}
	}
	if b.sums.units == nil {
		b.sums.units = make(map[string]int64)
	}
	for limit, n := range e.units {
		b.sums.units[limit] += n
		b.sums.events++
	}
	for _, limit := range e.overdrawn {
		if b.sums.overdrawn == nil {
			b.sums.overdrawn = make(map[string]int64)
		}
		b.sums.overdrawn[limit]++
	}
	b.entries = append(b.entries, e)
	return true
}

// Key is the key of the usage item.
func (b *Booking) Key() schema.Key { return b.usage().Key() }

// usage returns the usage item with no usage.
func (b *Booking) usage() *schema.Usage {
	id := schema.BucketID{Namespace: b.Namespace, Entity: b.Entity, Resource: b.Resource}
	return schema.NewUsage(id, weir.Hourly, b.Hour)
}

// Update is the update of a usage item.
type Update struct {
	// Usage is the whole item as it would be without earlier usage. Its attributes are set if they
	// do not exist; its counters and its events are added.
	Usage *schema.Usage
	// Shards are the shards of the bucket with records in the booking, in order.
	Shards []ShardUpdate
}

// ShardUpdate is the part of an update that concerns one shard of the bucket.
type ShardUpdate struct {
	Shard int
	// First is the position of the first record: the item must not have one at or beyond it.
	First Position
	// Last and Counts are of the last record, and are set.
	Last   Position
	Counts Counts
}

// Update returns the update that writes a booking.
func (b *Booking) Update() *Update {
	u := &Update{Usage: b.usage()}
	u.Usage.Counters, u.Usage.Overdrawn = maps.Clone(b.sums.units), maps.Clone(b.sums.overdrawn)
	u.Usage.Events = b.sums.events
	for _, e := range b.entries {
		last := len(u.Shards) - 1
		if last < 0 || u.Shards[last].Shard != e.shard {
			u.Shards = append(u.Shards, ShardUpdate{Shard: e.shard, First: e.position})
			last++
		}
		u.Shards[last].Last, u.Shards[last].Counts = e.position, e.after
	}
	return u
}

// Rest returns the part of a booking that a usage item does not have yet; nil if it has all.
func (b *Booking) Rest(item schema.Item) *Booking {
	rest := &Booking{
		Namespace: b.Namespace, Entity: b.Entity, Resource: b.Resource, Hour: b.Hour,
	}
	for _, e := range b.entries {
		if e.position > Position(schema.StringAttribute(item, schema.PositionAttribute(e.shard))) {
			rest.add(e)
		}
	}
	if len(rest.entries) == 0 {
		return nil
	}
	return rest
}

// Records returns the number of records in a booking.
func (b *Booking) Records() int { return len(b.entries) }

// Positions yields the positions of the records in a booking.
func (b *Booking) Positions() iter.Seq[Position] {
	return func(yield func(Position) bool) {
		for i := range b.entries {
			if !yield(b.entries[i].position) {
				return
			}
		}
	}
}
