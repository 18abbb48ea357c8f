package schema

import (
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const (
	attrOperation = "operation"
	attrWriter    = "writer"
	attrEnt       = "ent"
	attrShards    = "shards"
	attrAmounts   = "amounts"

	// OperationSeconds is how long the record of an operation is kept.
	OperationSeconds = 3 * 86_400
)

// Operation is the record of an operator's reset or top-up of a bucket, kept beside its shard 0 so
// that it is done once.
type Operation struct {
	Namespace, Entity, Resource string
	// ID is the caller's key.
	ID string
	// Kind is "reset" or "top_up".
	Kind string
	// Writer is the nonce of the call that did it.
	Writer string
	// Mark is the entity's, see [Entity.Mark].
	Mark string
	// Shards is how many bucket items were written.
	Shards int64
	// Amounts are what each limit was given, in units.
	Amounts map[string]int64
	// TTL is when DynamoDB may delete the item, in Unix seconds.
	TTL int64
	// Extra are all attributes that the fields do not stand for, as they were read.
	Extra Item
}

// Item returns the item as it is stored.
func (o *Operation) Item() Item {
	item := newItem(o.Extra, OperationKey(o.Namespace, o.Entity, o.Resource, o.ID), o.Namespace)
	item[AttrGSI4SK] = String(operationPrefix + o.Entity + "#" + o.Resource + "#" + o.ID)
	item[AttrEntity] = String(o.Entity)
	item[AttrResource] = String(o.Resource)
	item[attrOperation] = String(o.Kind)
	setText(item, attrWriter, o.Writer)
	setText(item, attrEnt, o.Mark)
	item[attrShards] = Number(o.Shards)
	item[attrAmounts] = numberMap(o.Amounts)
	setNumber(item, AttrTTL, o.TTL)
	return item
}

// ParseOperation reads the item. One that cannot be read is a [*MalformedError].
func ParseOperation(item Item) (*Operation, error) {
	r := newReader(item)
	bucket, err := ParseBucketPK(r.key.PK)
	r.keyError(err)
	id, ok := strings.CutPrefix(r.key.SK, SKOperationPrefix)
	if !ok {
		r.fail(AttrSK, "is no operation's")
	}
	if bucket.Shard != 0 {
		r.fail(AttrPK, "is not that of shard 0")
	}
	r.optionalSame(AttrEntity, bucket.Entity)
	r.optionalSame(AttrResource, bucket.Resource)
	r.drop(AttrGSI4PK, AttrGSI4SK)
	o := &Operation{
		Namespace: bucket.Namespace, Entity: bucket.Entity, Resource: bucket.Resource, ID: id,
		Kind:    required(r, attrOperation, text),
		Writer:  optional(r, attrWriter, text),
		Mark:    optional(r, attrEnt, text),
		Shards:  optional(r, attrShards, number),
		Amounts: optional(r, attrAmounts, numbers),
		TTL:     optional(r, AttrTTL, number),
	}
	if r.err != nil {
		return nil, r.err
	}
	o.Extra = r.extra()
	return o, nil
}

func numberMap(amounts map[string]int64) types.AttributeValue {
	m := make(Item, len(amounts))
	for name, n := range amounts {
		m[name] = Number(n)
	}
	return &types.AttributeValueMemberM{Value: m}
}

// numbers reads a map of whole numbers.
func numbers(value types.AttributeValue) (m map[string]int64, reason string) {
	v, ok := value.(*types.AttributeValueMemberM)
	if !ok {
		return nil, "is no map"
	}
	m = make(map[string]int64, len(v.Value))
	for _, name := range slices.Sorted(maps.Keys(v.Value)) {
		if m[name], reason = number(v.Value[name]); reason != "" {
			return nil, "has under " + name + " what " + reason
		}
	}
	return m, ""
}
