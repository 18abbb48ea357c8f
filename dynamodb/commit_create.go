package dynamodb

import (
	"context"
	"math/bits"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
)

// redirectWaiters sends reservations on to other shards, as this one is not made.
func (c *commit) redirectWaiters(m *image) {
	r := evaluate(m, nil, c.waiters)
	r.denied, r.deniedResults = append(r.denied, r.admitted...), append(r.deniedResults, r.admittedResults...)
	for i := range r.deniedResults {
		r.deniedResults[i].kind = denied
	}
	c.answerDenied(r)
}

// dropUnneededUpdates ends the rides for which no item is made: those that only give back, because an item
// that is not there is full, and all of them if the namespace was deleted, because then a purge has
// removed the item and no other may remove a new one.
func (c *commit) dropUnneededUpdates() {
	purged := c.ns.gone.Load()
	c.endUpdates(func(r *itemUpdate) (bool, error) { return purged || r.refundsOnly(), nil })
}

// restoreFirstShard gives a first shard that is made anew all that no other one has or can come to have.
func (c *commit) restoreFirstShard(ctx context.Context, blank *image) error {
	if blank.shards == 1 {
		return nil
	}
	images, err := c.subject.readAll(ctx, c.now())
	if err != nil || len(images) > blank.shards {
		return err
	}
	for i := range blank.limits {
		l := &blank.limits[i]
		if _, ghost := c.removedLimits[l.Name]; !ghost {
			l.balance += firstShare(&l.BucketLimit, images) - l.rate.CapacityMilli
			if l.balance < l.rate.CapacityMilli {
				l.seen = c.now()
			}
		}
	}
	return nil
}

// firstShare is what a first shard that is not there has when it is made: the whole, less the share
// of each other one that is there, or can be made of one that is.
func firstShare(l *schema.BucketLimit, images []*image) int64 {
	left := l.Capacity
	share := shareOf(l, len(images)).CapacityMilli
	for shard := 1; shard < len(images); shard++ {
		for of := shard; of > 0; of = parentShard(of) {
			if images[of] != nil {
				left -= share
				break
			}
		}
	}
	return left
}

// splitShard puts half of what another shard has into the blank image of a new one, and returns the
// write that takes it there: both are made in one transaction, so that nothing is there twice. An
// empty new shard would hold up every request with a slow limit that is drawn to it, and gain its
// share beside what the others keep above theirs (ADR 19). The write is nil where there is nothing
// to halve; found is false where there is no shard to take from.
func (c *commit) splitShard(ctx context.Context, blank *image) (w *dynamodb.UpdateItemInput, found bool, err error) {
	images, err := c.subject.readShards(ctx, c.now())
	if err != nil {
		return nil, false, err
	}
	from := splitSource(images, c.shard)
	if from < 0 || images[from].restricted() {
		return nil, false, nil
	}
	m, t := images[from], c.config
	if t.fallback {
		t = nil
	} else if !t.matches(m) {
		m = m.withConfig(t, c.subject.item(from).removed())
	}
	move := &itemUpdate{now: c.now()}
	for i := range blank.limits {
		to := &blank.limits[i]
		has := m.limit(to.Name)
		if has == nil || has.Incomplete || !to.sameDefinition(&has.BucketLimit) {
			continue
		}
		if n := min(has.peek(move.now, m.shards)/2, to.rate.CapacityMilli); n > 0 {
			to.balance = n
			move.deltas = append(move.deltas, delta{name: to.Name, milli: n, betweenShards: true})
		}
	}
	if len(move.deltas) == 0 {
		return nil, true, nil
	}
	r := evaluate(m, []*itemUpdate{move}, nil)
	for _, ch := range move.deltas { // what moves must still be there
		i := r.after.index(ch.name)
		r.asked[i], r.need[i] = true, r.net[i]
	}
	return c.subject.writer(from).normalWrite(images[from], r, t).update, true, nil
}

// splitSource is the shard that a new one takes half of: the nearest it descends from that has more than
// its share of something, otherwise the nearest that is there; -1 if there is none.
func splitSource(images []*image, shard int) int {
	nearest := -1
	for shard > 0 {
		shard = parentShard(shard)
		m := images[shard]
		if m == nil || m.item.Stub {
			continue
		}
		if m.aboveShare() {
			return shard
		}
		if nearest < 0 {
			nearest = shard
		}
	}
	return nearest
}

// parentShard is the shard whose half a shard was before the doubling that made it.
func parentShard(shard int) int { return shard - 1<<(bits.Len(uint(shard))-1) }

// cancelledItem is the image of the item that a transaction was to put, where its condition did not
// hold.
func cancelledItem(reasons []types.CancellationReason) schema.Item {
	if len(reasons) == 0 || client.Text(reasons[0].Code) != client.ReasonCondition {
		return nil
	}
	return reasons[0].Item
}
