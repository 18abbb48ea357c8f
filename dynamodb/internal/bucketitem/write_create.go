package bucketitem

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir/dynamodb/internal/config"
	"github.com/weir-limiter/weir/internal/schema"
)

// takeOver adds to a blank image what another writer has counted on an item that did not exist.
func (m *Image) takeOver(stub *Image, now int64) {
	for i := range m.Limits {
		c := &m.Limits[i]
		if was := stub.Limit(c.Name); was != nil {
			if was.Balance < 0 {
				c.BalanceMilli, c.Seen = c.BalanceMilli+was.Balance, now
			}
			c.Consumed = was.Consumed
		}
	}
}

// createWrite puts a new item with what was evaluated on a blank image. stub is what there is of the
// item; nil for nothing.
func (b *itemWriter) createWrite(r *evaluation, t *Config, stub *Image) *Write {
	made := r.After.Item.Copy()
	made.RefilledMS = max(made.RefilledMS, r.latest)
	made.Limits = nil
	for i := range r.After.Limits {
		c := &r.After.Limits[i]
		s := c.BucketLimit
		s.Balance, s.Incomplete = c.Peek(made.RefilledMS, r.After.Shards), false
		s.Consumed += r.Effects[i].consumed
		made.Limits = append(made.Limits, s)
	}
	if !t.permanent() && (b.id.Shard > 0 || made.Shards == 1) { // see renewTTL
		if secs, ok := schema.BucketSeconds(made.Limits, schema.TTLMultiplier); ok {
			made.TTL = max(schema.TTL(made.RefilledMS, secs), r.After.debtRepaidAt())
		}
	}
	e := &itemExpression{}
	if stub != nil {
		e.RequireAbsent(schema.AttrRF)
		for i := range stub.Limits { // what was counted on the stub is taken over
			was := &stub.Limits[i]
			e.RequireSame(schema.BucketAttribute(was.Name, schema.FieldBalance), &was.Balance)
		}
	} else {
		e.RequireAbsent(schema.AttrPK)
	}
	return &Write{After: r.After.withStored(made), put: &dynamodb.PutItemInput{
		TableName: &b.table, Item: made.Item(), ConditionExpression: e.Condition(),
		ExpressionAttributeNames: e.Names, ExpressionAttributeValues: e.Values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}

// owner is what an item has of its entity's record.
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
