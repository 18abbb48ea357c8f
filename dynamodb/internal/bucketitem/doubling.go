package bucketitem

import (
	"context"

	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/sharding"
)

// doubleIfBusy doubles the shards of a bucket if its item takes more writes than DynamoDB allows
// for one item, unless it may not be split. The limit wcu of the item counts the writes.
func (c *commit) doubleIfBusy(ctx context.Context) {
	if c.shouldDouble() {
		c.subject.DoubleShards(ctx, c.image.Shards)
	}
}

// shouldDouble reports whether the item is too busy, and its bucket may be split.
func (c *commit) shouldDouble() bool {
	m := c.image
	if m == nil || !c.subject.canDouble(m.Shards, c.now()) {
		return false
	}
	w := m.Item.Writes
	if w == nil || w.Incomplete ||
		sharding.Share(w, 1).Refill(w.Balance, m.Item.RefilledMS, c.now()) >= WriteMilli ||
		!sharding.MaySplit(m.Item, 2*m.Shards) {
		return false
	}
	if t := c.firstConfig(); t != nil { // a limit that was added may not be on this item yet
		for i := range t.Limits {
			if l := StoredLimit(&t.Limits[i]); !sharding.Divides(&l, 2*m.Shards) {
				return false
			}
		}
	}
	return true
}

// canDouble reports whether this shard count has been known for long enough to double it: right
// after a doubling the first shard is still as busy as before.
func (p *subjectState) canDouble(shards int, now int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if shards != p.itemShards {
		p.itemShards, p.itemShardsSince = shards, now
	}
	return shards == 1 || now-p.itemShardsSince >= sharding.SpreadMS
}

// DoubleShards doubles the shard count, in the background. If another process is faster, this
// process learns the new count when it next sees the item. An item that [RaiseOthers] misses has
// its count corrected by weir's next refill of it.
func (p *subjectState) DoubleShards(ctx context.Context, shards int) {
	p.retain()
	p.ns.Running.Run(func() {
		defer p.Release()
		ctx, cancel := p.ns.backgroundContext(ctx)
		defer cancel()
		err := Double(ctx, p.ns.Client, p.id(0), shards)
		switch client.OutcomeOf(err).Kind {
		case client.WriteApplied:
			p.ns.Counts.Doublings.Add(1)
			p.RaiseShards(2 * shards)
			_, failed := RaiseOthers(ctx, p.ns.Client, p.id(0), shards, 2*shards)
			for _, err := range failed {
				if client.OutcomeOf(err).Kind == client.WriteFailed {
					p.ns.reportError(client.Classify(err))
				}
			}
		case client.WriteRefused, client.WriteConflicted, client.WriteThrottled, client.WriteUnknown:
			// The next write returns the item with its count.
		default:
			p.ns.reportError(client.Classify(err))
		}
	})
}

// Double doubles the shard count of a bucket, on the condition that it is the given one. The count
// of the first shard is the one in force, so only its item is written; see [RaiseOthers] for the
// others. It makes no shard. [client.OutcomeOf] tells what became of the write.
func Double(ctx context.Context, c *client.Client, id schema.BucketID, shards int) error {
	e := &itemExpression{}
	if shards == 1 {
		e.RequireExists(schema.AttrPK)
		e.RequireAbsentOr(schema.AttrShardCount, "=", 1)
	} else {
		e.Require(schema.AttrShardCount, "=", int64(shards))
	}
	id.Shard = 0
	return setShardCount(ctx, c, id, 2*shards, e)
}

// RaiseOthers raises the shard count on the items of a bucket other than the first, after it was
// changed there. Every writer divides capacity and refill by the count of the item that it writes,
// so an item with the old count would be given too large a share. Shards that do not exist are not
// made. It returns the number of items that it changed, and the errors of the others.
func RaiseOthers(
	ctx context.Context, c *client.Client, id schema.BucketID, from, to int,
) (raised int, failed []error) {
	for shard := 1; shard < from; shard++ {
		e := &itemExpression{}
		e.RequireExists(schema.AttrPK)
		e.RequireAbsentOr(schema.AttrShardCount, "<", int64(to))
		id.Shard = shard
		err := setShardCount(ctx, c, id, to, e)
		switch client.OutcomeOf(err).Kind {
		case client.WriteApplied:
			raised++
		case client.WriteRefused: // it does not exist, or has the count
		default:
			failed = append(failed, err)
		}
	}
	return raised, failed
}

// setShardCount writes a shard count to one item, under the conditions of e.
func setShardCount(
	ctx context.Context, c *client.Client, id schema.BucketID, shards int, e *itemExpression,
) error {
	e.SetNumber(schema.AttrShardCount, int64(shards))
	w := &itemWriter{table: c.TableName, id: id}
	_, err := c.API.UpdateItem(ctx, w.updateInput(e))
	return err
}
