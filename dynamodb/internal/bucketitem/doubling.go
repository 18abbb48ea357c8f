package bucketitem

import (
	"context"

	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/sharding"
)

// The bounds of splitting a bucket.
const (
	// MaxShards is the largest number of shards of a bucket; the Python library has the same bound.
	MaxShards = 32
	// minShare is the least capacity that each limit keeps in each shard, in milli-units.
	minShare = 10_000
)

// doubleIfBusy doubles the shards of a bucket if its item takes more writes than DynamoDB allows
// for one item, unless a limit cannot be divided. The limit wcu of the item counts the writes.
func (c *commit) doubleIfBusy(ctx context.Context) {
	m := c.image
	if m == nil || m.Shards*2 > MaxShards || !c.subject.canDouble(m.Shards, c.now()) {
		return
	}
	w := m.Item.Writes
	if w == nil || w.Incomplete {
		return
	}
	if sharding.Share(w, 1).Refill(w.Balance, m.Item.RefilledMS, c.now()) >= WriteMilli {
		return
	}
	for i := range m.Limits {
		if !splits(&m.Limits[i].BucketLimit, 2*m.Shards) {
			return
		}
	}
	if t := c.firstConfig(); t != nil { // a limit that was added may not be on this item yet
		for i := range t.Limits {
			if l := StoredLimit(&t.Limits[i]); !splits(&l, 2*m.Shards) {
				return
			}
		}
	}
	c.subject.DoubleShards(ctx, m.Shards)
}

// splits reports whether a limit can be divided among the given number of shards: each has enough
// of it, and no milli-unit is lost to rounding.
func splits(l *schema.BucketLimit, shards int) bool {
	n := int64(shards)
	return l.Capacity/n >= minShare && l.Capacity%n == 0 && l.Refill%n == 0
}

// SpreadMS is the least time in milliseconds between two doublings of a bucket, in which the first
// takes effect.
const SpreadMS = 1000

// canDouble reports whether this shard count has been known for long enough to double it: right
// after a doubling the first shard is still as busy as before.
func (p *subjectState) canDouble(shards int, now int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if shards != p.itemShards {
		p.itemShards, p.itemShardsSince = shards, now
	}
	return shards == 1 || now-p.itemShardsSince >= SpreadMS
}

// DoubleShards doubles the shard count, in the background. The count of the first shard is the one
// in force, so its item is written first. If another process is faster, this process learns the new
// count when it next sees the item.
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
			// The next write returns the item with its count.
		default:
			p.ns.reportError(client.Classify(err))
		}
	})
}

// propagateShardCount raises the count on the other shards. Every writer divides capacity and
// refill by the count of the item that it writes, so an item with the old count would be given too
// large a share. weir's next refill of an item that is missed here corrects its count.
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

// setShardCount writes a shard count to one shard's item, under the conditions of e.
func (p *subjectState) setShardCount(
	ctx context.Context, shard, shards int, e *itemExpression,
) error {
	e.SetNumber(schema.AttrShardCount, int64(shards))
	_, err := p.ns.Client.API.UpdateItem(ctx, p.writer(shard).updateInput(e))
	return err
}
