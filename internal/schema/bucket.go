package schema

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Item is an item in the SDK's form.
type Item = map[string]types.AttributeValue

// Bucket is a bucket item: the limits of one entity and resource on one shard.
type Bucket struct {
	Namespace string
	Entity    string
	Resource  string
	Shard     int
	// RefilledMS is rf, the time up to which every limit has been credited, in Unix milliseconds.
	// It is the lock of all writes that refill.
	RefilledMS int64
	// Stub is true if the item has no rf: units were counted on an item that had been deleted.
	// RefilledMS is 0 then, and [Bucket.Item] writes no rf.
	Stub bool
	// Shards is the shard count on this item, at least 1. The count on shard 0 is the one in force.
	Shards int
	// Cascade and Parent are copies of the entity's, made when the item was created or stamped;
	// Parent is empty if there is none.
	Cascade bool
	Parent  string
	// Generation and Incarnation are pgen and pinc. They identify the state of the entity from
	// which Cascade and Parent were copied. If absent they are 0 and "".
	Generation  int64
	Incarnation string
	// Stamped is true if the item has pgen, even if that is 0.
	Stamped bool
	// TTL is the time from which DynamoDB may delete the item, in Unix seconds; 0 for never.
	TTL int64
	// Limits are the limits by name, without the limit that counts writes.
	Limits []BucketLimit
	// Writes is the limit named wcu, which counts writes; nil if the item has none.
	Writes *BucketLimit
	// Disabled is true if an operator has disabled the bucket.
	Disabled bool
	// ValidUntil is vu, in Unix milliseconds; nil if absent. From then on only a write that refills
	// may use the balances. 0 asks for one such write.
	ValidUntil *int64
	// Unjudged names the attributes of the whole item that weir does not support (sched, rsched,
	// sched_tz, bypass), in order. See also [BucketLimit.Unjudged].
	Unjudged []string
	// Extra are all attributes that no field holds, as they were read, and all attributes of an
	// incomplete limit. If a field and Extra disagree, the field counts.
	Extra Item
}

// BucketLimit is one limit on a bucket item. Amounts are in milli-units of the whole bucket: a
// shard's share of capacity and refill is the amount divided by [Bucket.Shards], rounded down.
type BucketLimit struct {
	Name     string
	Balance  int64 // tk
	Capacity int64 // cp
	Refill   int64 // ra, per period
	PeriodMS int64 // rp
	Consumed int64 // tc: all units ever taken, less refunds
	// Incomplete is true if one of the five attributes is missing, so that the limit has to be
	// written again. [Bucket.Item] then writes the existing attributes, from Extra, and nothing
	// from these fields.
	Incomplete bool
	// Unjudged names the attributes of the limit that weir does not support, in order and without
	// "b_…_": ws, rsa, soft, tu and others, and ra if it is 0, which is a quota that only a schedule
	// refills.
	Unjudged []string
}

// ID returns the identity of the item.
func (b *Bucket) ID() BucketID { return BucketID{b.Namespace, b.Entity, b.Resource, b.Shard} }

// Limit returns the limit with that name, or nil.
func (b *Bucket) Limit(name string) *BucketLimit {
	for i := range b.Limits {
		if b.Limits[i].Name == name {
			return &b.Limits[i]
		}
	}
	return nil
}

// Attributes returns the names of all attributes that the item has of a limit, in order. Removing a
// limit removes them.
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

// addOptional adds the attributes that only some bucket items have.
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

// fields yields the five fields of a limit.
func (l *BucketLimit) fields(yield func(string, int64) bool) {
	_ = yield(FieldBalance, l.Balance) && yield(FieldCapacity, l.Capacity) &&
		yield(FieldRefill, l.Refill) && yield(FieldPeriod, l.PeriodMS) &&
		yield(FieldConsumed, l.Consumed)
}

func compareLimits(a, b BucketLimit) int { return strings.Compare(a.Name, b.Name) }

// Copy returns a copy whose limits can be changed.
func (b *Bucket) Copy() *Bucket {
	c := *b
	c.Limits = append([]BucketLimit(nil), b.Limits...)
	if b.Writes != nil {
		w := *b.Writes
		c.Writes = &w
	}
	return &c
}

// ParseBucket decodes a bucket item, or returns a [*MalformedError]. Of several malformed
// attributes the error has the first by name.
func ParseBucket(item Item) (*Bucket, error) {
	key, err := KeyOf(item)
	if err != nil {
		return nil, err
	}
	if key.SK != SKState {
		return nil, malformed(item, AttrSK, "is not that of a bucket item")
	}
	id, err := ParseBucketPK(key.PK)
	if err != nil {
		return nil, err
	}
	r := bucketReader{item: item, bucket: &Bucket{
		Namespace: id.Namespace, Entity: id.Entity, Resource: id.Resource, Shard: id.Shard,
		Shards: 1, Stub: true,
	}}
	for name, value := range item {
		if reason := r.read(name, value); reason != "" {
			r.fault(name, reason)
		}
	}
	r.finish()
	if r.wrong != "" {
		return nil, malformed(item, r.wrong, r.reason)
	}
	return r.bucket, nil
}

// bucketReader decodes the attributes of an item in any order.
type bucketReader struct {
	item   Item
	bucket *Bucket
	limits []limitFields
	// wrong and reason are the first fault, by the attribute's name.
	wrong, reason string
}

// limitFields is a limit while it is decoded. have has a bit for each field that was read.
type limitFields struct {
	BucketLimit

	have uint8
}

const (
	haveBalance = 1 << iota
	haveCapacity
	haveRefill
	havePeriod
	haveConsumed
	haveAll = 1<<iota - 1
)

func (r *bucketReader) fault(name, reason string) {
	if r.wrong == "" || name < r.wrong {
		r.wrong, r.reason = name, reason
	}
}

// read decodes one attribute and returns what is wrong with it; empty if nothing is.
func (r *bucketReader) read(name string, value types.AttributeValue) (reason string) {
	if strings.HasPrefix(name, bucketPrefix) {
		return r.readLimit(name, value)
	}
	b := r.bucket
	switch name {
	case AttrPK, AttrSK:
	case AttrEntity:
		reason = same(value, b.Entity)
	case AttrResource:
		reason = same(value, b.Resource)
	case AttrRF:
		b.Stub = false
		b.RefilledMS, reason = number(value)
	case AttrShardCount:
		b.Shards, reason = shards(value)
	case AttrCascade:
		b.Cascade, reason = truth(value)
	case AttrParent:
		b.Parent, reason = textOrNull(value)
	case AttrPGen:
		b.Stamped = true
		b.Generation, reason = number(value)
	case AttrPInc:
		b.Incarnation, reason = text(value)
	case AttrTTL:
		b.TTL, reason = number(value)
	case AttrVU:
		var until int64
		until, reason = number(value)
		b.ValidUntil = &until
	default:
		return r.readOther(name, value)
	}
	return reason
}

// readOther decodes an attribute of the whole item that has no field, or a field for some values
// only.
func (r *bucketReader) readOther(name string, value types.AttributeValue) (reason string) {
	b := r.bucket
	switch name {
	case AttrGSI2PK, AttrGSI2SK, AttrGSI3PK, AttrGSI3SK, AttrGSI4PK, AttrGSI4SK:
		return ""
	case AttrDisabled:
		b.Disabled, reason = truth(value)
		if b.Disabled || reason != "" {
			return reason
		}
	case AttrSched, AttrRSched, AttrSchedTZ, AttrBypass:
		b.Unjudged = append(b.Unjudged, name)
	}
	r.extra(name, value)
	return ""
}

func (r *bucketReader) extra(name string, value types.AttributeValue) {
	if r.bucket.Extra == nil {
		r.bucket.Extra = make(Item)
	}
	r.bucket.Extra[name] = value
}

// readLimit decodes an attribute of a limit.
func (r *bucketReader) readLimit(name string, value types.AttributeValue) (reason string) {
	limit, field, ok := ParseBucketAttribute(name)
	if !ok {
		r.extra(name, value)
		return ""
	}
	l := r.limit(limit)
	var to *int64
	var have uint8
	switch field {
	case FieldBalance:
		to, have = &l.Balance, haveBalance
	case FieldCapacity:
		to, have = &l.Capacity, haveCapacity
	case FieldRefill:
		to, have = &l.Refill, haveRefill
	case FieldPeriod:
		to, have = &l.PeriodMS, havePeriod
	case FieldConsumed:
		to, have = &l.Consumed, haveConsumed
	default:
		if unjudged(field, value) {
			l.Unjudged = append(l.Unjudged, field)
		}
		r.extra(name, value)
		return ""
	}
	l.have |= have
	if n, err := Int64(value); have == haveConsumed && errors.Is(err, errBeyond) {
		*to = n // tc is never judged by, so a value beyond int64 is not an error
		return ""
	}
	*to, reason = number(value)
	if reason == "" && (have == haveCapacity || have == haveRefill) && *to < 0 {
		return "is below 0"
	}
	if reason == "" && have == havePeriod && *to <= 0 {
		return "is not above 0"
	}
	return reason
}

// unjudged reports whether an attribute of a limit changes its meaning in a way that weir does not
// support.
func unjudged(field string, value types.AttributeValue) bool {
	switch field {
	case AttrSched, AttrRSched:
		s, _ := text(value)
		return s != NoSchedule
	case "ws", "rsa", "wa", "wtc", "gc", "tu", "rn", FieldSoft:
		return true
	}
	return false
}

func (r *bucketReader) limit(name string) *limitFields {
	for i := range r.limits {
		if r.limits[i].Name == name {
			return &r.limits[i]
		}
	}
	r.limits = append(r.limits, limitFields{BucketLimit: BucketLimit{Name: name}})
	return &r.limits[len(r.limits)-1]
}

// finish puts the limits into the bucket. A name with none of the five fields is not a limit; its
// attributes stay in Extra.
func (r *bucketReader) finish() {
	b := r.bucket
	slices.Sort(b.Unjudged)
	b.Limits = make([]BucketLimit, 0, len(r.limits))
	for i := range r.limits {
		l := &r.limits[i]
		if l.have == 0 {
			continue
		}
		if l.have != haveAll {
			l.Incomplete = true
			r.keepRaw(l.Name)
		}
		if l.have&haveRefill != 0 && l.Refill == 0 {
			l.Unjudged = append(l.Unjudged, FieldRefill)
		}
		slices.Sort(l.Unjudged)
		if l.Name == WritesLimit {
			b.Writes = new(l.BucketLimit)
			continue
		}
		b.Limits = append(b.Limits, l.BucketLimit)
	}
	slices.SortFunc(b.Limits, compareLimits)
}

// keepRaw puts the existing attributes of an incomplete limit into Extra, so that encoding the item
// adds none.
func (r *bucketReader) keepRaw(limit string) {
	l := BucketLimit{}
	for field := range l.fields {
		name := BucketAttribute(limit, field)
		if value, ok := r.item[name]; ok {
			r.extra(name, value)
		}
	}
}
