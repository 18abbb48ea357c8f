package aggregator

import (
	"github.com/weir-limiter/weir/internal/schema"
)

// Base is what was last counted of a bucket item.
type Base struct {
	Position Position
	Counts   Counts
}

// LastCounted returns what was last counted of a shard of a bucket, by the bucket's usage items. It
// returns nil if nothing was.
func LastCounted(shard int, items []schema.Item) *Base {
	var last *Base
	for _, item := range items {
		p := Position(schema.StringAttribute(item, schema.PositionAttribute(shard)))
		if p == "" || last != nil && last.Position >= p {
			continue
		}
		counts, ok := ParseCounts(schema.StringAttribute(item, schema.CountedAttribute(shard)))
		if !ok {
			counts = nil // without the counts nothing can be made good
		}
		last = &Base{p, counts}
	}
	return last
}

// NothingCounted returns the base of a bucket item that was created after the counting began and was
// not counted yet: all that it says it used is missing.
func NothingCounted() *Base { return &Base{Counts: Counts{}} }

// follow makes the change of a bucket begin at what was counted last, so that it is booked with all
// that the records between the two would have added. If the item was deleted and created again in
// between, it has counted from 0 since, and only that is booked: what was taken of the earlier item
// is not known. Its count of writes shows that, because it never goes down while an item exists. A
// limit whose count could not be read then begins at this change.
func (c *Change) follow(base *Base) {
	if base == nil || base.Counts == nil || c.Position <= base.Position || c.Created {
		return
	}
	before := make(Counts, len(c.Before))
	again := c.Before[schema.WritesLimit] < base.Counts[schema.WritesLimit]
	for limit, n := range c.Before {
		switch {
		case base.Counts[limit] == unreadCount:
			before[limit] = n
		case !again:
			before[limit] = base.Counts[limit]
		}
	}
	c.Before = before
}
