package dynamodb

import (
	"context"
	"math/rand/v2"
	"slices"

	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
)

// pickShard chooses a shard: at random, so that all of them are used alike.
func (p *subjectState) pickShard() int {
	if n := p.shardCount(); n > 1 {
		return rand.IntN(n)
	}
	return 0
}

// tryOtherShards goes on where one shard had too little: the others are read once, and then asked in the
// order of what they have; and where no shard has enough but all of them together have, it is drawn
// from several.
func (j *reserveOp) tryOtherShards(ctx context.Context, e *itemCharge) {
	now := j.now
	tried := e.found
	images, err := e.state.readAll(ctx, now)
	if err != nil {
		e.found = waiterResult{kind: failed, err: err}
		return
	}
	for _, shard := range e.shardsWithEnough(images, now) {
		m := j.waiterFor(e)
		e.state.queue(shard).enqueue(m, nil)
		v := m.wait(ctx)
		if v.kind != denied {
			e.found, e.shard = v, shard
			if v.kind == taken {
				e.shardTakes = []shardTake{{shard, e.takes, v.found}}
			}
			return
		}
		tried, e.shard = v, shard
	}
	if j.takeFromShards(ctx, e, images) {
		return
	}
	e.found = tried
	e.addShardTotals(images, now)
}

// addShardTotals adds to what was found what the other shards have.
func (e *itemCharge) addShardTotals(images []*image, now int64) {
	e.found.shards = len(images)
	if len(images) < 2 || len(e.found.found) < len(e.takes) {
		return
	}
	e.found.others = make([]int64, len(e.takes))
	for k := range e.takes {
		for i, m := range images {
			if i != e.shard {
				e.found.others[k] += m.available(&e.takes[k], now)
			}
		}
	}
}

// available is what a shard has of a limit; nothing where there is no such shard.
// One that has not met a limit yet that was added has a share of it.
func (m *image) available(a *itemTake, now int64) int64 {
	if m == nil {
		return 0
	}
	c := m.limit(a.name)
	switch {
	case c != nil && !c.Incomplete:
		return c.peek(now, m.shards)
	case a.limit != nil:
		l := storedLimit(a.limit)
		return shareOf(&l, m.shards).CapacityMilli
	}
	return 0
}

// shardsWithEnough are the shards that were not asked and have enough, the fullest first. The first one
// has what no other has when it is made; another one that is not there takes what it has from
// these.
func (e *itemCharge) shardsWithEnough(images []*image, now int64) []int {
	var shards []int
	for i, m := range images {
		if m == nil && i == 0 {
			shards = append(shards, i)
		}
		if m == nil || i == e.shard {
			continue
		}
		enough := true
		for k := range e.takes {
			a := &e.takes[k]
			enough = enough && m.available(a, now) >= a.needs(len(images))
		}
		if enough {
			shards = append(shards, i)
		}
	}
	first := &e.takes[0]
	slices.SortStableFunc(shards, func(a, b int) int {
		return int(min(1, max(-1, images[b].available(first, now)-images[a].available(first, now))))
	})
	return shards
}

// takeFromShards takes the errand in parts from several shards, where they have enough together.
func (j *reserveOp) takeFromShards(ctx context.Context, e *itemCharge, images []*image) bool {
	now := j.now
	parts := make([][]itemTake, len(images))
	for k := range e.takes {
		a := e.takes[k]
		left := a.milli
		var all int64
		for i, m := range images {
			part := a
			has := m.available(&a, now)
			part.milli = min(left, max(0, has-(a.needs(len(images))-a.milli)))
			all += has
			if part.milli > 0 {
				parts[i] = append(parts[i], part)
				left -= part.milli
			}
		}
		if left > 0 || a.milli == 0 && all < a.belowCapacity { // nothing is asked, but nothing is owed either
			return false
		}
	}
	members := make([]*waiter, len(images))
	for i, asks := range parts {
		if len(asks) > 0 {
			members[i] = j.waiterForPart(e, asks)
			e.state.queue(i).enqueue(members[i], nil)
		}
	}
	all := true
	var failure waiterResult
	for i, m := range members {
		if m == nil {
			continue
		}
		v := m.wait(ctx)
		if v.kind == taken {
			e.shardTakes = append(e.shardTakes, shardTake{i, parts[i], v.found})
			continue
		}
		if all = false; failure.kind != failed {
			failure = v
		}
	}
	if !all {
		e.compensate(now)
		if failure.kind == failed {
			e.found = failure
			return true
		}
		return false
	}
	e.found.kind = taken
	e.addShardTotals(images, now)
	return true
}

// The bounds of splitting a bucket.
const (
	// maxShards is how many shards a bucket has at most; the Python library has the same bound.
	maxShards = 32
	// leastShare is what the smallest limit must still have in each shard, in milli-units.
	leastShare = 10_000
)

// doubleIfBusy doubles the shards of a bucket whose item takes more writes than DynamoDB allows for one,
// unless some limit is too small to be split.
func (c *commit) doubleIfBusy(ctx context.Context) {
	m := c.image
	if m == nil || m.shards*2 > maxShards || !c.state.canDouble(m.shards, c.now()) {
		return
	}
	w := m.item.Writes
	if w == nil || w.Incomplete {
		return
	}
	if shareOf(w, 1).Refill(w.Balance, m.item.RefilledMS, c.now()) >= writeMilli {
		return
	}
	for i := range m.limits {
		if !splits(&m.limits[i].BucketLimit, 2*m.shards) {
			return
		}
	}
	if t := c.agreedConfig(); t != nil { // a limit that was added is perhaps not on this item yet
		for i := range t.limits {
			if l := storedLimit(&t.limits[i]); !splits(&l, 2*m.shards) {
				return
			}
		}
	}
	c.store.doubleShards(ctx, c.state, m.shards)
}

// splits reports whether a limit can be divided among so many shards: each has enough of it, and
// nothing is lost to rounding.
func splits(l *schema.BucketLimit, shards int) bool {
	n := int64(shards)
	return l.Capacity/n >= leastShare && l.Capacity%n == 0 && l.Refill%n == 0
}

// spreadMS is how long a new count of shards has to show what it does before it is doubled again.
const spreadMS = 1000

// canDouble reports whether a count of shards has been known for long enough: right after a doubling
// the first shard is as crowded as before.
func (p *subjectState) canDouble(shards int, now int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if shards != p.itemShards {
		p.itemShards, p.itemShardsSince = shards, now
	}
	return shards == 1 || now-p.itemShardsSince >= spreadMS
}

// doubleShards raises the count on the first shard, whose count is the one that counts. Who loses learns
// the winner's when it next sees the item.
func (s *bucketStore) doubleShards(ctx context.Context, p *subjectState, shards int) {
	p.retain()
	s.running.Run(func() {
		defer p.release()
		ctx, cancel := s.backgroundContext(ctx)
		defer cancel()
		l := p.queue(0)
		e := &itemExpression{}
		e.SetNumber(schema.AttrShardCount, int64(2*shards))
		if shards == 1 {
			e.RequireExists(schema.AttrPK)
			e.RequireAbsentOr(schema.AttrShardCount, "=", 1)
		} else {
			e.Require(schema.AttrShardCount, "=", int64(shards))
		}
		_, err := s.client.API.UpdateItem(ctx, l.updateInput(e))
		switch o := client.OutcomeOf(err); o.Kind {
		case client.WriteApplied:
			s.counts.doublings.Add(1)
			p.raiseShards(2 * shards)
			s.propagateShardCount(ctx, p, shards, 2*shards)
		case client.WriteRefused, client.WriteConflicted, client.WriteThrottled, client.WriteUnknown:
			// The item says it to whoever writes next.
		default:
			s.reportError(client.Classify(err))
		}
	})
}

// propagateShardCount raises the count on the other shards, so that all who refill one give it its share
// alone. One that is missed learns it with weir's next refill.
func (s *bucketStore) propagateShardCount(ctx context.Context, p *subjectState, from, shards int) {
	for shard := 1; shard < from; shard++ {
		l := p.queue(shard)
		e := &itemExpression{}
		e.SetNumber(schema.AttrShardCount, int64(shards))
		e.RequireExists(schema.AttrPK)
		e.RequireAbsentOr(schema.AttrShardCount, "<", int64(shards))
		_, err := s.client.API.UpdateItem(ctx, l.updateInput(e))
		if o := client.OutcomeOf(err); o.Kind == client.WriteFailed {
			s.reportError(client.Classify(err))
		}
	}
}
