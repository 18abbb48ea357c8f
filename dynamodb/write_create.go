package dynamodb

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir/dynamodb/internal/config"
	"github.com/weir-limiter/weir/internal/schema"
)

// blankImage is the image of an item that is not there: every limit of the terms in full, or empty in a
// shard that was drawn for the first time, since what it could hold is in the others still.
func (l *itemQueue) blankImage(t *itemConfig, o owner, now int64) *image {
	shards := max(l.state.shardCount(), 1)
	b := &schema.Bucket{
		Namespace: l.store.config.Namespace, Entity: l.state.subject.Entity, Resource: l.state.subject.Resource,
		Shard: l.shard, RefilledMS: now, Shards: shards, Writes: schema.NewWrites(),
		Cascade: o.cascade, Parent: o.parent,
		Generation: o.generation, Incarnation: o.incarnation, Stamped: o.stamped,
	}
	m := &image{item: b, shards: shards}
	for i := range t.limits {
		c := unusedLimit(storedLimit(&t.limits[i]), shards)
		if ghost, ok := l.removedLimits[c.Name]; ok {
			ghost.BucketLimit = c.BucketLimit
			c = ghost
		} else if l.shard > 0 {
			c.balance, c.seen = 0, now
		}
		if l.image != nil { // a stub: somebody has counted on an item that was gone
			if was := l.image.limit(c.Name); was != nil {
				if was.Balance < 0 {
					c.balance, c.seen = c.balance+was.Balance, now
				}
				c.Consumed = was.Consumed
			}
		}
		c.missing = true
		m.limits = append(m.limits, c)
	}
	return m
}

// createWrite puts a new item with what was reckoned on a blank one.
func (l *itemQueue) createWrite(r *evaluation, t *itemConfig) *write {
	b := r.after.item.Copy()
	b.RefilledMS = max(b.RefilledMS, r.latest)
	b.Limits = nil
	for i := range r.after.limits {
		c := &r.after.limits[i]
		s := c.BucketLimit
		s.Balance, s.Incomplete = c.peek(b.RefilledMS, r.after.shards), false
		s.Consumed += r.consumed[i]
		b.Limits = append(b.Limits, s)
	}
	if !t.permanent() && (l.shard > 0 || b.Shards == 1) { // see renewTTL
		if secs, ok := schema.BucketSeconds(b.Limits, schema.TTLMultiplier); ok {
			b.TTL = max(schema.TTL(b.RefilledMS, secs), r.after.debtRepaidAt())
		}
	}
	e := &itemExpression{}
	if l.image != nil {
		e.RequireAbsent(schema.AttrRF)
		for i := range l.image.limits { // what was counted on the stub is taken over
			was := &l.image.limits[i]
			e.RequireSame(schema.BucketAttribute(was.Name, schema.FieldBalance), &was.Balance)
		}
	} else {
		e.RequireAbsent(schema.AttrPK)
	}
	return &write{after: r.after.withStored(b), put: &dynamodb.PutItemInput{
		TableName: &l.store.client.TableName, Item: b.Item(), ConditionExpression: e.Condition(),
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
