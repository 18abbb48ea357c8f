package bucketitem

import (
	"context"
	"math"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/dynamodb/internal/config"
	"github.com/weir-limiter/weir/internal/schema"
)

// Write is one write of a bucket item, on one of the paths of ADR-115.
type Write struct {
	put    *dynamodb.PutItemInput
	update *dynamodb.UpdateItemInput
	// donorUpdate is another item that changes with a put, in one transaction.
	donorUpdate *dynamodb.UpdateItemInput
	// After is the image that the write leads to if no other process writes; nil if the item is not
	// known.
	After *Image
	// waiters are those that the write is for, if the item is not known.
	waiters []*Waiter
}

// Send sends the write and returns the item as it then is; of a refused write, the item as the
// condition met it.
func (w *Write) Send(ctx context.Context, c *client.Client) (schema.Item, error) {
	switch {
	case w.donorUpdate != nil:
		in := &dynamodb.TransactWriteItemsInput{TransactItems: w.TransactItems()}
		_, err := c.API.TransactWriteItems(ctx, in)
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

// TransactItems returns the parts of the write in a transaction.
func (w *Write) TransactItems() []types.TransactWriteItem {
	if w.donorUpdate == nil {
		return []types.TransactWriteItem{w.transactItem()}
	}
	return []types.TransactWriteItem{w.transactItem(), (&Write{update: w.donorUpdate}).transactItem()}
}

// transactItem returns the write as a part of a transaction.
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

// coldWrite returns the write on an item that this process has not seen: it takes what the waiters
// ask from what is stored, and lets conditions on the item itself decide whether that is there.
func (b *itemWriter) coldWrite(waiters []*Waiter, shards int, now int64) *Write {
	e := &itemExpression{}
	e.RequireExists(schema.AttrPK)
	for _, name := range limitNames(waiters) {
		sum, need := int64(0), int64(math.MinInt64)
		for _, m := range waiters {
			for k := range m.Takes {
				if a := &m.Takes[k]; a.Name == name {
					need = max(need, sum+a.Needs(shards))
					sum += a.Milli
				}
			}
		}
		balance := schema.BucketAttribute(name, schema.FieldBalance)
		if limit := waiterDefinition(waiters, name); limit != nil {
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
	return &Write{update: b.updateInput(e), waiters: waiters}
}

// sameDefinitionPrefix returns the first of the waiters, as far as they know the same definitions
// and as their sum can be counted.
func sameDefinitionPrefix(waiters []*Waiter) []*Waiter {
	sums := make(map[string]int64)
	known := make(map[string]*weir.Limit)
	for n, m := range waiters {
		for k := range m.Takes {
			a := &m.Takes[k]
			l := known[a.Name]
			if l != nil && a.Limit != nil && !l.Same(*a.Limit) ||
				sums[a.Name] > math.MaxInt64-a.Milli-a.BelowCapacity {
				return waiters[:n]
			}
			if l == nil {
				known[a.Name] = a.Limit
			}
			sums[a.Name] += a.Milli
		}
	}
	return waiters
}

// waiterDefinition returns the definition of a limit by the first waiter that knows it.
func waiterDefinition(waiters []*Waiter, name string) *schema.BucketLimit {
	for _, m := range waiters {
		for k := range m.Takes {
			if a := &m.Takes[k]; a.Name == name && a.Limit != nil {
				s := StoredLimit(a.Limit)
				return &s
			}
		}
	}
	return nil
}

// limitNames returns the limits that waiters take of, each once.
func limitNames(waiters []*Waiter) []string {
	var names []string
	seen := make(map[string]bool)
	for _, m := range waiters {
		for k := range m.Takes {
			if name := m.Takes[k].Name; !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	return names
}

// speculativeWrite returns the write that moves balances by what was evaluated, without a refill:
// it commutes with the writes of others.
func (b *itemWriter) speculativeWrite(m *Image, r *Evaluation) *Write {
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
		e.AddNumber(balance, -r.effects[i].net)
		e.AddNumber(schema.BucketAttribute(c.Name, schema.FieldConsumed), r.effects[i].consumed)
		low, high := m.balanceBounds(r, i)
		e.RequireBetween(balance, low, high)
		e.requireDefinition(&c.BucketLimit)
		leads.Limits[i].Balance -= r.effects[i].net
		leads.Limits[i].Consumed += r.effects[i].consumed
		refills = refills || r.effects[i].charged
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

// forcedWrite returns the write that moves balances on the one condition that the item exists: for
// what is never denied and has lost to other writers too often.
func (b *itemWriter) forcedWrite(m *Image, r *Evaluation) *Write {
	e := &itemExpression{}
	e.RequireExists(schema.AttrPK)
	for i := range m.Limits {
		name := m.Limits[i].Name
		e.AddNumber(schema.BucketAttribute(name, schema.FieldBalance), -r.effects[i].net)
		e.AddNumber(schema.BucketAttribute(name, schema.FieldConsumed), r.effects[i].consumed)
	}
	if m.Item.Writes != nil {
		e.chargeWrite(false)
	}
	debtTTL(e, r, m.Item.Copy())
	return &Write{update: b.updateInput(e)}
}

// debtTTL keeps an item until its debts are repaid.
func debtTTL(e *itemExpression, r *Evaluation, leads *schema.Bucket) {
	if leads.TTL == 0 {
		return
	}
	if at := r.After.debtRepaidAt(); at > leads.TTL {
		leads.TTL = at
		e.SetNumber(schema.AttrTTL, at)
	}
}

// itemExpression builds the expressions of one write of a bucket item.
type itemExpression struct{ client.Expression }

// WriteMilli is what each write takes from the limit that counts writes. It is never divided, and
// counts the write, not what goes with it.
const WriteMilli = 1000

// requireUnrestricted requires that nothing about the item forbids judging by the stored balances.
func (e *itemExpression) requireUnrestricted(now int64) {
	e.RequireAbsent(schema.AttrDisabled)
	e.RequireAbsentOr(schema.AttrVU, ">", now)
	e.RequireAbsentOr(schema.AttrTTL, ">", seconds(now))
}

// chargeWrite charges the write itself.
func (e *itemExpression) chargeWrite(required bool) {
	balance := schema.BucketAttribute(schema.WritesLimit, schema.FieldBalance)
	e.AddNumber(balance, -WriteMilli)
	e.AddNumber(schema.BucketAttribute(schema.WritesLimit, schema.FieldConsumed), WriteMilli)
	if required {
		e.Require(balance, ">=", WriteMilli)
	}
}

// requireDefinition requires a limit to be stored as it was seen.
func (e *itemExpression) requireDefinition(l *schema.BucketLimit) {
	e.Require(schema.BucketAttribute(l.Name, schema.FieldCapacity), "=", l.Capacity)
	e.Require(schema.BucketAttribute(l.Name, schema.FieldRefill), "=", l.Refill)
	e.Require(schema.BucketAttribute(l.Name, schema.FieldPeriod), "=", l.PeriodMS)
}

// addLimit writes a limit that the item does not have, or has only in part; guarded requires that
// this is still so.
func (e *itemExpression) addLimit(c *LimitImage, balance, consumed int64, guarded bool) {
	for _, f := range []struct {
		field string
		n     int64
	}{
		{schema.FieldBalance, balance}, {schema.FieldCapacity, c.Capacity}, {schema.FieldRefill, c.Refill},
		{schema.FieldPeriod, c.PeriodMS}, {schema.FieldConsumed, consumed},
	} {
		e.SetNumber(schema.BucketAttribute(c.Name, f.field), f.n)
	}
	if !guarded {
		return
	}
	absent := "attribute_not_exists("
	e.Conditions = append(e.Conditions, "("+
		absent+e.Name(schema.BucketAttribute(c.Name, schema.FieldCapacity))+") OR "+
		absent+e.Name(schema.BucketAttribute(c.Name, schema.FieldBalance))+"))")
}

// seconds returns the second that a millisecond falls in.
func seconds(ms int64) int64 {
	return schema.TTL(ms, 0)
}

// difference returns a − b, and whether it fits.
func difference(a, b int64) (int64, bool) {
	d := a - b
	return d, (d < a) == (b > 0)
}

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

// createWrite puts a new item with what was evaluated on a blank image. stub is what there is of
// the item; nil for nothing.
func (b *itemWriter) createWrite(r *Evaluation, t *Config, stub *Image) *Write {
	made := r.After.Item.Copy()
	made.RefilledMS = max(made.RefilledMS, r.latest)
	made.Limits = nil
	for i := range r.After.Limits {
		c := &r.After.Limits[i]
		s := c.BucketLimit
		s.Balance, s.Incomplete = c.Peek(made.RefilledMS, r.After.Shards), false
		s.Consumed += r.effects[i].consumed
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
