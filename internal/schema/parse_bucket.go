package schema

import (
	"errors"

	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// ParseBucket reads a bucket item. One that cannot be read is a [*MalformedError]; where several
// attributes are at fault it names the first by name.
func ParseBucket(item Item) (*Bucket, error) {
	key, err := KeyOf(item)
	if err != nil {
		return nil, err
	}
	if key.SK != SKState {
		return nil, malformed(item, AttrSK, "is no bucket's")
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

// bucketReader reads an item's attributes in any order.
type bucketReader struct {
	item   Item
	bucket *Bucket
	limits []limitRead
	// wrong and reason are the first fault, by the attribute's name.
	wrong, reason string
}

// limitRead is a limit of which have was read, a bit per field.
type limitRead struct {
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

// read takes one attribute and returns what is wrong with it.
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

// readOther takes an attribute of the whole item that has no field of its own, or not for each
// value.
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

// readLimit takes an attribute that belongs to a limit.
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
		*to = n // it only ever counts, and nothing is judged by it
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

// unjudged reports whether a field says something that the five fields do not.
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

func (r *bucketReader) limit(name string) *limitRead {
	for i := range r.limits {
		if r.limits[i].Name == name {
			return &r.limits[i]
		}
	}
	r.limits = append(r.limits, limitRead{BucketLimit: BucketLimit{Name: name}})
	return &r.limits[len(r.limits)-1]
}

// finish puts the limits into the bucket. What has none of the five fields is no limit; the rest of
// it stays in Extra.
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

// keepRaw puts what there is of an incomplete limit into Extra, so that writing the item invents no
// attribute.
func (r *bucketReader) keepRaw(limit string) {
	l := BucketLimit{}
	for field := range l.fields {
		name := BucketAttribute(limit, field)
		if value, ok := r.item[name]; ok {
			r.extra(name, value)
		}
	}
}
