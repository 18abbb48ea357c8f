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
	"github.com/weir-limiter/weir/internal/sharding"
)

// Write is one write of a bucket item: a create (put) or an update.
type Write struct {
	put    *dynamodb.PutItemInput
	update *dynamodb.UpdateItemInput
	// donorUpdate is the update of another item in one transaction with put. A new shard takes half
	// of the donor's units.
	donorUpdate *dynamodb.UpdateItemInput
	// After is the image that the write leads to if no other process writes; nil if the item is not
	// known.
	After *Image
	// waiters are the waiters of a cold write.
	waiters []*Waiter
}

// Send sends the write and returns the item after it. If the condition fails, the error carries the
// item as it is.
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

// TransactItems returns the write as parts of a transaction.
func (w *Write) TransactItems() []types.TransactWriteItem {
	if w.donorUpdate == nil {
		return []types.TransactWriteItem{w.transactItem()}
	}
	return []types.TransactWriteItem{w.transactItem(), (&Write{update: w.donorUpdate}).transactItem()}
}

// transactItem returns the put or update as one part of a transaction.
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
	// ttlMultiplier says how long the item lives, see [schema.BucketSeconds].
	ttlMultiplier int64
}

// updateInput returns the request for an update. DynamoDB returns the whole item, whether or not
// the condition holds, so that no read is needed.
func (b *itemWriter) updateInput(e *itemExpression) *dynamodb.UpdateItemInput {
	return &dynamodb.UpdateItemInput{
		TableName: &b.table, Key: b.id.Key().Item(),
		UpdateExpression: e.Update(), ConditionExpression: e.Condition(),
		ExpressionAttributeNames: e.Names, ExpressionAttributeValues: e.Values,
		ReturnValues:                        types.ReturnValueAllNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

// coldMS is the greatest age of the last refill, in milliseconds, for a write that does not know
// the time of that refill. An older item may have been full for a while; after a take that leaves
// rf alone, the next refill would credit that time too (ADR 16).
const coldMS = 1000

// coldWrite returns the write on an item that this process has not seen. It takes what the waiters
// ask from the stored balances, on conditions that the item itself decides.
func (b *itemWriter) coldWrite(waiters []*Waiter, shards int, now int64) *Write {
	e := &itemExpression{}
	e.RequireExists(schema.AttrPK)
	for _, name := range limitNames(waiters) {
		sum, consumed, need := int64(0), int64(0), int64(math.MinInt64)
		for _, m := range waiters {
			for k := range m.Takes {
				if a := &m.Takes[k]; a.Name == name {
					need = max(need, sum+a.Needs(shards))
					sum += a.Milli
					if !m.betweenShards {
						consumed += a.Milli
					}
				}
			}
		}
		balance := schema.BucketAttribute(name, schema.FieldBalance)
		if limit := waiterDefinition(waiters, name); limit != nil {
			e.requireDefinition(limit)
			rate := sharding.Share(limit, shards)
			e.Require(balance, "<=", rate.CapacityMilli-rate.Gain(now-coldMS, now))
		} else {
			for _, f := range []string{schema.FieldCapacity, schema.FieldRefill, schema.FieldPeriod} {
				e.RequireExists(schema.BucketAttribute(name, f))
			}
		}
		e.AddNumber(balance, -sum)
		e.AddNumber(schema.BucketAttribute(name, schema.FieldConsumed), consumed)
		e.Require(balance, ">=", need)
	}
	e.chargeWrite(true)
	e.requireUnrestricted(now)
	e.Require(schema.AttrRF, ">=", now-coldMS)
	return &Write{update: b.updateInput(e), waiters: waiters}
}

// sameDefinitionPrefix returns the longest prefix of the waiters that holds no two definitions of
// one limit, and whose takes do not overflow a sum.
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

// waiterDefinition returns the definition of a limit that the first waiter with a definition holds;
// nil if none does.
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

// limitNames returns the names of the limits that the waiters take of, each once.
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

// speculativeWrite returns the write that moves the balances and leaves rf alone. It needs no lock,
// because it commutes with the takes and refunds of other writers. Its conditions keep every
// balance within the bounds for which the evaluation holds, and fail if rf has gone back.
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

// forcedWrite returns the write of updates that have lost to other writers too often. Its only
// condition is that the item exists.
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

// debtTTL moves the ttl back if needed, so that DynamoDB does not delete an item before its debts
// are repaid.
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

// WriteMilli is the amount that each write takes from wcu, the limit that counts writes. It counts
// the write, however many requests the write carries, and is not divided among shards.
const WriteMilli = 1000

// requireUnrestricted requires that the item's other attributes allow judging by the stored
// balances: the item is not disabled, vu has not passed, and the item has not expired.
func (e *itemExpression) requireUnrestricted(now int64) {
	e.RequireAbsent(schema.AttrDisabled)
	e.RequireAbsentOr(schema.AttrVU, ">", now)
	e.RequireAbsentOr(schema.AttrTTL, ">", seconds(now))
}

// chargeWrite charges the write to wcu. required makes the write fail if wcu has too little, so
// that the image shows how busy the item is.
func (e *itemExpression) chargeWrite(required bool) {
	balance := schema.BucketAttribute(schema.WritesLimit, schema.FieldBalance)
	e.AddNumber(balance, -WriteMilli)
	e.AddNumber(schema.BucketAttribute(schema.WritesLimit, schema.FieldConsumed), WriteMilli)
	if required {
		e.Require(balance, ">=", WriteMilli)
	}
}

// requireDefinition requires that a limit is stored with the definition of l.
func (e *itemExpression) requireDefinition(l *schema.BucketLimit) {
	e.Require(schema.BucketAttribute(l.Name, schema.FieldCapacity), "=", l.Capacity)
	e.Require(schema.BucketAttribute(l.Name, schema.FieldRefill), "=", l.Refill)
	e.Require(schema.BucketAttribute(l.Name, schema.FieldPeriod), "=", l.PeriodMS)
}

// addLimit writes all attributes of a limit that the item lacks, or has only in part. guarded
// requires that the item still lacks one of them.
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

// seconds returns the Unix second in which a Unix millisecond lies.
func seconds(ms int64) int64 {
	return schema.TTL(ms, 0)
}

// difference returns a - b, and reports whether it does not overflow.
func difference(a, b int64) (int64, bool) {
	d := a - b
	return d, (d < a) == (b > 0)
}

// takeOver adds the units that another writer has counted on a stub to a blank image.
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

// createWrite returns the put of a new item with an evaluation of a blank image. stub is the image
// of the stub that exists in its place; nil if no item exists.
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
	if !t.permanent() && (b.id.Shard > 0 || made.Shards == 1) { // for the reason see renewTTL
		if secs, ok := schema.BucketSeconds(made.Limits, b.ttlMultiplier); ok {
			made.TTL = max(schema.TTL(made.RefilledMS, secs), r.After.debtRepaidAt())
		}
	}
	e := &itemExpression{}
	if stub != nil {
		e.RequireAbsent(schema.AttrRF)
		for i := range stub.Limits { // takeOver has added these balances
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

// owner is the part of the entity's record that its bucket items copy.
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
