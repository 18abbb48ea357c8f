package bucketitem

import (
	"math"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-limiter/weir/internal/schema"
)

// Credit is the part of a refill ahead of the clients that concerns one limit.
type Credit struct {
	Limit *schema.BucketLimit
	// Milli is the amount, in milli-units.
	Milli int64
	// Least is the lowest balance with which the credit may be written.
	Least int64
}

// RefillAhead returns the write that credits the limits of an item, moves rf to now, and takes
// nothing. credits has all limits of the item as it was seen. The time rf is the lock, and the
// credits are added, so that takes that leave rf alone may come between. The write fails if
// something else by which the credits were computed has changed.
func RefillAhead(
	table string, item *schema.Bucket, credits []Credit, now int64,
) *dynamodb.UpdateItemInput {
	e := &itemExpression{}
	e.SetNumber(schema.AttrRF, now)
	e.Require(schema.AttrRF, "=", item.RefilledMS)
	for i := range credits {
		c := &credits[i]
		balance := schema.BucketAttribute(c.Limit.Name, schema.FieldBalance)
		e.AddNumber(balance, c.Milli)
		switch {
		case c.Least != math.MinInt64:
			e.RequireBetween(balance, c.Least, c.Limit.Balance)
		case c.Milli > 0:
			e.Require(balance, "<=", c.Limit.Balance) // a refund moves the balance without the lock
		}
		if c.Limit.Name != schema.WritesLimit { // no configuration has it
			e.requireDefinition(c.Limit)
		}
	}
	if item.Shards == 1 {
		e.RequireAbsentOr(schema.AttrShardCount, "=", 1)
	} else {
		e.Require(schema.AttrShardCount, "=", int64(item.Shards))
	}
	e.requireUnrestricted(now)
	return &dynamodb.UpdateItemInput{
		TableName: &table, Key: item.ID().Key().Item(),
		UpdateExpression: e.Update(), ConditionExpression: e.Condition(),
		ExpressionAttributeNames: e.Names, ExpressionAttributeValues: e.Values,
	}
}
