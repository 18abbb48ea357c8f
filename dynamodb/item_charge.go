package dynamodb

import (
	"context"
	"slices"

	"github.com/weir-limiter/weir/dynamodb/internal/bucketitem"
	"github.com/weir-limiter/weir/internal/sharding"
)

// itemCharge is the part of a reservation that concerns one subject.
type itemCharge struct {
	state *bucketitem.Subject
	now   int64
	// number is the number of the reservation. It stays the same when the reservation is planned
	// again.
	number uint64
	takes  []bucketitem.Take
	// unplanned is true if the configuration has not been read.
	unplanned bool
	config    *bucketitem.Config // nil if unplanned
	waiter    *bucketitem.Waiter
	shard     int
	// shardTakes are the amounts taken so far, by shard.
	shardTakes []shardTake
	found      bucketitem.Result
}

// shardTake is the amount that a charge took from one shard.
type shardTake struct {
	shard int
	takes []bucketitem.Take
	// found are the limits of the shard as they were before, in the order of the takes.
	found []bucketitem.LimitImage
}

// newWaiter returns a waiter for the charge, or for a part of it.
func (ic *itemCharge) newWaiter(takes []bucketitem.Take) *bucketitem.Waiter {
	return &bucketitem.Waiter{
		Now: ic.now, Number: ic.number, Takes: takes, Config: ic.config,
		Answer: make(chan bucketitem.Result, 1),
	}
}

// enqueue puts the charge in the queue of a shard. The charge of an unplanned reservation may have
// nothing to take.
func (ic *itemCharge) enqueue() {
	if len(ic.takes) == 0 {
		return
	}
	ic.shard = ic.state.PickShard()
	ic.waiter = ic.newWaiter(ic.takes)
	ic.state.Queue(ic.shard).EnqueueWaiter(ic.waiter)
}

// await waits for the answer, and tries the other shards if one has too little.
func (ic *itemCharge) await(ctx context.Context) {
	if ic.waiter == nil {
		return
	}
	ic.found = ic.waiter.Wait(ctx)
	if ic.found.Kind == bucketitem.Taken {
		ic.shardTakes = []shardTake{{ic.shard, ic.takes, ic.found.Found}}
		return
	}
	if ic.found.Kind == bucketitem.Denied && ic.state.ShardCount() > 1 && !ic.unplanned {
		ic.tryOtherShards(ctx)
	}
}

// compensate refunds the amounts taken, with the next write of each item.
func (ic *itemCharge) compensate() {
	for _, d := range ic.shardTakes {
		ic.state.Queue(d.shard).Enqueue(bucketitem.Compensation(ic.now, d.takes, d.found))
	}
	ic.shardTakes = nil
}

// judgeFromMemory judges a charge by the image and the remembered denials. denies is true if a
// remembered denial covers the charge. known is false if there is no image with the limits or, for
// several shards, no remembered denial of one of them: then nothing can be said.
func (ic *itemCharge) judgeFromMemory() (denies, known bool) {
	m := ic.state.Queue(0).ExpectedImage()
	if m == nil {
		return false, false
	}
	ic.found = bucketitem.Result{Kind: bucketitem.Taken, Shards: m.Shards}
	for k := range ic.takes {
		a := &ic.takes[k]
		c := m.Limit(a.Name)
		r, ok := ic.state.RecallDenial(a.Name, ic.now)
		if c == nil || c.Incomplete || a.Limit != nil && !c.Matches(a.Limit) || m.Shards > 1 && !ok {
			return false, false
		}
		found, shards := *c, m.Shards
		if shards > 1 { // judge all shards together, as one
			shards = 1
			found.BalanceMilli, found.Seen = r.Total, r.Since
			found.Rate = sharding.Share(&c.BucketLimit, shards)
		}
		found.Touch(ic.now, shards)
		ic.found.Found = append(ic.found.Found, found)
		if found.BalanceMilli < a.Milli+a.BelowCapacity {
			ic.found.Kind, denies = bucketitem.Denied, denies || ok && a.Milli+a.BelowCapacity >= r.Milli
		}
	}
	return denies, true
}

// exceeded reports whether all shards together have too little of a limit.
func (ic *itemCharge) exceeded() bool {
	for k := range ic.takes {
		a := &ic.takes[k]
		if ic.found.Found[k].BalanceMilli+ic.found.Others[k] < a.Milli+a.BelowCapacity {
			return true
		}
	}
	return false
}

// tryOtherShards tries the other shards after one had too little. It reads all shards once and
// enqueues the charge on those that have enough, the fullest first. If no single shard admits the
// charge, it takes parts from several.
func (ic *itemCharge) tryOtherShards(ctx context.Context) {
	now := ic.now
	tried := ic.found
	images, err := ic.state.ReadAll(ctx, now)
	if err != nil {
		ic.found = bucketitem.Result{Kind: bucketitem.Failed, Err: err}
		return
	}
	for _, shard := range ic.shardsWithEnough(images, now) {
		m := ic.newWaiter(ic.takes)
		ic.state.Queue(shard).EnqueueWaiter(m)
		v := m.Wait(ctx)
		if v.Kind != bucketitem.Denied {
			ic.found, ic.shard = v, shard
			if v.Kind == bucketitem.Taken {
				ic.shardTakes = []shardTake{{shard, ic.takes, v.Found}}
			}
			return
		}
		tried, ic.shard = v, shard
	}
	if ic.takeFromShards(ctx, images) {
		return
	}
	ic.found = tried
	ic.addShardTotals(images, now)
}

// addShardTotals adds the balances of the other shards to the result.
func (ic *itemCharge) addShardTotals(images []*bucketitem.Image, now int64) {
	ic.found.Shards = len(images)
	if len(images) < 2 || len(ic.found.Found) < len(ic.takes) {
		return
	}
	ic.found.Others = make([]int64, len(ic.takes))
	for k := range ic.takes {
		for i, m := range images {
			if i != ic.shard {
				ic.found.Others[k] += m.Available(&ic.takes[k], now)
			}
		}
	}
}

// shardsWithEnough returns the shards that were not tried and have enough, the fullest first. It
// includes the first shard if that does not exist: its creation gives it the units that no other
// shard has. Another shard that does not exist would only take its units from these.
func (ic *itemCharge) shardsWithEnough(images []*bucketitem.Image, now int64) []int {
	var shards []int
	for i, m := range images {
		if m == nil && i == 0 {
			shards = append(shards, i)
		}
		if m == nil || i == ic.shard {
			continue
		}
		enough := true
		for k := range ic.takes {
			a := &ic.takes[k]
			enough = enough && m.Available(a, now) >= a.Needs(len(images))
		}
		if enough {
			shards = append(shards, i)
		}
	}
	first := &ic.takes[0]
	slices.SortStableFunc(shards, func(a, b int) int {
		return int(min(1, max(-1, images[b].Available(first, now)-images[a].Available(first, now))))
	})
	return shards
}

// takeFromShards takes the charge in parts from several shards. It reports false if they have too
// little together, or if other callers were faster; the parts taken are then refunded. It reports
// true if the charge was taken, or failed with an error.
func (ic *itemCharge) takeFromShards(ctx context.Context, images []*bucketitem.Image) bool {
	now := ic.now
	parts := make([][]bucketitem.Take, len(images))
	for k := range ic.takes {
		a := ic.takes[k]
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
		if left > 0 || a.Milli == 0 && all < a.BelowCapacity { // a take of 0 units fails on a debt
			return false
		}
	}
	waiters := make([]*bucketitem.Waiter, len(images))
	for i, takes := range parts {
		if len(takes) > 0 {
			waiters[i] = ic.newWaiter(takes)
			ic.state.Queue(i).EnqueueWaiter(waiters[i])
		}
	}
	all := true
	var failure bucketitem.Result
	for i, m := range waiters {
		if m == nil {
			continue
		}
		v := m.Wait(ctx)
		if v.Kind == bucketitem.Taken {
			ic.shardTakes = append(ic.shardTakes, shardTake{i, parts[i], v.Found})
			continue
		}
		if all = false; failure.Kind != bucketitem.Failed {
			failure = v
		}
	}
	if !all {
		ic.compensate()
		if failure.Kind == bucketitem.Failed {
			ic.found = failure
			return true
		}
		return false
	}
	ic.found.Kind = bucketitem.Taken
	ic.addShardTotals(images, now)
	return true
}
