package dynamodb

import (
	"context"
	"math/rand/v2"
	"slices"

	"github.com/weir-limiter/weir/internal/schema"
)

// draw chooses a shard: at random, so that all of them are used alike.
func (p *spot) draw() int {
	if n := p.count(); n > 1 {
		return rand.IntN(n)
	}
	return 0
}

// elsewhere goes on where one shard had too little: the others are read once, and then asked in the
// order of what they have; and where no shard has enough but all of them together have, it is drawn
// from several.
func (j *journey) elsewhere(ctx context.Context, e *errand) {
	now := j.now
	tried := e.found
	images, err := e.spot.readAll(ctx, now)
	if err != nil {
		e.found = verdict{ruling: failed, err: err}
		return
	}
	for _, shard := range e.promising(images, now) {
		m := j.member(e)
		e.spot.line(shard).submit(m, nil)
		v := m.wait(ctx)
		if v.ruling != denied {
			e.found, e.shard = v, shard
			if v.ruling == taken {
				e.draws = []draw{{shard, e.asks, v.found}}
			}
			return
		}
		tried, e.shard = v, shard
	}
	if j.scattered(ctx, e, images) {
		return
	}
	e.found = tried
	e.sumUp(images, now)
}

// sumUp adds to what was found what the other shards have.
func (e *errand) sumUp(images []*image, now int64) {
	e.found.shards = len(images)
	if len(images) < 2 || len(e.found.found) < len(e.asks) {
		return
	}
	e.found.others = make([]int64, len(e.asks))
	for k := range e.asks {
		for i, m := range images {
			if i != e.shard {
				e.found.others[k] += m.left(&e.asks[k], now)
			}
		}
	}
}

// left is what a shard has of a limit; nothing where there is no such shard.
// One that has not met a limit yet that was added has a share of it.
func (m *image) left(a *ask, now int64) int64 {
	if m == nil {
		return 0
	}
	c := m.limit(a.name)
	switch {
	case c != nil && !c.Incomplete:
		return c.peek(now, m.shards)
	case a.limit != nil:
		l := stored(a.limit)
		return shareOf(&l, m.shards).CapacityMilli
	}
	return 0
}

// promising are the shards that were not asked and have enough, the fullest first. The first one
// has what no other has when it is made; another one that is not there takes what it has from
// these.
func (e *errand) promising(images []*image, now int64) []int {
	var shards []int
	for i, m := range images {
		if m == nil && i == 0 {
			shards = append(shards, i)
		}
		if m == nil || i == e.shard {
			continue
		}
		enough := true
		for k := range e.asks {
			a := &e.asks[k]
			enough = enough && m.left(a, now) >= a.needs(len(images))
		}
		if enough {
			shards = append(shards, i)
		}
	}
	first := &e.asks[0]
	slices.SortStableFunc(shards, func(a, b int) int {
		return int(min(1, max(-1, images[b].left(first, now)-images[a].left(first, now))))
	})
	return shards
}

// scattered takes the errand in parts from several shards, where they have enough together.
func (j *journey) scattered(ctx context.Context, e *errand, images []*image) bool {
	now := j.now
	parts := make([][]ask, len(images))
	for k := range e.asks {
		a := e.asks[k]
		left := a.milli
		var all int64
		for i, m := range images {
			part := a
			has := m.left(&a, now)
			part.milli = min(left, max(0, has-(a.needs(len(images))-a.milli)))
			all += has
			if part.milli > 0 {
				parts[i] = append(parts[i], part)
				left -= part.milli
			}
		}
		if left > 0 || a.milli == 0 && all < a.lowered { // nothing is asked, but nothing is owed either
			return false
		}
	}
	members := make([]*member, len(images))
	for i, asks := range parts {
		if len(asks) > 0 {
			members[i] = j.part(e, asks)
			e.spot.line(i).submit(members[i], nil)
		}
	}
	all := true
	var failure verdict
	for i, m := range members {
		if m == nil {
			continue
		}
		v := m.wait(ctx)
		if v.ruling == taken {
			e.draws = append(e.draws, draw{i, parts[i], v.found})
			continue
		}
		if all = false; failure.ruling != failed {
			failure = v
		}
	}
	if !all {
		e.giveBack(now)
		if failure.ruling == failed {
			e.found = failure
			return true
		}
		return false
	}
	e.found.ruling = taken
	e.sumUp(images, now)
	return true
}

// The bounds of splitting a bucket.
const (
	// maxShards is how many shards a bucket has at most; the Python library has the same bound.
	maxShards = 32
	// leastShare is what the smallest limit must still have in each shard, in milli-units.
	leastShare = 10_000
)

// crowd doubles the shards of a bucket whose item takes more writes than DynamoDB allows for one,
// unless some limit is too small to be split.
func (c *commit) crowd(ctx context.Context) {
	m := c.image
	if m == nil || m.shards*2 > maxShards || !c.spot.spread(m.shards, c.now()) {
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
	if t := c.agreed(); t != nil { // a limit that was added is perhaps not on this item yet
		for i := range t.limits {
			if l := stored(&t.limits[i]); !splits(&l, 2*m.shards) {
				return
			}
		}
	}
	c.store.double(ctx, c.spot, m.shards)
}

// splits reports whether a limit can be divided among so many shards: each has enough of it, and
// nothing is lost to rounding.
func splits(l *schema.BucketLimit, shards int) bool {
	n := int64(shards)
	return l.Capacity/n >= leastShare && l.Capacity%n == 0 && l.Refill%n == 0
}

// spreadMS is how long a new count of shards has to show what it does before it is doubled again.
const spreadMS = 1000

// spread reports whether a count of shards has been known for long enough: right after a doubling
// the first shard is as crowded as before.
func (p *spot) spread(shards int, now int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if shards != p.spreading {
		p.spreading, p.spreadSince = shards, now
	}
	return shards == 1 || now-p.spreadSince >= spreadMS
}

// double raises the count on the first shard, whose count is the one that counts. Who loses learns
// the winner's when it next sees the item.
func (s *Store) double(ctx context.Context, p *spot, shards int) {
	p.hold()
	s.running.run(func() {
		defer p.release()
		ctx, cancel := s.aside(ctx)
		defer cancel()
		l := p.line(0)
		e := &expression{}
		e.setNumber(schema.AttrShardCount, int64(2*shards))
		if shards == 1 {
			e.exists(schema.AttrPK)
			e.absentOr(schema.AttrShardCount, "=", 1)
		} else {
			e.require(schema.AttrShardCount, "=", int64(shards))
		}
		_, err := s.client.UpdateItem(ctx, l.asUpdate(e))
		switch o := outcomeOf(err); o.kind {
		case writeApplied:
			s.counts.doublings.Add(1)
			p.grow(2 * shards)
			s.tellShards(ctx, p, shards, 2*shards)
		case writeRefused, writeConflicted, writeThrottled, writeUnknown:
			// The item says it to whoever writes next.
		default:
			s.report(classify(err))
		}
	})
}

// tellShards raises the count on the other shards, so that all who refill one give it its share
// alone. One that is missed learns it with weir's next refill.
func (s *Store) tellShards(ctx context.Context, p *spot, from, shards int) {
	for shard := 1; shard < from; shard++ {
		l := p.line(shard)
		e := &expression{}
		e.setNumber(schema.AttrShardCount, int64(shards))
		e.exists(schema.AttrPK)
		e.absentOr(schema.AttrShardCount, "<", int64(shards))
		_, err := s.client.UpdateItem(ctx, l.asUpdate(e))
		if o := outcomeOf(err); o.kind == writeFailed {
			s.report(classify(err))
		}
	}
}
