package main

import (
	"context"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

const (
	// plenty is a capacity that no run can use up.
	plenty = 1_000_000_000
	// plentyTokens is such a capacity for operations that cost hundreds each.
	plentyTokens = 1_000_000_000_000
	// never is a refill period in which nothing comes back during a run.
	never = 24 * time.Hour
	// chunk is how many leases are reserved before they are completed, if the two are measured
	// separately.
	chunk = 1000
	// storeResource is the resource of all requests to a store.
	storeResource = "llm"
	// patience is how long weir waits for a store. The default of a second is too short on a busy
	// machine.
	patience = time.Minute
	// defaultMost is the default bound of live leases, and of ended ones that are remembered.
	defaultMost = 1_000_000
)

// The works of weir and its rivals.
const (
	workBoth     = "reserve+complete"
	workReserve  = "reserve"
	workComplete = "complete"
	workTake     = "take"
	workEight    = "eight"
)

// openLimiter opens a limiter over a memory store, with default options unless there will be more
// live leases than they allow. The limits are the system's, so that each entity has them; the
// entity bot cascades to org.
func openLimiter(s *spec, limits ...weir.Limit) (*limiter.Limiter, error) {
	store, err := memory.Open(&memory.Options{Definitions: &weir.Definitions{
		System:   limits,
		Entities: map[string]weir.EntityDefinition{"org": {}, "bot": {Parent: "org", Cascade: true}},
	}})
	if err != nil {
		return nil, err
	}
	if most := s.Live + s.Callers*chunk; most > defaultMost {
		return limiter.New(store, &limiter.Options{MaxLeases: most})
	}
	return limiter.New(store, nil)
}

// openWeir opens a limiter with one bucket for each entity. Its capacity is more than a run can
// use, or just what the live leases take.
func openWeir(ctx context.Context, s *spec) (*workload, error) {
	limit := weir.Limit{Name: "rpm", Capacity: plenty}
	if s.Empty {
		limit = weir.Limit{Name: "rpm", Capacity: int64(s.Live), RefillAmount: 1, RefillPeriod: never}
	}
	l, err := openLimiter(s, limit)
	if err != nil {
		return nil, err
	}
	return openRings(ctx, s, l, weir.Request{Resource: "llm", Costs: weir.Costs{"rpm": 1}})
}

// openCascade opens a limiter with the same four limits for an entity and its parent.
func openCascade(ctx context.Context, s *spec) (*workload, error) {
	l, err := openLimiter(s,
		weir.Limit{Name: "rpm", Capacity: plenty},
		weir.Limit{Name: "tpm", Capacity: plentyTokens},
		weir.Limit{Name: "recent", Kind: weir.Window, Capacity: plenty, Window: time.Minute},
		weir.Limit{Name: "parallel", Kind: weir.Concurrency, Capacity: plenty, Timeout: time.Hour},
	)
	if err != nil {
		return nil, err
	}
	// A concurrency limit is charged without being named.
	costs := weir.Costs{"rpm": 1, "tpm": 500, "recent": 1}
	return openRings(ctx, s, l, weir.Request{Resource: "llm", Costs: costs}, weir.Costs{"tpm": 412})
}

// leaseRing is one caller of a limiter and its live leases. For each lease that it reserves it
// completes the oldest one.
type leaseRing struct {
	limiter  *limiter.Limiter
	requests []weir.Request // by entity
	actuals  []weir.Costs
	entities cycle
	held     []*weir.Lease
	oldest   int
	// pile has the leases to exchange, if reserving and completing are measured separately. The
	// first used of them are in held already.
	pile []*weir.Lease
	used int
}

// openRings puts a limiter into the state of a process that has run for a while, with ended leases
// to remember and live ones, and returns its works. They make the request for each entity in turn.
func openRings(
	ctx context.Context, s *spec, l *limiter.Limiter, request weir.Request, actuals ...weir.Costs,
) (*workload, error) {
	requests := make([]weir.Request, len(s.Entities))
	for i, entity := range s.Entities {
		requests[i] = request
		requests[i].Entity = entity
	}
	var rings []*leaseRing
	both, reserve := &work{}, &work{}
	for i := range s.Callers {
		r := &leaseRing{limiter: l, requests: requests, actuals: actuals, entities: s.cycle(i)}
		rings = append(rings, r)
		both.callers = append(both.callers, r.both)
		reserve.callers = append(reserve.callers, r.reserveOne)
	}
	if err := rings[0].remember(ctx, s.Ended); err != nil {
		return nil, err
	}
	for _, r := range rings {
		r.held = make([]*weir.Lease, max(1, s.Live/len(rings)))
		for i := range r.held {
			var err error
			if r.held[i], err = r.reserve(ctx); err != nil {
				return nil, err
			}
		}
	}
	first := rings[0]
	first.pile = make([]*weir.Lease, 0, chunk)
	if !s.Empty { // so the reserved leases have to be completed
		reserve = &work{
			callers: []operation{first.toPile}, chunk: chunk, before: nothing, after: first.emptyPile,
		}
	}
	return &workload{
		works: map[string]*work{
			workBoth: both, workReserve: reserve,
			workComplete: {
				callers: []operation{first.fromPile}, chunk: chunk, before: first.fillPile, after: nothing,
			},
		},
		close: l.Close,
	}, nil
}

func nothing(context.Context) error { return nil }

// remember reserves and completes leases, which the limiter then remembers as ended.
func (r *leaseRing) remember(ctx context.Context, n int) error {
	for range n {
		lease, err := r.reserve(ctx)
		if err != nil {
			return err
		}
		if _, err := lease.Complete(ctx, r.actuals...); err != nil {
			return err
		}
	}
	return nil
}

func (r *leaseRing) reserve(ctx context.Context) (*weir.Lease, error) {
	return r.limiter.Reserve(ctx, &r.requests[r.entities.next()])
}

// exchange completes the oldest lease, and puts another in its place.
func (r *leaseRing) exchange(ctx context.Context, lease *weir.Lease) error {
	old := r.held[r.oldest]
	r.held[r.oldest] = lease
	if r.oldest++; r.oldest == len(r.held) {
		r.oldest = 0
	}
	_, err := old.Complete(ctx, r.actuals...)
	return err
}

// both reserves a lease and completes the oldest one.
func (r *leaseRing) both(ctx context.Context) (opResult, error) {
	lease, err := r.reserve(ctx)
	if err != nil {
		return judged(err)
	}
	return admitted, r.exchange(ctx, lease)
}

// reserveOne reserves a lease that is never completed.
func (r *leaseRing) reserveOne(ctx context.Context) (opResult, error) {
	_, err := r.reserve(ctx)
	return judged(err)
}

// toPile reserves a lease. A denial is an error too, because fromPile needs as many leases.
func (r *leaseRing) toPile(ctx context.Context) (opResult, error) {
	lease, err := r.reserve(ctx)
	r.pile = append(r.pile, lease)
	return admitted, err
}

// fromPile completes the oldest lease in exchange for one of the pile.
func (r *leaseRing) fromPile(ctx context.Context) (opResult, error) {
	lease := r.pile[r.used]
	if r.used++; r.used == len(r.pile) {
		r.pile, r.used = r.pile[:0], 0
	}
	return admitted, r.exchange(ctx, lease)
}

// fillPile reserves a chunk of leases; emptyPile completes as many.
func (r *leaseRing) fillPile(ctx context.Context) error {
	for range chunk {
		if _, err := r.toPile(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (r *leaseRing) emptyPile(ctx context.Context) error {
	for range chunk {
		if _, err := r.fromPile(ctx); err != nil {
			return err
		}
	}
	return nil
}

// leaseWorks returns the works of a limiter on a store: its callers reserve leases for their
// entities, and leave them alone or complete them.
func leaseWorks(s *spec, l *limiter.Limiter, costs weir.Costs, actuals ...weir.Costs) map[string]*work {
	reserve, both := &work{}, &work{}
	for i := range s.Callers {
		entities := s.cycle(i)
		next := func(ctx context.Context) (*weir.Lease, error) {
			return l.Reserve(ctx, &weir.Request{
				Entity: s.Entities[entities.next()], Resource: storeResource, Costs: costs,
			})
		}
		reserve.callers = append(reserve.callers, func(ctx context.Context) (opResult, error) {
			_, err := next(ctx)
			return judged(err)
		})
		both.callers = append(both.callers, func(ctx context.Context) (opResult, error) {
			lease, err := next(ctx)
			if err == nil {
				_, err = lease.Complete(ctx, actuals...)
			}
			return judged(err)
		})
	}
	return map[string]*work{workReserve: reserve, workBoth: both}
}
