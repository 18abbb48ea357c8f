package limiter

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
)

// scratch is the working memory of one call. It is used again by later calls only if the store is
// local: a remote store may still read what it was given after the call has been given up.
type scratch struct {
	limiter  *Limiter
	memo     [4]memoEntry
	memoNext int
	hits     int64         // in memo, to be added to counter
	counter  *atomic.Int64 // of the cache
	known    []memoEntry   // resolved by this call before planning, by subject

	chargeBuf   [1]weir.Charge
	charges     []weir.Charge
	costs       costLists
	namedTotals costLists // of an update

	reservation reservation
	resolver    resolver // the method value c.resolve, made once
	planner     planner
	taken       []driver.Taken
	lease       *weir.Lease // the answer's memory; nil if the outcome is the store's own

	op      updateOp
	update  driver.Update
	record  driver.LeaseRecord // what update.Lease points to
	changes []driver.Change
	parts   []driver.Part
	used    []Use // for the observer

	outcome driver.Outcome

	random *rand.ChaCha8 // for lease IDs
}

// newLeaseID is [weir.NewLeaseID] with a generator that no other call uses meanwhile.
func (c *scratch) newLeaseID(now time.Time) weir.LeaseID {
	var random [10]byte
	binary.BigEndian.PutUint64(random[:], c.random.Uint64())
	binary.BigEndian.PutUint16(random[8:], uint16(c.random.Uint64()))
	return weir.MakeLeaseID(now.UnixMilli(), random)
}

// memoEntry is a resolution that a call has used, and the subject under which the cache keeps it.
type memoEntry struct {
	key      weir.Subject
	resolved *resolution
}

// resolve is [Limiter.resolveSubject] with two faster places to look first: what this call has
// resolved already, and what earlier calls with this scratch have used. Because of the pool there
// is about one scratch for each processor, so looking there locks nothing.
func (c *scratch) resolve(ctx context.Context, s weir.Subject, mode resolveMode) (*resolution, error) {
	for i := range c.known {
		if c.known[i].key == s && mode == usual {
			return c.known[i].resolved, nil
		}
	}
	cache := c.limiter.cache
	key := c.limiter.cacheKey(s)
	now, generation := c.limiter.leases.latestNow.Load(), cache.generation.Load()
	for i := range c.memo {
		m := &c.memo[i]
		if m.resolved == nil || m.key != key {
			continue
		}
		if mode != reread && m.resolved.generation == generation && m.resolved.fresh(now, cache.ttl) {
			c.hits++
			return m.resolved, nil
		}
		m.resolved = nil
	}
	if mode == usual && c.limiter.sharesReads() {
		return c.limiter.resolveShared(ctx, s)
	}
	r, key, err := c.limiter.resolveKept(ctx, s, mode)
	if err == nil && r != nil && r.until != 0 {
		c.memo[c.memoNext%len(c.memo)] = memoEntry{key, r}
		c.memoNext++
	}
	return r, err
}

// scratchPool hands out scratches.
type scratchPool struct {
	pool sync.Pool
	made atomic.Int64
	// generators has the generators of scratches that are not used again.
	generators sync.Pool
}

func (l *Limiter) newScratch() *scratch {
	if c, ok := l.calls.pool.Get().(*scratch); ok {
		return c
	}
	c := &scratch{limiter: l, random: l.calls.generator(), namedTotals: costLists{full: true}}
	c.counter = l.cache.counter(l.calls.made.Add(1))
	c.reservation = reservation{
		depth: l.options.CascadeDepth, lifetime: l.options.LeaseLifetime,
		memory: l.options.LeaseMemory, memorySize: l.options.LeaseMemorySize,
		undeclaredParents: l.traits.UndeclaredParents, declaredResources: l.options.DeclaredResources,
	}
	c.resolver = c.resolve
	c.update = driver.Update{Memory: l.options.LeaseMemory, MemorySize: l.options.LeaseMemorySize}
	return c
}

// generator returns a generator for lease IDs for the caller's exclusive use.
func (p *scratchPool) generator() *rand.ChaCha8 {
	if g, ok := p.generators.Get().(*rand.ChaCha8); ok {
		return g
	}
	var seed [32]byte
	for i := range 4 {
		binary.LittleEndian.PutUint64(seed[8*i:], rand.Uint64())
	}
	return rand.NewChaCha8(seed)
}

// releaseScratch returns a scratch to the pool if the store is local. The objects it points to stay
// reachable until the next call overwrites the pointers; they are few for each processor.
func (l *Limiter) releaseScratch(c *scratch) {
	if c.hits > 0 {
		c.counter.Add(c.hits)
		c.hits = 0
	}
	if l.traits.Local {
		c.costs.reset()
		c.namedTotals.reset()
		l.calls.pool.Put(c)
		return
	}
	l.calls.generators.Put(c.random) // stores never see the generator
	c.random = nil
}

// leaseWithStatuses is a lease and the statuses of its limits in one allocation, which is cheaper
// than two. Callers keep the statuses as long as the lease.
type leaseWithStatuses[Statuses any] struct {
	lease    weir.Lease
	statuses Statuses
}

// planOutcome returns an empty outcome for the plan that was made last. It sets c.lease to a lease
// that shares an allocation with the outcome's statuses.
func (c *scratch) planOutcome(e *leaseEntry) *driver.Outcome {
	takes := c.planner.made.Takes
	out := &c.outcome
	*out = driver.Outcome{Taken: slices.Grow(c.taken[:0], len(takes))[:len(takes)]}
	c.taken = out.Taken
	for i := range takes {
		out.Taken[i] = driver.Taken{Units: takes[i].Cost()}
		if c.planner.entry != nil {
			out.Taken[i].Pieces = e.holdings[:len(takes)][i].Pieces[:0]
		}
	}
	out.Limits, c.lease = newStatuses(len(takes))
	return out
}

// newStatuses returns n statuses, and a lease from the same allocation if n is small.
func newStatuses(n int) ([]weir.LimitStatus, *weir.Lease) {
	switch {
	case n == 1:
		room := &leaseWithStatuses[[1]weir.LimitStatus]{}
		return room.statuses[:], &room.lease
	case n <= 4:
		room := &leaseWithStatuses[[4]weir.LimitStatus]{}
		return room.statuses[:n:n], &room.lease
	case n <= 8:
		room := &leaseWithStatuses[[8]weir.LimitStatus]{}
		return room.statuses[:n:n], &room.lease
	}
	return make([]weir.LimitStatus, n), &weir.Lease{}
}

// newHoldings returns n holdings whose parts and pieces are only of use as memory. It takes them
// from the entry if it can.
func (p *planner) newHoldings(n int) []driver.Holding {
	e := p.entry
	var room []driver.Holding
	if e != nil {
		room = e.holdings[:cap(e.holdings)]
	}
	if len(room) < n {
		room = make([]driver.Holding, n)
		parts := make([]driver.Part, n)
		for i := range room {
			room[i].Parts = parts[i : i : i+1]
		}
	}
	if e != nil {
		e.holdings = room[:0]
	}
	return room[:n]
}
