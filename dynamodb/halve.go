package dynamodb

import (
	"context"
	"math/bits"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir/internal/schema"
)

// halve puts half of what the shard that a new one was split from has into its blank image, and
// returns the write that takes it there: both are made in one transaction, so that nothing is there
// twice. An empty new shard would hold up every request with a slow limit that is drawn to it (ADR
// 19). Nil where there is nothing to halve.
func (c *commit) halve(ctx context.Context, blank *image) (*dynamodb.UpdateItemInput, error) {
	if c.shard == 0 || c.round > 1 { // twice somebody else was quicker: then it begins empty
		return nil, nil
	}
	sibling := c.spot.line(splitFrom(c.shard))
	item, err := c.store.getItem(ctx, sibling.id().Key(), true)
	if err != nil || item == nil {
		return nil, err
	}
	b, err := schema.ParseBucket(item)
	if err != nil {
		return nil, unreadable(err)
	}
	m := learn(b, nil, c.spot.count(), c.now())
	if m.restricted() || b.Stub {
		return nil, nil
	}
	move := &ride{now: c.now()}
	for i := range blank.limits {
		to := &blank.limits[i]
		from := m.limit(to.Name)
		if from == nil || from.Incomplete || !to.defined(&from.BucketLimit) {
			continue
		}
		if n := min(from.peek(move.now, m.shards)/2, to.rate.CapacityMilli); n > 0 {
			to.balance = n
			move.changes = append(move.changes, change{name: to.Name, milli: n, moves: true})
		}
	}
	if len(move.changes) == 0 {
		return nil, nil
	}
	return sibling.normal(m, reckon(m, []*ride{move}, nil), nil).update, nil
}

// splitFrom is the shard whose half a shard was before the doubling that made it.
func splitFrom(shard int) int { return shard - 1<<(bits.Len(uint(shard))-1) }

// refusedItem is the image of the item that a transaction was to put, where its condition did not
// hold.
func refusedItem(reasons []types.CancellationReason) schema.Item {
	if len(reasons) == 0 || text(reasons[0].Code) != reasonCondition {
		return nil
	}
	return reasons[0].Item
}
