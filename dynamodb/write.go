package dynamodb

import (
	"context"
	"math"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
)

// write is one write of a bucket item, one of ADR-115's paths.
type write struct {
	put    *dynamodb.PutItemInput
	update *dynamodb.UpdateItemInput
	// donorUpdate is another item that changes with a put, in one transaction.
	donorUpdate *dynamodb.UpdateItemInput
	// after is the image that the write leads to, if nobody else has written; nil where the item is
	// not known.
	after *image
	// waiters are those who go along where the item is not known.
	waiters []*waiter
}

// writeMilli is what each write takes from the limit that counts writes. It is never divided, and
// counts the write, not who goes along in it.
const writeMilli = 1000

// send makes the write and returns the item as it then is; of a refused one, the item as the
// condition met it.
func (w *write) send(ctx context.Context, s *bucketStore) (schema.Item, error) {
	switch {
	case w.donorUpdate != nil:
		_, err := s.client.API.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: w.transactItems()})
		return w.put.Item, err
	case w.put != nil:
		_, err := s.client.API.PutItem(ctx, w.put)
		return w.put.Item, err
	}
	out, err := s.client.API.UpdateItem(ctx, w.update)
	if err != nil {
		return nil, err
	}
	return out.Attributes, nil
}

// updateInput makes an update of an expression. It answers with the whole item, whatever comes of it,
// so that nothing need be read.
func (l *itemQueue) updateInput(e *itemExpression) *dynamodb.UpdateItemInput {
	return &dynamodb.UpdateItemInput{
		TableName: &l.store.client.TableName, Key: l.id().Key().Item(),
		UpdateExpression: e.Update(), ConditionExpression: e.Condition(),
		ExpressionAttributeNames: e.Names, ExpressionAttributeValues: e.Values,
		ReturnValues:                        types.ReturnValueAllNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

// itemExpression builds the expressions of one write of a bucket item.
type itemExpression struct{ client.Expression }

// requireUnrestricted requires that nothing about the item keeps a write from going by the stored balances.
func (e *itemExpression) requireUnrestricted(now int64) {
	e.RequireAbsent(schema.AttrDisabled)
	e.RequireAbsentOr(schema.AttrVU, ">", now)
	e.RequireAbsentOr(schema.AttrTTL, ">", seconds(now))
}

// seconds is the second that a millisecond falls in.
func seconds(ms int64) int64 {
	return schema.TTL(ms, 0)
}

// chargeWrite charges the write itself.
func (e *itemExpression) chargeWrite(required bool) {
	balance := schema.BucketAttribute(schema.WritesLimit, schema.FieldBalance)
	e.AddNumber(balance, -writeMilli)
	e.AddNumber(schema.BucketAttribute(schema.WritesLimit, schema.FieldConsumed), writeMilli)
	if required {
		e.Require(balance, ">=", writeMilli)
	}
}

// requireDefinition requires a limit to be stored as it was seen.
func (e *itemExpression) requireDefinition(l *schema.BucketLimit) {
	e.Require(schema.BucketAttribute(l.Name, schema.FieldCapacity), "=", l.Capacity)
	e.Require(schema.BucketAttribute(l.Name, schema.FieldRefill), "=", l.Refill)
	e.Require(schema.BucketAttribute(l.Name, schema.FieldPeriod), "=", l.PeriodMS)
}

// coldWrite is the write on an item that this process has not seen: it takes what the members ask from
// what is stored, and lets the item itself say whether that is there.
func (l *itemQueue) coldWrite(members []*waiter, now int64) *write {
	e := &itemExpression{}
	e.RequireExists(schema.AttrPK)
	for _, name := range limitNames(members) {
		sum, need := int64(0), int64(math.MinInt64)
		for _, m := range members {
			for k := range m.asks {
				if a := &m.asks[k]; a.name == name {
					need = max(need, sum+a.needs(l.state.shardCount()))
					sum += a.milli
				}
			}
		}
		balance := schema.BucketAttribute(name, schema.FieldBalance)
		if limit := waiterDefinition(members, name); limit != nil {
			e.requireDefinition(limit)
			rate := shareOf(limit, l.state.shardCount())
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
	return &write{update: l.updateInput(e), waiters: members}
}

// sameDefinitionPrefix are the first of the members, as far as those who know a definition know the same, and as
// what they ask of a limit can be counted.
func sameDefinitionPrefix(members []*waiter) []*waiter {
	sums := make(map[string]int64)
	known := make(map[string]*weir.Limit)
	for n, m := range members {
		for k := range m.asks {
			a := &m.asks[k]
			l := known[a.name]
			if l != nil && a.limit != nil && !l.Same(*a.limit) || sums[a.name] > math.MaxInt64-a.milli-a.belowCapacity {
				return members[:n]
			}
			if l == nil {
				known[a.name] = a.limit
			}
			sums[a.name] += a.milli
		}
	}
	return members
}

// coldMS is how recent the last refill must be for a write that does not know it: what a bucket
// gained before that, and may have had no room for, is not credited twice (ADR 16).
const coldMS = 1000

// waiterDefinition is the definition of a limit, as the first of the members has it who knows it.
func waiterDefinition(members []*waiter, name string) *schema.BucketLimit {
	for _, m := range members {
		for k := range m.asks {
			if a := &m.asks[k]; a.name == name && a.limit != nil {
				s := storedLimit(a.limit)
				return &s
			}
		}
	}
	return nil
}

// limitNames are the limits that members ask, each once.
func limitNames(members []*waiter) []string {
	var names []string
	seen := make(map[string]bool)
	for _, m := range members {
		for k := range m.asks {
			if name := m.asks[k].name; !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	return names
}

// balanceBounds are between which stored balances a limit can be charged without crediting it up to now,
// as seen in an image: not less than what is needed, and not more than what leaves room for all
// that it has gained since the last refill. Above that its share would have been full, and to go by
// what is stored would credit the same time twice.
func (m *image) balanceBounds(r *evaluation, i int) (low, high int64) {
	c := &m.limits[i]
	rate := shareOf(&c.BucketLimit, m.shards)
	low, high = math.MinInt64, math.MaxInt64
	if r.asked[i] {
		low = r.need[i]
	}
	if r.charged[i] {
		high = rate.CapacityMilli - rate.Gain(m.item.RefilledMS, r.after.limits[i].seen)
	}
	if r.refunded[i] > 0 {
		high = min(high, rate.CapacityMilli-r.refunded[i])
	}
	return low, high
}

// needsNoRefill reports whether a reckoning can be written without moving the time of the refill.
func (m *image) needsNoRefill(r *evaluation) bool {
	it := m.item
	switch {
	case it.Writes != nil && it.Writes.Balance < writeMilli,
		it.TTL != 0 && it.TTL <= seconds(r.latest),
		m.configExpired(r.latest):
		return false
	}
	if !r.canRequireDefinitions(m) {
		return false
	}
	for i := range m.limits {
		if !r.concerns(i) {
			continue
		}
		c, after := &m.limits[i], &r.after.limits[i]
		low, high := m.balanceBounds(r, i)
		if c.Balance < low || c.Balance > high || r.trimmed[i] ||
			after.balance+r.net[i] != c.storedBalanceAt(it.RefilledMS, after.seen, m.shards) {
			return false
		}
	}
	return true
}

// maxDefined is of how many limits a write can require the definition: DynamoDB's expressions have
// an end. With more, a write goes by the time of the refill, which whoever changes a definition
// moves, or stamps the item (vu).
const maxDefined = 16

// canRequireDefinitions reports whether a write on an image can require the definition of each limit that it
// concerns, changes or removes.
func (r *evaluation) canRequireDefinitions(m *image) bool {
	n := 0
	for i := range r.after.limits {
		c := &r.after.limits[i]
		was := m.limit(c.Name)
		if r.concerns(i) || was != nil && !was.sameDefinition(&c.BucketLimit) {
			n++
		}
	}
	for i := range m.limits {
		if r.after.limit(m.limits[i].Name) == nil {
			n++
		}
	}
	return n <= maxDefined
}

// concerns reports whether the write concerns a limit.
func (r *evaluation) concerns(i int) bool {
	return r.asked[i] || r.charged[i] || r.refunded[i] > 0 || r.consumed[i] != 0
}

// speculativeWrite moves balances by what was reckoned, and no refill: it goes together with whatever
// others do.
func (l *itemQueue) speculativeWrite(m *image, r *evaluation) *write {
	e := &itemExpression{}
	e.RequireExists(schema.AttrPK)
	leads := r.after.item.Copy()
	var refills bool
	for i := range m.limits {
		if !r.concerns(i) {
			continue
		}
		c := &m.limits[i]
		balance := schema.BucketAttribute(c.Name, schema.FieldBalance)
		e.AddNumber(balance, -r.net[i])
		e.AddNumber(schema.BucketAttribute(c.Name, schema.FieldConsumed), r.consumed[i])
		low, high := m.balanceBounds(r, i)
		e.RequireBetween(balance, low, high)
		e.requireDefinition(&c.BucketLimit)
		leads.Limits[i].Balance -= r.net[i]
		leads.Limits[i].Consumed += r.consumed[i]
		refills = refills || r.charged[i]
	}
	if refills {
		e.Require(schema.AttrRF, ">=", m.item.RefilledMS)
	}
	if m.item.Writes != nil {
		e.chargeWrite(true)
	}
	e.requireUnrestricted(r.latest)
	e.RequireAbsentOr(schema.AttrShardCount, "<=", int64(m.shards))
	l.debtTTL(e, r, leads)
	return &write{update: l.updateInput(e), after: r.after.withStored(leads)}
}

// debtTTL keeps an item until its debts are repaid.
func (l *itemQueue) debtTTL(e *itemExpression, r *evaluation, leads *schema.Bucket) {
	if leads.TTL == 0 {
		return
	}
	if at := r.after.debtRepaidAt(); at > leads.TTL {
		leads.TTL = at
		e.SetNumber(schema.AttrTTL, at)
	}
}

// debtRepaidAt is the second after which no limit is in debt any more; 0 if none is.
func (m *image) debtRepaidAt() int64 {
	var at int64
	for i := range m.limits {
		c := &m.limits[i]
		if c.balance >= 0 || c.Incomplete {
			continue
		}
		wait := c.rate.Wait(c.balance, 0, c.seen)
		if wait > math.MaxInt64-c.seen {
			return math.MaxInt64 / 1000
		}
		at = max(at, seconds(c.seen+wait)+1)
	}
	return at
}

// withStored is the image with other stored values.
func (m *image) withStored(b *schema.Bucket) *image {
	c := m.clone()
	c.item = b
	for i := range c.limits {
		if s := b.Limit(c.limits[i].Name); s != nil {
			c.limits[i].BucketLimit, c.limits[i].missing = *s, false
		}
	}
	return c
}

// forcedWrite moves balances without a condition but that the item is there: for what is never denied and
// has lost to other writers too often.
func (l *itemQueue) forcedWrite(rides []*itemUpdate) *write {
	r := evaluate(l.image, rides, nil)
	e := &itemExpression{}
	e.RequireExists(schema.AttrPK)
	for i := range l.image.limits {
		name := l.image.limits[i].Name
		e.AddNumber(schema.BucketAttribute(name, schema.FieldBalance), -r.net[i])
		e.AddNumber(schema.BucketAttribute(name, schema.FieldConsumed), r.consumed[i])
	}
	if l.image.item.Writes != nil {
		e.chargeWrite(false)
	}
	l.debtTTL(e, r, l.image.item.Copy())
	return &write{update: l.updateInput(e)}
}
