package bucketitem

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/weir-limiter/weir/internal/sharding"
)

// levelling moves units between the shards of a bucket, so that the bucket admits what one item
// would: a refund for which a shard has no room goes to the others, and the others pay for a shard
// in debt (ADR 37). The lock of the subjectState guards it.
type levelling struct {
	running bool
	work    levelWork // what the next pass is to do
	// notBefore is the Unix millisecond before which a debt asks for no pass, because the last one
	// could not pay it.
	notBefore int64
}

// levelWork is the task of one pass of levelling.
type levelWork struct {
	now int64
	// overflow is the refunds for which a shard had no room, by limit, in milli-units. moves
	// counts how often these units have moved on.
	overflow map[string]int64
	moves    int
	// debt asks to pay for a shard in debt. own is true if this process has caused the debt or the
	// overflow; if another one has, it is most likely at work on it.
	debt, own bool
	attempts  int // the number of passes that failed
}

const (
	// minLevelledDebt is the least debt that is levelled, in milli-units.
	minLevelledDebt = 1000
	// levelEveryMS is the least time between two passes for debts that cannot be paid.
	levelEveryMS = 1000
	// maxLevelDelay is the longest time for which a process leaves a debt to the one that caused
	// it.
	maxLevelDelay = 50 * time.Millisecond
	// maxMoves bounds how often the units of one refund move on to other shards.
	maxMoves = 4
)

// overflow returns the refunds for which the shard had no room and that may move on. If the bucket
// has one shard, it is full, and there are none.
func (r *Evaluation) overflow() (w levelWork, any bool) {
	w = levelWork{now: r.latest, moves: r.moves, own: true}
	for i := range r.effects {
		if n := r.effects[i].overflow; n > 0 && r.After.Shards > 1 {
			w.add(r.After.Limits[i].Name, n)
		}
	}
	return w, w.overflow != nil
}

// add adds units to the overflow.
func (w *levelWork) add(limit string, milli int64) {
	if w.overflow == nil {
		w.overflow = make(map[string]int64)
	}
	w.overflow[limit] += milli
}

// indebted reports whether one of several shards is in debt of at least a unit.
func (m *Image) indebted(now int64) bool {
	return m.Shards > 1 && slices.ContainsFunc(m.Limits, func(c LimitImage) bool {
		return !c.Incomplete && c.balanceAt(max(now, c.Seen)) <= -minLevelledDebt
	})
}

// requestLevelling adds to the work of the next pass. It reports whether the caller must start it.
func (p *subjectState) requestLevelling(w levelWork) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := &p.levelling
	if w.overflow == nil && w.now < l.notBefore {
		return false
	}
	l.work.now = max(l.work.now, w.now)
	for name, n := range w.overflow {
		l.work.add(name, n)
	}
	l.work.moves = max(l.work.moves, w.moves)
	l.work.debt, l.work.own = l.work.debt || w.debt, l.work.own || w.own
	l.work.attempts = max(l.work.attempts, w.attempts)
	start := !l.running
	l.running = true
	return start
}

// nextLevelling takes the work of the next pass. If there is none, it ends the levelling and
// returns false.
func (p *subjectState) nextLevelling() (w levelWork, any bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := &p.levelling
	w, l.work = l.work, levelWork{}
	l.running = w.debt || w.overflow != nil
	return w, l.running
}

// postponeLevelling ends the levelling of debts for a while, because they cannot be paid now.
func (p *subjectState) postponeLevelling(now int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.levelling.work.debt, p.levelling.notBefore = false, now+levelEveryMS
}

// resumeLevelling ends the postponement, because units were refunded.
func (p *subjectState) resumeLevelling() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.levelling.notBefore = 0
}

// level asks for levelling, in the background. One pass of it runs at a time for a bucket.
func (p *Subject) level(w levelWork) {
	if !p.requestLevelling(w) {
		return
	}
	p.retain()
	p.ns.Running.Run(func() {
		defer p.Release()
		for {
			w, more := p.nextLevelling()
			if !more {
				return
			}
			if !w.own {
				p.ns.sleep(rand.N(maxLevelDelay))
			}
			paid, err := p.levelOnce(w)
			if err != nil {
				p.repeatLevelling(w, err)
			}
			if !paid {
				p.postponeLevelling(w.now)
			}
		}
	})
}

// repeatLevelling asks again for the refunds of a pass that could not read the shards, after a
// pause. After the last attempt they stay charged, and are counted as ambiguous.
func (p *Subject) repeatLevelling(w levelWork, err error) {
	if w.overflow == nil {
		return
	}
	if w.attempts++; w.attempts > maxRequeues || p.ns.Running.Closed.Load() && w.attempts > 1 {
		for _, n := range w.overflow {
			p.ns.Counts.ambiguous(n, true)
		}
		p.ns.reportError(err)
		return
	}
	p.ns.pause(w.attempts)
	w.debt = false
	p.requestLevelling(w)
}

// levelOnce reads all shards and moves units between them. It reports whether all debts were paid.
func (p *Subject) levelOnce(w levelWork) (paid bool, err error) {
	ctx, cancel := p.ns.backgroundContext(context.Background())
	defer cancel()
	images, err := p.ReadAll(ctx, w.now)
	if err != nil {
		return false, err
	}
	if len(images) < 2 || images[0] == nil {
		return false, nil
	}
	// Refunds also go to items that weir does not judge by (ADR 17). It makes no new ones.
	restricted := slices.ContainsFunc(images, func(m *Image) bool { return m != nil && m.restricted() })
	take, give := make([]*Waiter, len(images)), make([]*Update, len(images))
	paid = true
	for i := range images[0].Limits {
		c := &images[0].Limits[i]
		if c.Incomplete {
			continue
		}
		shards := shardBalances(images, c, w.now)
		moves, all := levelMoves(shards, w.overflow[c.Name], restricted)
		paid = paid && all
		for shard, n := range moves {
			switch {
			case n < 0:
				if take[shard] == nil {
					take[shard] = &Waiter{
						Now: w.now, Number: p.ns.Calls.Add(1), betweenShards: true, Answer: make(chan Result, 1),
					}
				}
				limit := LimitOf(&images[shard].Limit(c.Name).BucketLimit)
				take[shard].Takes = append(take[shard].Takes, Take{
					Name: c.Name, Milli: -n, Leaves: min(0, shards[shard].has+n), Limit: &limit,
				})
			case n > 0:
				if give[shard] == nil {
					give[shard] = &Update{Now: w.now, needsItem: shard > 0, moves: w.moves + 1}
				}
				limit := LimitOf(&c.BucketLimit)
				give[shard].Deltas = append(give[shard].Deltas,
					Delta{Name: c.Name, Milli: -n, Limit: &limit, betweenShards: true})
			}
		}
	}
	p.move(take, give)
	return paid, nil
}

// move takes units from shards and, when that is written, gives units to others. A shard that has
// less than was read denies the take. It gives only units that were taken. A crash in between loses
// them.
func (p *Subject) move(take []*Waiter, give []*Update) {
	for shard, m := range take {
		if m != nil {
			p.Queue(shard).EnqueueWaiter(m)
		}
	}
	missing := make(map[string]int64) // by limit, the units that were not taken
	for _, m := range take {
		if m == nil || (<-m.Answer).Kind == Taken {
			continue
		}
		for k := range m.Takes {
			missing[m.Takes[k].Name] += m.Takes[k].Milli
		}
	}
	var written sync.WaitGroup
	for shard, u := range give {
		if u == nil {
			continue
		}
		for i := range u.Deltas {
			d := &u.Deltas[i]
			less := min(missing[d.Name], -d.Milli)
			d.Milli += less
			missing[d.Name] -= less
		}
		written.Add(1)
		u.Done = func(err error) {
			defer written.Done()
			if err != nil { // without a caller, the queue makes the update again
				again := *u
				again.Done = nil
				p.Queue(shard).Enqueue(&again)
			}
		}
		p.Queue(shard).Enqueue(u)
	}
	written.Wait()
}

// shardBalance is the balance of a limit on one shard, in milli-units.
type shardBalance struct {
	has, share int64
	whole      int64 // the capacity of all shards together
	missing    bool  // the shard does not exist
	fixed      bool  // the shard exists and does not have the limit yet, of which it will get a full share
}

// shardBalances returns the balances of a limit on all shards; nil if they are too large to add up.
// If the definition has changed, it has not reached all shards yet, and the lower share counts.
func shardBalances(images []*Image, c *LimitImage, now int64) []shardBalance {
	n := len(images)
	most := int64(math.MaxInt64 / (2 * n))
	share, whole := sharding.Share(&c.BucketLimit, n).CapacityMilli, c.Capacity
	all := make([]shardBalance, n)
	for shard, m := range images {
		s := &all[shard]
		*s = shardBalance{share: share, missing: m == nil}
		if m == nil {
			continue
		}
		of := m.Limit(c.Name)
		if of == nil || of.Incomplete {
			s.has, s.fixed = share, true
			continue
		}
		s.has, s.share = of.Peek(now, n), min(share, sharding.Share(&of.BucketLimit, n).CapacityMilli)
		if whole = min(whole, of.Capacity); s.has > most || s.has < -most {
			return nil
		}
	}
	for i := range all {
		all[i].whole = whole
	}
	return all
}

// levelMoves returns what to give each shard of a limit, in milli-units; below zero to take it.
// The overflow is given first: to shards in debt, then to shards with room for it, as long as all
// shards together have less than the capacity. Then the fullest shards pay the debts of the
// others. If they cannot, all shards get the same part of the debt, and paid is false. On a
// restricted bucket the overflow goes to existing shards only, and no debt is paid.
func levelMoves(
	shards []shardBalance, overflow int64, restricted bool,
) (moves []int64, paid bool) {
	if len(shards) == 0 {
		return nil, false
	}
	target := make([]int64, len(shards))
	var sum int64
	for i, s := range shards {
		target[i] = s.has
		sum += s.has
	}
	overflow = max(0, min(overflow, shards[0].whole-sum))
	fill := func(i int, upTo int64) {
		if shards[i].fixed {
			return
		}
		n := max(0, min(overflow, upTo-target[i]))
		target[i] += n
		overflow -= n
	}
	for i, s := range shards {
		if !s.missing {
			fill(i, 0)
		}
	}
	for _, missing := range []bool{false, true} {
		for i, s := range shards {
			if s.missing == missing && (!missing || !restricted) {
				fill(i, s.share)
			}
		}
	}
	paid = !restricted && payDebts(shards, target)
	for i := range target {
		target[i] -= shards[i].has
	}
	return target, paid
}

// payDebts moves units from the fullest shards to those in debt. It reports whether there are
// enough; otherwise all shards that have the limit end with the same debt.
func payDebts(shards []shardBalance, target []int64) (paid bool) {
	var order []int // the shards that have the limit, the fullest first
	var debt, has, deepest int64
	for i, s := range shards {
		if s.missing || s.fixed {
			continue
		}
		order = append(order, i)
		debt += max(0, -target[i])
		has += max(0, target[i])
		deepest = min(deepest, target[i])
	}
	if debt == 0 {
		return true
	}
	if has < debt {
		n := int64(len(order))
		each := (has - debt - n + 1) / n // rounded against the caller
		if each-deepest >= minLevelledDebt {
			for _, i := range order {
				target[i] = each
			}
		}
		return false
	}
	if -deepest < minLevelledDebt {
		return true
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(max(-1, min(1, target[b]-target[a]))) })
	for _, i := range order {
		if n := min(debt, target[i]); n > 0 {
			target[i] -= n
			debt -= n
		}
		target[i] = max(target[i], 0)
	}
	return true
}
