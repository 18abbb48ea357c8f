package bucketitem

import (
	"math"

	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/sharding"
)

// normalWrite returns the write that credits every limit up to now, takes what was evaluated, and
// moves rf, the time of the refill. rf is its lock: of two normal writes on the same image, only
// the first succeeds. The write also gives the item the limits of the evaluation: r is an
// evaluation of m, or of m with the configuration t. t is nil if the configuration is not known.
func (b *itemWriter) normalWrite(m *Image, r *Evaluation, t *Config) *Write {
	e := &itemExpression{}
	at := max(r.latest, m.Item.RefilledMS)
	for i := range r.After.Limits {
		if c := &r.After.Limits[i]; r.concerns(i) && !c.missing {
			at = max(at, c.Seen)
		}
	}
	leads := m.Item.Copy()
	leads.RefilledMS = at
	leads.Limits = leads.Limits[:0]
	e.SetNumber(schema.AttrRF, at)
	e.Require(schema.AttrRF, "=", m.Item.RefilledMS)
	e.RequireAbsentOr(schema.AttrShardCount, "<=", int64(m.Shards))
	if m.Shards > m.Item.Shards { // a doubling has not reached this item
		e.SetNumber(schema.AttrShardCount, int64(m.Shards))
		leads.Shards = m.Shards
	}
	e.RequireAbsent(schema.AttrDisabled)
	definable := r.canRequireDefinitions(m)
	for i := range r.After.Limits {
		if c := &r.After.Limits[i]; c.Incomplete && !c.missing { // the rest of a removed limit stays
			leads.Limits = append(leads.Limits, c.BucketLimit)
			continue
		}
		leads.Limits = append(leads.Limits, e.creditLimit(m, r, i, at, definable))
	}
	e.removeLimits(m, r.After, definable)
	creditWrites(e, m, leads, at)
	if m.Item.ValidUntil != nil {
		e.RequireSame(schema.AttrVU, m.Item.ValidUntil)
		if m.configExpired(at) && t != nil && !t.fallback {
			e.RemoveAll(schema.AttrVU)
			leads.ValidUntil = nil
		}
	} else {
		e.RequireAbsent(schema.AttrVU)
	}
	b.renewTTL(e, r, leads, t, at)
	return &Write{update: b.updateInput(e), After: r.After.withStored(leads)}
}

// creditLimit writes one limit and returns it as the item then stores it, if no other write comes
// between.
//
// The balance is written as a difference (ADD), because speculative writes move it without the
// lock. So the conditions bound the stored balance instead of fixing it: from below by what the
// waiters need, less the credit; from above if another refund could lift the sum above the share.
// The balance must be exactly as it was seen if the credit is not the plain gain since rf, for
// example because the limit was full for a while, or was trimmed: if another writer has drained the
// limit since, moving rf would lose what it gained after that (ADR 16).
func (e *itemExpression) creditLimit(
	m *Image, r *Evaluation, i int, at int64, definable bool,
) schema.BucketLimit {
	c := &r.After.Limits[i]
	target := c.Peek(at, m.Shards)
	name := func(field string) string { return schema.BucketAttribute(c.Name, field) }
	if c.missing {
		e.addLimit(c, target, r.effects[i].consumed, definable)
		s := c.BucketLimit
		s.Balance, s.Consumed, s.Incomplete = target, r.effects[i].consumed, false
		return s
	}
	was := m.Limit(c.Name)
	balance := name(schema.FieldBalance)
	moved, fits := difference(target, was.Balance)
	if fits {
		e.AddNumber(balance, moved)
	} else {
		e.SetNumber(balance, target) // the condition on the balance makes it equal to an ADD
	}
	e.AddNumber(name(schema.FieldConsumed), r.effects[i].consumed)
	credited, counts := difference(moved, -r.effects[i].net)
	low, high := int64(math.MinInt64), int64(math.MaxInt64)
	if r.effects[i].asked && counts {
		if low, counts = difference(r.effects[i].need, credited); !counts {
			low = math.MinInt64
		}
	}
	switch {
	case !fits || !counts: // the difference overflows: a very deep debt, a very high capacity
		low, high = was.Balance, was.Balance
	case r.effects[i].trimmed: // a refund is cut off only if the limit is really full
		low, high = was.Balance, was.Balance
	case credited != sharding.Share(&was.BucketLimit, m.Shards).Gain(m.Item.RefilledMS, at):
		// By the image, the limit was full for a while, or a lowered capacity trims it. Then credited
		// may be below zero, which no gain is.
		low, high = was.Balance, was.Balance
	case credited > 0, r.effects[i].refunded > 0:
		high = was.Balance // another writer's refund moves the balance without the lock
	}
	if low != math.MinInt64 || high != math.MaxInt64 {
		e.RequireBetween(balance, low, high)
	}
	if (r.concerns(i) || !was.sameDefinition(&c.BucketLimit)) && definable {
		e.requireDefinition(&was.BucketLimit)
	}
	if !was.sameDefinition(&c.BucketLimit) {
		e.SetNumber(name(schema.FieldCapacity), c.Capacity)
		e.SetNumber(name(schema.FieldRefill), c.Refill)
		e.SetNumber(name(schema.FieldPeriod), c.PeriodMS)
	}
	s := c.BucketLimit
	s.Balance, s.Consumed = target, was.Consumed+r.effects[i].consumed
	return s
}

// removeLimits removes all attributes of the limits that the configuration does not have.
func (e *itemExpression) removeLimits(m, after *Image, definable bool) {
	for i := range m.Limits {
		gone := &m.Limits[i]
		if after.Limit(gone.Name) != nil {
			continue
		}
		e.RemoveAll(m.Item.Attributes(gone.Name)...)
		if !gone.Incomplete && definable {
			e.requireDefinition(&gone.BucketLimit)
		}
	}
}

// creditWrites credits wcu, the limit that counts writes, and charges this write. wcu is not
// divided among shards.
func creditWrites(e *itemExpression, m *Image, leads *schema.Bucket, at int64) {
	w := m.Item.Writes
	if w == nil || w.Incomplete {
		return
	}
	rate := sharding.Share(w, 1)
	credited := rate.Refill(w.Balance, m.Item.RefilledMS, at) - w.Balance
	balance := schema.BucketAttribute(schema.WritesLimit, schema.FieldBalance)
	e.AddNumber(balance, credited-WriteMilli)
	e.AddNumber(schema.BucketAttribute(schema.WritesLimit, schema.FieldConsumed), WriteMilli)
	if credited > 0 {
		e.Require(balance, "<=", w.Balance)
	}
	leads.Writes.Balance += credited - WriteMilli
	leads.Writes.Consumed += WriteMilli
}

// renewTTL sets the time from which DynamoDB may delete the item: some time after every limit would
// be full again, and not before its debts are repaid. An item with limits of the entity's own never
// expires. Nor does the first shard of several: a process that finds no item knows no shard count,
// and would create the first shard full beside the others (ADR 19).
func (b *itemWriter) renewTTL(
	e *itemExpression, r *Evaluation, leads *schema.Bucket, t *Config, at int64,
) {
	var ttl int64
	switch {
	case t == nil:
		ttl = leads.TTL
	case b.id.Shard == 0 && leads.Shards > 1: // never
	case !t.permanent():
		if secs, ok := schema.BucketSeconds(leads.Limits, b.ttlMultiplier); ok {
			ttl = schema.TTL(at, secs)
		}
	}
	if ttl != 0 {
		ttl = max(ttl, r.After.debtRepaidAt())
	}
	switch ttl {
	case leads.TTL:
	case 0:
		e.RemoveAll(schema.AttrTTL)
	default:
		e.SetNumber(schema.AttrTTL, ttl)
		e.RequireAbsentOr(schema.AttrTTL, "<=", max(ttl, leads.TTL)) // a later one is for a debt
	}
	leads.TTL = ttl
}
