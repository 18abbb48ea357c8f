package dynamodb

import (
	"context"
	"slices"

	"github.com/weir-limiter/weir/dynamodb/internal/bucketitem"
)

// tryOtherShards goes on where one shard had too little: the others are read once, and then asked in the
// order of what they have; and where no shard has enough but all of them together have, it is drawn
// from several.
func (j *reserveOp) tryOtherShards(ctx context.Context, e *itemCharge) {
	now := j.now
	tried := e.found
	images, err := e.state.ReadAll(ctx, now)
	if err != nil {
		e.found = bucketitem.Result{Kind: bucketitem.Failed, Err: err}
		return
	}
	for _, shard := range e.shardsWithEnough(images, now) {
		m := j.waiterFor(e)
		e.state.Queue(shard).EnqueueWaiter(m)
		v := m.Wait(ctx)
		if v.Kind != bucketitem.Denied {
			e.found, e.shard = v, shard
			if v.Kind == bucketitem.Taken {
				e.shardTakes = []shardTake{{shard, e.takes, v.Found}}
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
func (e *itemCharge) addShardTotals(images []*bucketitem.Image, now int64) {
	e.found.Shards = len(images)
	if len(images) < 2 || len(e.found.Found) < len(e.takes) {
		return
	}
	e.found.Others = make([]int64, len(e.takes))
	for k := range e.takes {
		for i, m := range images {
			if i != e.shard {
				e.found.Others[k] += m.Available(&e.takes[k], now)
			}
		}
	}
}

// shardsWithEnough are the shards that were not asked and have enough, the fullest first. The first one
// has what no other has when it is made; another one that is not there takes what it has from
// these.
func (e *itemCharge) shardsWithEnough(images []*bucketitem.Image, now int64) []int {
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
			enough = enough && m.Available(a, now) >= a.Needs(len(images))
		}
		if enough {
			shards = append(shards, i)
		}
	}
	first := &e.takes[0]
	slices.SortStableFunc(shards, func(a, b int) int {
		return int(min(1, max(-1, images[b].Available(first, now)-images[a].Available(first, now))))
	})
	return shards
}

// takeFromShards takes the errand in parts from several shards, where they have enough together.
func (j *reserveOp) takeFromShards(ctx context.Context, e *itemCharge, images []*bucketitem.Image) bool {
	now := j.now
	parts := make([][]bucketitem.Take, len(images))
	for k := range e.takes {
		a := e.takes[k]
		left := a.Milli
		var all int64
		for i, m := range images {
			part := a
			has := m.Available(&a, now)
			part.Milli = min(left, max(0, has-(a.Needs(len(images))-a.Milli)))
			all += has
			if part.Milli > 0 {
				parts[i] = append(parts[i], part)
				left -= part.Milli
			}
		}
		if left > 0 || a.Milli == 0 && all < a.BelowCapacity { // nothing is asked, but nothing is owed either
			return false
		}
	}
	members := make([]*bucketitem.Waiter, len(images))
	for i, asks := range parts {
		if len(asks) > 0 {
			members[i] = j.waiterForPart(e, asks)
			e.state.Queue(i).EnqueueWaiter(members[i])
		}
	}
	all := true
	var failure bucketitem.Result
	for i, m := range members {
		if m == nil {
			continue
		}
		v := m.Wait(ctx)
		if v.Kind == bucketitem.Taken {
			e.shardTakes = append(e.shardTakes, shardTake{i, parts[i], v.Found})
			continue
		}
		if all = false; failure.Kind != bucketitem.Failed {
			failure = v
		}
	}
	if !all {
		e.compensate(now)
		if failure.Kind == bucketitem.Failed {
			e.found = failure
			return true
		}
		return false
	}
	e.found.Kind = bucketitem.Taken
	e.addShardTotals(images, now)
	return true
}
