package oldtable

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/sharding"
)

// Buckets are the old items of one bucket, and what they mean.
type Buckets struct {
	// Bucket is the item of the present layout: the balances as they are, nothing consumed, the
	// time of the refill, and no owner and no time to live.
	Bucket *schema.Bucket
	// Consumed are the milli-units that the old items count as consumed, by limit.
	Consumed map[string]int64
	items    []schema.Item
}

// The attributes of an item with one limit.
const (
	attrLimitName = "limit_name"
	attrTokens    = "tokens_milli"
	attrRefilled  = "last_refill_ms"
	attrCapacity  = "capacity_milli"
	attrBurst     = "burst_milli"
	attrAmount    = "refill_amount_milli"
	attrPeriod    = "refill_period_ms"
	attrConsumed  = "total_consumed_milli"
)

// fieldBurst is the field of the highest balance, in items with all limits.
const fieldBurst = "bx"

// ParseBuckets parses the old items of one bucket, which come with a namespace of their own or
// belong to ns. If one item holds all limits, the others are from an earlier release and do not
// count.
func ParseBuckets(ns, entity, resource string, items []schema.Item) (*Buckets, error) {
	b := &Buckets{Consumed: make(map[string]int64), items: items, Bucket: &schema.Bucket{
		Namespace: ns, Entity: entity, Resource: resource, Shards: 1, Writes: schema.NewWrites(),
	}}
	for _, item := range items {
		key, err := schema.KeyOf(item)
		if err != nil {
			return nil, client.Unreadable(err)
		}
		if ParseKey(key).Limit == "" {
			err := b.readAll(item)
			return b, err
		}
	}
	err := b.readEach()
	return b, err
}

// reader reads the numbers of an item and keeps the first error.
type reader struct {
	item schema.Item
	err  error
}

// number returns a number, or fallback if the attribute is missing or null.
func (r *reader) number(name string, fallback int64) int64 {
	v, ok := r.item[name]
	if !ok || schema.IsNull(v) {
		return fallback
	}
	n, err := schema.Int64(v)
	if err != nil && r.err == nil {
		key, _ := schema.KeyOf(r.item)
		r.err = client.Unreadable(fmt.Errorf("item %s: attribute %s %w", key, name, err))
	}
	return n
}

// limit checks a limit and adds it to the bucket.
func (b *Buckets) limit(r *reader, l *schema.BucketLimit, consumed int64) {
	if r.err == nil && (l.Capacity < 0 || l.Refill < 0 || l.PeriodMS <= 0) {
		key, _ := schema.KeyOf(r.item)
		r.err = client.Unreadable(fmt.Errorf("item %s: limit %q has no usable definition", key, l.Name))
	}
	b.Bucket.Limits = append(b.Bucket.Limits, *l)
	b.Consumed[l.Name] = consumed
}

// readAll reads an item with all limits.
func (b *Buckets) readAll(item schema.Item) error {
	r := &reader{item: item}
	b.Bucket.RefilledMS = r.number(schema.AttrRF, 0)
	for _, name := range attributes(item) {
		limit, field, ok := schema.ParseBucketAttribute(name)
		if !ok || field != schema.FieldBalance || limit == schema.WritesLimit {
			continue
		}
		of := func(field string, fallback int64) int64 {
			return r.number(schema.BucketAttribute(limit, field), fallback)
		}
		capacity := of(schema.FieldCapacity, 0)
		b.limit(r, &schema.BucketLimit{
			Name: limit, Balance: of(schema.FieldBalance, 0),
			Capacity: max(capacity, of(fieldBurst, capacity)),
			Refill:   of(schema.FieldRefill, 0), PeriodMS: of(schema.FieldPeriod, 0),
		}, of(schema.FieldConsumed, 0))
	}
	return r.err
}

// readEach reads items with one limit each. They have a time of the refill each: the bucket
// gets the latest, and the other limits what they have gained by then.
func (b *Buckets) readEach() error {
	var refilled []int64
	for _, item := range b.items {
		r := &reader{item: item}
		key, _ := schema.KeyOf(item)
		l := &schema.BucketLimit{
			Name: ParseKey(key).Limit, Balance: r.number(attrTokens, 0),
			Refill: r.number(attrAmount, 0), PeriodMS: r.number(attrPeriod, 0),
		}
		capacity := r.number(attrCapacity, 0)
		l.Capacity = max(capacity, r.number(attrBurst, capacity))
		at := r.number(attrRefilled, 0)
		refilled = append(refilled, at)
		b.Bucket.RefilledMS = max(b.Bucket.RefilledMS, at)
		b.limit(r, l, r.number(attrConsumed, l.Capacity-l.Balance))
		if r.err != nil {
			return r.err
		}
	}
	for i := range b.Bucket.Limits {
		if l := &b.Bucket.Limits[i]; refilled[i] < b.Bucket.RefilledMS {
			l.Balance = sharding.Share(l, 1).Refill(l.Balance, refilled[i], b.Bucket.RefilledMS)
		}
	}
	slices.SortFunc(b.Bucket.Limits, func(x, y schema.BucketLimit) int {
		return strings.Compare(x.Name, y.Name)
	})
	return nil
}

// attributes returns the names of an item's attributes, in order.
func attributes(item schema.Item) []string {
	names := make([]string, 0, len(item))
	for name := range item {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Remove adds the deletion of the old items to a transaction, on condition that they are as
// they were read.
func (b *Buckets) Remove(t *client.Transaction) {
	for _, item := range b.items {
		e := &client.Expression{}
		for _, name := range attributes(item) {
			_, field, ok := schema.ParseBucketAttribute(name)
			moves := ok && (field == schema.FieldBalance || field == schema.FieldConsumed)
			switch name {
			case schema.AttrRF, attrTokens, attrRefilled, attrConsumed:
				moves = true
			}
			if moves {
				e.RequireUnchanged(item, name)
			}
		}
		e.RequireExists(schema.AttrPK)
		key, _ := schema.KeyOf(item) // it was parsed before
		t.Remove(key, e)
	}
}
