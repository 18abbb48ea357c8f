package dynamodb

import (
	"context"
	"slices"
)

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
		e.state.queue(shard).enqueueWaiter(m)
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
			e.state.queue(i).enqueueWaiter(members[i])
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
