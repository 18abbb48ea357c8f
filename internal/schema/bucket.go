package schema

import (
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Item is an item as DynamoDB has it.
type Item = map[string]types.AttributeValue

// Bucket is a bucket item: what is stored for one (entity, resource) and shard.
type Bucket struct {
	Namespace string
	Entity    string
	Resource  string
	Shard     int
	// RefilledMS is rf: the instant in Unix milliseconds up to which every limit has been credited. It
	// is the lock of all writes that refill.
	RefilledMS int64
	// Stub is true where the item has no rf: something was counted on an item that was gone.
	// RefilledMS is 0 then, and [Bucket.Item] writes none.
	Stub bool
	// Shards is how many shards the bucket has by this item; at least 1. That of shard 0 counts.
	Shards int
	// Cascade and Parent are the entity's, copied when the item was made; Parent is empty if none.
	Cascade bool
	Parent  string
	// Generation and Incarnation are pgen and pinc: which state of the entity Cascade and Parent are
	// of. Absent: 0 and "".
	Generation  int64
	Incarnation string
	// Stamped is true where the item has pgen, even if it is 0.
	Stamped bool
	// TTL is when DynamoDB may delete the item, in Unix seconds; 0 for never.
	TTL int64
	// Limits are the limits, by name, without the one that counts writes.
	Limits []BucketLimit
	// Writes is the limit named wcu, which counts writes; nil if the item has none.
	Writes *BucketLimit
	// Disabled is true where somebody switched the bucket off.
	Disabled bool
	// ValidUntil is vu: from then on, in Unix milliseconds, only a write that refills may use the
	// balances. Absent: nil. 0 asks for one such write.
	ValidUntil *int64
	// Unjudged names the attributes of the whole item whose meaning weir does not judge by (sched,
	// rsched, sched_tz, bypass), in order. See also [BucketLimit.Unjudged].
	Unjudged []string
	// Extra are all attributes that the fields do not stand for, as they were read, and all of a limit
	// that is incomplete. Where both say something, the fields count.
	Extra Item
}

// BucketLimit is one limit on a bucket item. Amounts are in milli-units, of the whole bucket: a
// shard's share of capacity and refill is the amount divided by [Bucket.Shards], rounded down.
type BucketLimit struct {
	Name     string
	Balance  int64 // tk
	Capacity int64 // cp
	Refill   int64 // ra, per period
	PeriodMS int64 // rp
	Consumed int64 // tc: all that was ever taken, less what was given back
	// Incomplete is true where one of the five attributes is missing: the limit must be made anew.
	// [Bucket.Item] writes what was there, from Extra, and nothing from these fields.
	Incomplete bool
	// Unjudged names the attributes of the limit whose meaning weir does not judge by (ws, rsa, soft,
	// tu …; ra where it is 0, a quota that only a schedule fills), in order and without the "b_…_".
	Unjudged []string
}

// ID names the item.
func (b *Bucket) ID() BucketID { return BucketID{b.Namespace, b.Entity, b.Resource, b.Shard} }

// Limit returns the limit of that name, or nil.
func (b *Bucket) Limit(name string) *BucketLimit {
	for i := range b.Limits {
		if b.Limits[i].Name == name {
			return &b.Limits[i]
		}
	}
	return nil
}

// Attributes names all attributes that the item has of a limit, in order: those to remove with it.
func (b *Bucket) Attributes(limit string) []string {
	var names []string
	l := b.Limit(limit)
	if limit == WritesLimit {
		l = b.Writes
	}
	if l != nil && !l.Incomplete {
		for field := range l.fields {
			names = append(names, BucketAttribute(limit, field))
		}
	}
	for attribute := range b.Extra {
		if name, _, ok := ParseBucketAttribute(attribute); ok && name == limit {
			names = append(names, attribute)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Item returns the item as it is stored.
func (b *Bucket) Item() Item {
	id := b.ID()
	item := make(Item, len(b.Extra)+len(b.Limits)*5+24)
	maps.Copy(item, b.Extra)
	maps.Copy(item, id.Key().Item())
	item[AttrEntity] = String(b.Entity)
	item[AttrResource] = String(b.Resource)
	item[AttrCascade] = Bool(b.Cascade)
	item[AttrShardCount] = Number(int64(b.Shards))
	item[AttrGSI2PK] = String(ResourcePK(b.Namespace, b.Resource))
	item[AttrGSI2SK] = String(id.GSI2SK())
	item[AttrGSI3PK] = String(EntityPK(b.Namespace, b.Entity))
	item[AttrGSI3SK] = String(id.GSI3SK())
	item[AttrGSI4PK] = String(b.Namespace)
	item[AttrGSI4SK] = String(id.GSI4SK())
	b.addOptional(item)
	for i := range b.Limits {
		b.Limits[i].add(item)
	}
	if b.Writes != nil {
		b.Writes.add(item)
	}
	return item
}

// addOptional adds the attributes that not every bucket item has.
func (b *Bucket) addOptional(item Item) {
	if !b.Stub {
		item[AttrRF] = Number(b.RefilledMS)
	}
	if b.Parent != "" {
		item[AttrParent] = String(b.Parent)
	}
	if b.Stamped || b.Generation != 0 {
		item[AttrPGen] = Number(b.Generation)
	}
	if b.Incarnation != "" {
		item[AttrPInc] = String(b.Incarnation)
	}
	if b.TTL != 0 {
		item[AttrTTL] = Number(b.TTL)
	}
	if b.Disabled {
		item[AttrDisabled] = Bool(true)
	}
	if b.ValidUntil != nil {
		item[AttrVU] = Number(*b.ValidUntil)
	}
}

func (l *BucketLimit) add(item Item) {
	if l.Incomplete {
		return
	}
	for field, n := range l.fields {
		item[BucketAttribute(l.Name, field)] = Number(n)
	}
}

// fields yields the five fields that each limit has.
func (l *BucketLimit) fields(yield func(string, int64) bool) {
	_ = yield(FieldBalance, l.Balance) && yield(FieldCapacity, l.Capacity) &&
		yield(FieldRefill, l.Refill) && yield(FieldPeriod, l.PeriodMS) &&
		yield(FieldConsumed, l.Consumed)
}

func compareLimits(a, b BucketLimit) int { return strings.Compare(a.Name, b.Name) }

// Copy is a copy whose limits can be changed without changing those of the original.
func (b *Bucket) Copy() *Bucket {
	c := *b
	c.Limits = append([]BucketLimit(nil), b.Limits...)
	if b.Writes != nil {
		w := *b.Writes
		c.Writes = &w
	}
	return &c
}
