package bucketitem

import (
	"context"

	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
)

// The bounds of splitting a bucket.
const (
	// MaxShards is how many shards a bucket has at most; the Python library has the same bound.
	MaxShards = 32
	// leastShare is what the smallest limit must still have in each shard, in milli-units.
	leastShare = 10_000
)

// doubleIfBusy doubles the shards of a bucket whose item takes more writes than DynamoDB allows
// for one, unless some limit is too small to be divided.
func (c *commit) doubleIfBusy(ctx context.Context) {
	m := c.image
	if m == nil || m.Shards*2 > MaxShards || !c.subject.canDouble(m.Shards, c.now()) {
		return
	}
	w := m.Item.Writes
	if w == nil || w.Incomplete {
		return
	}
	if ShareOf(w, 1).Refill(w.Balance, m.Item.RefilledMS, c.now()) >= WriteMilli {
		return
	}
	for i := range m.Limits {
		if !splits(&m.Limits[i].BucketLimit, 2*m.Shards) {
			return
		}
	}
	if t := c.agreedConfig(); t != nil { // a limit that was added is perhaps not on this item yet
		for i := range t.Limits {
			if l := StoredLimit(&t.Limits[i]); !splits(&l, 2*m.Shards) {
				return
			}
		}
	}
	c.subject.DoubleShards(ctx, m.Shards)
}

// splits reports whether a limit can be divided among so many shards: each has enough of it, and
// nothing is lost to rounding.
func splits(l *schema.BucketLimit, shards int) bool {
	n := int64(shards)
	return l.Capacity/n >= leastShare && l.Capacity%n == 0 && l.Refill%n == 0
}

// SpreadMS is how long a new count of shards has to take effect before it is doubled again.
const SpreadMS = 1000

// canDouble reports whether a count of shards has been known for long enough: right after a
// doubling the first shard is as busy as before.
func (p *subjectState) canDouble(shards int, now int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if shards != p.itemShards {
		p.itemShards, p.itemShardsSince = shards, now
	}
	return shards == 1 || now-p.itemShardsSince >= SpreadMS
}

// DoubleShards raises the count on the first shard, whose count is the one that counts. If another
// process is faster, this one learns the new count when it next sees the item.
func (p *subjectState) DoubleShards(ctx context.Context, shards int) {
	p.retain()
	p.ns.Running.Run(func() {
		defer p.Release()
		ctx, cancel := p.ns.backgroundContext(ctx)
		defer cancel()
		e := &itemExpression{}
		if shards == 1 {
			e.RequireExists(schema.AttrPK)
			e.RequireAbsentOr(schema.AttrShardCount, "=", 1)
		} else {
			e.Require(schema.AttrShardCount, "=", int64(shards))
		}
		err := p.setShardCount(ctx, 0, 2*shards, e)
		switch client.OutcomeOf(err).Kind {
		case client.WriteApplied:
			p.ns.Counts.Doublings.Add(1)
			p.RaiseShards(2 * shards)
			p.propagateShardCount(ctx, shards, 2*shards)
		case client.WriteRefused, client.WriteConflicted, client.WriteThrottled, client.WriteUnknown:
			// The next writer learns from the item what became of it.
		default:
			p.ns.reportError(client.Classify(err))
		}
	})
}

// propagateShardCount raises the count on the other shards, so that every writer that refills one
// gives it its share alone. One that is missed learns the count with weir's next refill.
func (p *subjectState) propagateShardCount(ctx context.Context, from, shards int) {
	for shard := 1; shard < from; shard++ {
		e := &itemExpression{}
		e.RequireExists(schema.AttrPK)
		e.RequireAbsentOr(schema.AttrShardCount, "<", int64(shards))
		err := p.setShardCount(ctx, shard, shards, e)
		if client.OutcomeOf(err).Kind == client.WriteFailed {
			p.ns.reportError(client.Classify(err))
		}
	}
}

// setShardCount writes a count of shards to one of them, under the conditions of e.
func (p *subjectState) setShardCount(
	ctx context.Context, shard, shards int, e *itemExpression,
) error {
	e.SetNumber(schema.AttrShardCount, int64(shards))
	_, err := p.ns.Client.API.UpdateItem(ctx, p.writer(shard).updateInput(e))
	return err
}
