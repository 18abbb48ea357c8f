package bucketitem

import (
	"context"
	"math"
	"slices"
)

// levelling is the work of moving units between the shards of a bucket, so that the bucket admits
// what one item would: a refund for which a shard has no room goes to the others, and the others
// pay for a shard in debt (ADR 37). The lock of the subjectState guards it.
type levelling struct {
	running bool
	now     int64 // the latest now of the requests
	// overflow is the refunds for which a shard had no room, by limit, in milli-units.
	overflow map[string]int64
	debt     bool // a shard in debt was seen
	// notBefore is the Unix millisecond before which a debt is not looked at: all shards were in debt.
	notBefore int64
}

const (
	// minLevelledDebt is the least debt that is levelled, in milli-units.
	minLevelledDebt = 1000
	// levelEveryMS is the time between two looks at a bucket whose shards are all in debt.
	levelEveryMS = 1000
	// maxSummed is the largest balance of which all shards together do not overflow a sum.
	maxSummed = math.MaxInt64 / (2 * MaxShards)
	// maxOverflows bounds how often the units of one refund move on to other shards.
	maxOverflows = 4
)

// overflows returns the refunds of an evaluation for which the shard had no room, by limit. If the
// bucket has one shard, it is full, and there are none.
func (r *Evaluation) overflows() map[string]int64 {
	var all map[string]int64
	for i := range r.effects {
		if n := r.effects[i].overflow; n > 0 && r.After.Shards > 1 {
			if all == nil {
				all = make(map[string]int64)
			}
			all[r.After.Limits[i].Name] = n
		}
	}
	return all
}

// indebted reports whether one of several shards is in debt of at least a unit.
func (m *Image) indebted(now int64) bool {
	return m.Shards > 1 && slices.ContainsFunc(m.Limits, func(c LimitImage) bool {
		return !c.Incomplete && c.balanceAt(max(now, c.Seen)) <= -minLevelledDebt
	})
}

// requestLevelling asks for levelling. It reports whether the caller must start it.
func (p *subjectState) requestLevelling(now int64, overflow map[string]int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := &p.levelling
	l.now = max(l.now, now)
	for name, n := range overflow {
		if l.overflow == nil {
			l.overflow = make(map[string]int64)
		}
		l.overflow[name] += n
	}
	if overflow == nil {
		if now < l.notBefore {
			return false
		}
		l.debt = true
	}
	start := !l.running
	l.running = true
	return start
}

// unitsReturned notes that the balances of the bucket may have grown otherwise than by a refill.
func (p *subjectState) unitsReturned() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.denials, p.levelling.notBefore = nil, 0
}

// nextLevelling takes the work that was asked for. It returns false, and ends the levelling, if
// there is none.
func (p *subjectState) nextLevelling() (now int64, overflow map[string]int64, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := &p.levelling
	if !l.debt && len(l.overflow) == 0 {
		l.running = false
		return 0, nil, false
	}
	now, overflow = l.now, l.overflow
	l.debt, l.overflow = false, nil
	return now, overflow, true
}

// levelled notes the end of a pass. The debts that commits saw during the pass are the same ones.
func (p *subjectState) levelled(now int64, allInDebt bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.levelling.debt = false
	if allInDebt {
		p.levelling.notBefore = now + levelEveryMS
	}
}

// level asks for levelling: for refunds that overflowed or, if overflow is nil, because of a debt.
// It runs in the background.
func (p *Subject) level(now int64, overflow map[string]int64) {
	if !p.requestLevelling(now, overflow) {
		return
	}
	p.retain()
	p.ns.Running.Run(func() {
		defer p.Release()
		for {
			now, overflow, more := p.nextLevelling()
			if !more {
				return
			}
			p.levelled(now, p.levelOnce(now, overflow))
		}
	})
}

// levelOnce reads all shards and moves units between them. It reports whether a limit is in debt on
// all shards together.
func (p *Subject) levelOnce(now int64, overflow map[string]int64) (allInDebt bool) {
	ctx, cancel := p.ns.backgroundContext(context.Background())
	defer cancel()
	images, err := p.ReadAll(ctx, now)
	if err != nil {
		for _, n := range overflow {
			p.ns.Counts.Ambiguous(n)
		}
		p.ns.reportError(err)
		return true // do not read again at once
	}
	if len(images) < 2 || images[0] == nil ||
		slices.ContainsFunc(images, func(m *Image) bool { return m != nil && m.restricted() }) {
		return true
	}
	take, give := make([]*Update, len(images)), make([]*Update, len(images))
	for i := range images[0].Limits {
		c := &images[0].Limits[i]
		if c.Incomplete {
			continue
		}
		moves, inDebt := levelMoves(shardBalances(images, c, now), overflow[c.Name])
		allInDebt = allInDebt || inDebt
		limit := LimitOf(&c.BucketLimit)
		for shard, n := range moves {
			to := take
			if n > 0 {
				to = give
			}
			if n == 0 {
				continue
			}
			if to[shard] == nil {
				to[shard] = &Update{Now: now, needsItem: shard > 0, overflows: 1}
			}
			to[shard].Deltas = append(to[shard].Deltas,
				Delta{Name: c.Name, Milli: -n, Limit: &limit, betweenShards: true})
		}
	}
	p.move(take, give)
	return allInDebt
}

// move makes the updates that take units from shards and, when they are applied, those that give
// units to shards. It gives only units that were taken. A crash in between loses them.
func (p *Subject) move(take, give []*Update) {
	missing := make(map[string]int64) // by limit, what was not taken
	for shard, err := range p.updateShards(take) {
		if err == nil {
			continue
		}
		for _, d := range take[shard].Deltas {
			missing[d.Name] += d.Milli
		}
	}
	for _, u := range give {
		if u == nil {
			continue
		}
		for i := range u.Deltas {
			d := &u.Deltas[i]
			less := min(missing[d.Name], -d.Milli)
			d.Milli += less
			missing[d.Name] -= less
		}
	}
	for shard, err := range p.updateShards(give) {
		if err != nil { // the units must not be lost: the queue makes the update again
			u := give[shard]
			p.Queue(shard).Enqueue(&Update{
				Now: u.Now, Deltas: u.Deltas, needsItem: u.needsItem, overflows: u.overflows,
			})
		}
	}
}

// updateShards makes an update of each shard that has one, and waits for all of them.
func (p *Subject) updateShards(updates []*Update) []error {
	errs := make([]error, len(updates))
	done := make(chan struct{}, len(updates))
	n := 0
	for shard, u := range updates {
		if u == nil {
			continue
		}
		n++
		u.Done = func(err error) {
			errs[shard] = err
			done <- struct{}{}
		}
		p.Queue(shard).Enqueue(u)
	}
	for range n {
		<-done
	}
	return errs
}

// shardBalance is the balance of a limit on one shard, in milli-units.
type shardBalance struct {
	has, share int64
	missing    bool // the shard does not exist
	whole      int64
}

// shardBalances returns the balances of a limit on all shards; nil if a shard has another definition
// of it than c, or one that is too large to add up.
func shardBalances(images []*Image, c *LimitImage, now int64) []shardBalance {
	all := make([]shardBalance, len(images))
	for shard, m := range images {
		all[shard] = shardBalance{
			share: ShareOf(&c.BucketLimit, len(images)).CapacityMilli, whole: c.Capacity, missing: m == nil,
		}
		if m == nil {
			continue
		}
		of := m.Limit(c.Name)
		if of == nil || of.Incomplete || !of.sameDefinition(&c.BucketLimit) {
			return nil
		}
		has := of.Peek(now, len(images))
		if has > maxSummed || has < -maxSummed {
			return nil
		}
		all[shard].has = has
	}
	return all
}

// levelMoves returns what to give each shard of a limit, in milli-units; below zero to take it. The
// overflow is given first: to shards in debt, then to shards with room for it, as long as all
// shards together have less than the capacity. Then the fullest shards pay the debts of the others.
// If they cannot, all shards get the same part of the debt, and inDebt is true.
func levelMoves(shards []shardBalance, overflow int64) (moves []int64, inDebt bool) {
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
			if s.missing == missing {
				fill(i, s.share)
			}
		}
	}
	inDebt = payDebts(shards, target)
	for i := range target {
		target[i] -= shards[i].has
	}
	return target, inDebt
}

// payDebts moves units from the fullest shards to those in debt. It reports whether there are too
// few; then all shards that exist end with the same debt.
func payDebts(shards []shardBalance, target []int64) (inDebt bool) {
	var order []int // the shards that exist, the fullest first
	var debt, has, deepest int64
	for i, s := range shards {
		if s.missing {
			continue
		}
		order = append(order, i)
		debt += max(0, -target[i])
		has += max(0, target[i])
		deepest = min(deepest, target[i])
	}
	if debt == 0 {
		return false
	}
	if has < debt {
		n := int64(len(order))
		each := (has - debt - n + 1) / n // rounded against the caller
		if each-deepest >= minLevelledDebt {
			for _, i := range order {
				target[i] = each
			}
		}
		return true
	}
	if -deepest < minLevelledDebt {
		return false
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(max(-1, min(1, target[b]-target[a]))) })
	for _, i := range order {
		if n := min(debt, target[i]); n > 0 {
			target[i] -= n
			debt -= n
		}
		target[i] = max(target[i], 0)
	}
	return false
}
