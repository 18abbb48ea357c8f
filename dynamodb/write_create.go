package dynamodb

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir/dynamodb/internal/config"
	"github.com/weir-limiter/weir/internal/schema"
)

// blankImage is the image of an item that does not exist: every limit of the configuration is full.
// A shard that is drawn for the first time begins empty, because what it could hold is still in the
// others. Limits that were removed before come back as they were.
func blankImage(
	id schema.BucketID, t *itemConfig, o owner, shards int, removed map[string]limitImage, now int64,
) *image {
	b := &schema.Bucket{
		Namespace: id.Namespace, Entity: id.Entity, Resource: id.Resource, Shard: id.Shard,
		RefilledMS: now, Shards: shards, Writes: schema.NewWrites(),
		Cascade: o.cascade, Parent: o.parent,
		Generation: o.generation, Incarnation: o.incarnation, Stamped: o.stamped,
	}
	m := &image{item: b, shards: shards}
	for i := range t.limits {
		c := unusedLimit(storedLimit(&t.limits[i]), shards)
		if was, ok := removed[c.Name]; ok {
			was.BucketLimit = c.BucketLimit
			c = was
		} else if id.Shard > 0 {
			c.balance, c.seen = 0, now
		}
		c.missing = true
		m.limits = append(m.limits, c)
	}
	return m
}

// takeOver adds to a blank image what another writer has counted on an item that did not exist.
func (m *image) takeOver(stub *image, now int64) {
	for i := range m.limits {
		c := &m.limits[i]
		if was := stub.limit(c.Name); was != nil {
			if was.Balance < 0 {
				c.balance, c.seen = c.balance+was.Balance, now
			}
			c.Consumed = was.Consumed
		}
	}
}

// createWrite puts a new item with what was evaluated on a blank image. stub is what there is of the
// item; nil for nothing.
func (b *itemWriter) createWrite(r *evaluation, t *itemConfig, stub *image) *write {
	made := r.after.item.Copy()
	made.RefilledMS = max(made.RefilledMS, r.latest)
	made.Limits = nil
	for i := range r.after.limits {
		c := &r.after.limits[i]
		s := c.BucketLimit
		s.Balance, s.Incomplete = c.peek(made.RefilledMS, r.after.shards), false
		s.Consumed += r.consumed[i]
		made.Limits = append(made.Limits, s)
	}
	if !t.permanent() && (b.id.Shard > 0 || made.Shards == 1) { // see renewTTL
		if secs, ok := schema.BucketSeconds(made.Limits, schema.TTLMultiplier); ok {
			made.TTL = max(schema.TTL(made.RefilledMS, secs), r.after.debtRepaidAt())
		}
	}
	e := &itemExpression{}
	if stub != nil {
		e.RequireAbsent(schema.AttrRF)
		for i := range stub.limits { // what was counted on the stub is taken over
			was := &stub.limits[i]
			e.RequireSame(schema.BucketAttribute(was.Name, schema.FieldBalance), &was.Balance)
		}
	} else {
		e.RequireAbsent(schema.AttrPK)
	}
	return &write{after: r.after.withStored(made), put: &dynamodb.PutItemInput{
		TableName: &b.table, Item: made.Item(), ConditionExpression: e.Condition(),
		ExpressionAttributeNames: e.Names, ExpressionAttributeValues: e.Values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}

// owner is whom an item belongs to, copied from the entity's record.
type owner struct {
	cascade     bool
	parent      string
	generation  int64
	incarnation string
	stamped     bool
}

func ownerOf(c *config.Subject) owner {
	o := owner{cascade: c.Cascades(), parent: c.Parent()}
	if e := c.Entity; e != nil {
		o.generation, o.incarnation, o.stamped = e.Generation, e.Mark(), true
	}
	return o
}
