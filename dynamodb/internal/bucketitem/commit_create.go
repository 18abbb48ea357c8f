package bucketitem

import (
	"context"
	"math/bits"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/sharding"
)

// redirectWaiters denies the reservations on a shard that is not created, so that they try other
// shards.
func (c *commit) redirectWaiters(m *Image) {
	r := evaluate(m, nil, c.Waiters)
	r.denied = append(r.denied, r.admitted...)
	r.deniedResults = append(r.deniedResults, r.AdmittedResults...)
	for i := range r.deniedResults {
		r.deniedResults[i].Kind = Denied
	}
	c.answerDenied(r)
}

// dropUnneededUpdates ends the updates that need no item: those that only refund. If the first shard
// does not exist, the bucket is full; if another one does not exist, the units go to the others. If
// the namespace was deleted, it ends all updates: a purge may have removed the item, and nothing
// would remove a new one.
func (c *commit) dropUnneededUpdates() {
	purged, w := c.ns.Gone.Load(), levelWork{now: c.now(), own: true}
	c.endUpdates(func(r *Update) (bool, error) {
		if purged || !r.refundsOnly() || r.needsItem {
			return purged, nil
		}
		if r.moves < maxMoves {
			w.moves = max(w.moves, r.moves)
			for _, d := range r.Deltas {
				w.add(d.Name, -d.Milli)
			}
		}
		return true, nil
	})
	if c.shard > 0 && w.overflow != nil {
		c.later.level(w)
	}
}

// restoreFirstShard sets the balances of a first shard that is created again while others exist:
// the whole, less what the other shards have or can come to have (see [FirstShare]).
func (c *commit) restoreFirstShard(ctx context.Context, blank *Image) error {
	if blank.Shards == 1 {
		return nil
	}
	images, err := c.subject.ReadAll(ctx, c.now())
	if err != nil || len(images) > blank.Shards {
		return err
	}
	for i := range blank.Limits {
		l := &blank.Limits[i]
		if _, removed := c.removedLimits[l.Name]; !removed {
			l.BalanceMilli += FirstShare(&l.BucketLimit, images) - l.Rate.CapacityMilli
			if l.BalanceMilli < l.Rate.CapacityMilli {
				l.Seen = c.now()
			}
		}
	}
	return nil
}

// FirstShare returns the balance with which a first shard that does not exist is created: the
// capacity, less a share for each other shard that exists or can be split from one that does.
func FirstShare(l *schema.BucketLimit, images []*Image) int64 {
	left := l.Capacity
	share := sharding.Share(l, len(images)).CapacityMilli
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

// splitShard moves half of another shard to a new one. It sets the balances of the blank image, and
// returns the write that takes them from the other shard. Both are written in one transaction, so
// no unit counts twice. A new shard that began empty would hold up every request with a slow limit
// that is sent to it, while the other shards keep what they have above their shares (ADR 19). The
// write is nil if there is nothing to move; found is false if there is no shard to split.
func (c *commit) splitShard(
	ctx context.Context, blank *Image,
) (w *dynamodb.UpdateItemInput, found bool, err error) {
	images, err := c.subject.ReadShards(ctx, c.now())
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
		m = m.WithConfig(t, c.subject.Item(from).Removed())
	}
	move := &Update{Now: c.now()}
	for i := range blank.Limits {
		to := &blank.Limits[i]
		has := m.Limit(to.Name)
		if has == nil || has.Incomplete || !to.sameDefinition(&has.BucketLimit) {
			continue
		}
		if n := min(has.Peek(move.Now, m.Shards)/2, to.Rate.CapacityMilli); n > 0 {
			to.BalanceMilli = n
			move.Deltas = append(move.Deltas, Delta{Name: to.Name, Milli: n, betweenShards: true})
		}
	}
	if len(move.Deltas) == 0 {
		return nil, true, nil
	}
	r := evaluate(m, []*Update{move}, nil)
	for _, ch := range move.Deltas { // require that the units are still there
		i := r.After.index(ch.Name)
		r.effects[i].asked, r.effects[i].need = true, r.effects[i].net
	}
	return c.subject.writer(from).normalWrite(images[from], r, t).update, true, nil
}

// splitSource returns the shard that a new one takes half of: the nearest ancestor that has more
// than its share of some limit, otherwise the nearest ancestor that exists; -1 if none does.
func splitSource(images []*Image, shard int) int {
	nearest := -1
	for shard > 0 {
		shard = parentShard(shard)
		m := images[shard]
		if m == nil || m.Item.Stub {
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

// parentShard returns the shard from which the doubling that made this shard split it off.
func parentShard(shard int) int { return shard - 1<<(bits.Len(uint(shard))-1) }

// cancelledItem returns the existing item if the condition of a transaction's put failed, which is
// its first part; nil if another part failed.
func cancelledItem(reasons []types.CancellationReason) schema.Item {
	if len(reasons) == 0 || client.Text(reasons[0].Code) != client.ReasonCondition {
		return nil
	}
	return reasons[0].Item
}

// blankImage returns the image of an item that does not exist: every limit of the configuration is
// full. A shard other than the first begins empty, because its units are still in the other shards.
// A limit that was removed earlier returns with the balance that it had.
func (s *itemState) blankImage(t *Config, o owner, now int64) *Image {
	id, shards := s.subject.id(s.shard), max(s.subject.ShardCount(), 1)
	b := &schema.Bucket{
		Namespace: id.Namespace, Entity: id.Entity, Resource: id.Resource, Shard: id.Shard,
		RefilledMS: now, Shards: shards, Writes: schema.NewWrites(),
		Cascade: o.cascade, Parent: o.parent,
		Generation: o.generation, Incarnation: o.incarnation, Stamped: o.stamped,
	}
	m := &Image{Item: b, Shards: shards}
	for i := range t.Limits {
		c := unusedLimit(StoredLimit(&t.Limits[i]), shards)
		if was, ok := s.removedLimits[c.Name]; ok {
			was.BucketLimit = c.BucketLimit
			c = was
		} else if id.Shard > 0 {
			c.BalanceMilli, c.Seen = 0, now
		}
		c.missing = true
		m.Limits = append(m.Limits, c)
	}
	return m
}
