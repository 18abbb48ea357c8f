package bucketitem

import (
	"context"
	"math"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
)

// Write is one write of a bucket item, one of ADR-115's paths.
type Write struct {
	put    *dynamodb.PutItemInput
	update *dynamodb.UpdateItemInput
	// donorUpdate is another item that changes with a put, in one transaction.
	donorUpdate *dynamodb.UpdateItemInput
	// After is the image that the write leads to, if nobody else has written; nil where the item is
	// not known.
	After *Image
	// waiters are those who go along where the item is not known.
	waiters []*Waiter
}

// Send makes the write and returns the item as it then is; of a refused one, the item as the
// condition met it.
func (w *Write) Send(ctx context.Context, c *client.Client) (schema.Item, error) {
	switch {
	case w.donorUpdate != nil:
		_, err := c.API.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: w.TransactItems()})
		return w.put.Item, err
	case w.put != nil:
		_, err := c.API.PutItem(ctx, w.put)
		return w.put.Item, err
	}
	out, err := c.API.UpdateItem(ctx, w.update)
	if err != nil {
		return nil, err
	}
	return out.Attributes, nil
}

// TransactItems are what the write puts into a transaction.
func (w *Write) TransactItems() []types.TransactWriteItem {
	if w.donorUpdate == nil {
		return []types.TransactWriteItem{w.transactItem()}
	}
	return []types.TransactWriteItem{w.transactItem(), (&Write{update: w.donorUpdate}).transactItem()}
}

// transactItem is the write as a part of a transaction.
func (w *Write) transactItem() types.TransactWriteItem {
	if w.put != nil {
		return types.TransactWriteItem{Put: &types.Put{
			TableName: w.put.TableName, Item: w.put.Item, ConditionExpression: w.put.ConditionExpression,
			ExpressionAttributeNames:            w.put.ExpressionAttributeNames,
			ExpressionAttributeValues:           w.put.ExpressionAttributeValues,
			ReturnValuesOnConditionCheckFailure: w.put.ReturnValuesOnConditionCheckFailure,
		}}
	}
	return types.TransactWriteItem{Update: &types.Update{
		TableName: w.update.TableName, Key: w.update.Key,
		UpdateExpression: w.update.UpdateExpression, ConditionExpression: w.update.ConditionExpression,
		ExpressionAttributeNames:  w.update.ExpressionAttributeNames,
		ExpressionAttributeValues: w.update.ExpressionAttributeValues,
	}}
}

// itemWriter builds the writes of one bucket item.
type itemWriter struct {
	table string
	id    schema.BucketID
}

// updateInput makes an update of an expression. DynamoDB answers it with the whole item, whether or
// not the condition holds, so that nothing need be read.
func (b *itemWriter) updateInput(e *itemExpression) *dynamodb.UpdateItemInput {
	return &dynamodb.UpdateItemInput{
		TableName: &b.table, Key: b.id.Key().Item(),
		UpdateExpression: e.Update(), ConditionExpression: e.Condition(),
		ExpressionAttributeNames: e.Names, ExpressionAttributeValues: e.Values,
		ReturnValues:                        types.ReturnValueAllNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

// coldMS is how recent the last refill must be for a write that does not know it: what a bucket
// gained before that, and may have had no room for, is not credited twice (ADR 16).
const coldMS = 1000

// coldWrite is the write on an item that this process has not seen: it takes what the members ask from
// what is stored, and lets the item itself say whether that is there.
func (b *itemWriter) coldWrite(members []*Waiter, shards int, now int64) *Write {
	e := &itemExpression{}
	e.RequireExists(schema.AttrPK)
	for _, name := range limitNames(members) {
		sum, need := int64(0), int64(math.MinInt64)
		for _, m := range members {
			for k := range m.Takes {
				if a := &m.Takes[k]; a.Name == name {
					need = max(need, sum+a.Needs(shards))
					sum += a.Milli
				}
			}
		}
		balance := schema.BucketAttribute(name, schema.FieldBalance)
		if limit := waiterDefinition(members, name); limit != nil {
			e.requireDefinition(limit)
			rate := ShareOf(limit, shards)
			e.Require(balance, "<=", rate.CapacityMilli-rate.Gain(now-coldMS, now))
		} else {
			for _, f := range []string{schema.FieldCapacity, schema.FieldRefill, schema.FieldPeriod} {
				e.RequireExists(schema.BucketAttribute(name, f))
			}
		}
		e.AddNumber(balance, -sum)
		e.AddNumber(schema.BucketAttribute(name, schema.FieldConsumed), sum)
		e.Require(balance, ">=", need)
	}
	e.chargeWrite(true)
	e.requireUnrestricted(now)
	e.Require(schema.AttrRF, ">=", now-coldMS)
	return &Write{update: b.updateInput(e), waiters: members}
}

// sameDefinitionPrefix are the first of the members, as far as those who know a definition know the same, and as
// what they ask of a limit can be counted.
func sameDefinitionPrefix(members []*Waiter) []*Waiter {
	sums := make(map[string]int64)
	known := make(map[string]*weir.Limit)
	for n, m := range members {
		for k := range m.Takes {
			a := &m.Takes[k]
			l := known[a.Name]
			if l != nil && a.Limit != nil && !l.Same(*a.Limit) || sums[a.Name] > math.MaxInt64-a.Milli-a.BelowCapacity {
				return members[:n]
			}
			if l == nil {
				known[a.Name] = a.Limit
			}
			sums[a.Name] += a.Milli
		}
	}
	return members
}

// waiterDefinition is the definition of a limit, as the first of the members has it who knows it.
func waiterDefinition(members []*Waiter, name string) *schema.BucketLimit {
	for _, m := range members {
		for k := range m.Takes {
			if a := &m.Takes[k]; a.Name == name && a.Limit != nil {
				s := StoredLimit(a.Limit)
				return &s
			}
		}
	}
	return nil
}

// limitNames are the limits that members ask, each once.
func limitNames(members []*Waiter) []string {
	var names []string
	seen := make(map[string]bool)
	for _, m := range members {
		for k := range m.Takes {
			if name := m.Takes[k].Name; !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	return names
}

// speculativeWrite moves balances by what was reckoned, and no refill: it goes together with whatever
// others do.
func (b *itemWriter) speculativeWrite(m *Image, r *evaluation) *Write {
	e := &itemExpression{}
	e.RequireExists(schema.AttrPK)
	leads := r.After.Item.Copy()
	var refills bool
	for i := range m.Limits {
		if !r.concerns(i) {
			continue
		}
		c := &m.Limits[i]
		balance := schema.BucketAttribute(c.Name, schema.FieldBalance)
		e.AddNumber(balance, -r.Net[i])
		e.AddNumber(schema.BucketAttribute(c.Name, schema.FieldConsumed), r.consumed[i])
		low, high := m.balanceBounds(r, i)
		e.RequireBetween(balance, low, high)
		e.requireDefinition(&c.BucketLimit)
		leads.Limits[i].Balance -= r.Net[i]
		leads.Limits[i].Consumed += r.consumed[i]
		refills = refills || r.charged[i]
	}
	if refills {
		e.Require(schema.AttrRF, ">=", m.Item.RefilledMS)
	}
	if m.Item.Writes != nil {
		e.chargeWrite(true)
	}
	e.requireUnrestricted(r.latest)
	e.RequireAbsentOr(schema.AttrShardCount, "<=", int64(m.Shards))
	debtTTL(e, r, leads)
	return &Write{update: b.updateInput(e), After: r.After.withStored(leads)}
}

// forcedWrite moves balances without a condition but that the item is there: for what is never denied and
// has lost to other writers too often.
func (b *itemWriter) forcedWrite(m *Image, r *evaluation) *Write {
	e := &itemExpression{}
	e.RequireExists(schema.AttrPK)
	for i := range m.Limits {
		name := m.Limits[i].Name
		e.AddNumber(schema.BucketAttribute(name, schema.FieldBalance), -r.Net[i])
		e.AddNumber(schema.BucketAttribute(name, schema.FieldConsumed), r.consumed[i])
	}
	if m.Item.Writes != nil {
		e.chargeWrite(false)
	}
	debtTTL(e, r, m.Item.Copy())
	return &Write{update: b.updateInput(e)}
}

// debtTTL keeps an item until its debts are repaid.
func debtTTL(e *itemExpression, r *evaluation, leads *schema.Bucket) {
	if leads.TTL == 0 {
		return
	}
	if at := r.After.debtRepaidAt(); at > leads.TTL {
		leads.TTL = at
		e.SetNumber(schema.AttrTTL, at)
	}
}
