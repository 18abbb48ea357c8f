package main

import (
	"context"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/memory"
)

const (
	// plenty is a capacity that no run can use up.
	plenty = 1_000_000_000
	// plentyTokens is such a capacity for operations that cost hundreds each.
	plentyTokens = 1_000_000_000_000
	// never is a refill period in which nothing comes back during a run.
	never = 24 * time.Hour
	// chunk is how many leases are reserved before they are completed, if the two are measured apart.
	chunk = 1000
	// defaultMost is how many leases may be live, and how many ended ones are remembered, by default.
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

// openLimiter opens a limiter over a memory store, with default options unless there will be more live
// leases than they allow. The limits are the system's, so that each entity has them; bot cascades to org.
func openLimiter(s *spec, limits ...weir.Limit) (*weir.Limiter, error) {
	store, err := memory.Open(&memory.Options{Definitions: &weir.Definitions{
		System:   limits,
		Entities: map[string]weir.EntityDefinition{"org": {}, "bot": {Parent: "org", Cascade: true}},
	}})
	if err != nil {
		return nil, err
	}
	if most := s.Live + s.Callers*chunk; most > defaultMost {
		return weir.New(store, &weir.Options{MaxLeases: most})
	}
	return weir.New(store, nil)
}

// openWeir opens a limiter with one bucket for each entity. Its capacity is more than a run can use, or
// just what the live leases take.
func openWeir(ctx context.Context, s *spec) (*world, error) {
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
func openCascade(ctx context.Context, s *spec) (*world, error) {
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

// ring is one caller of a limiter and its live leases. For each lease that it reserves it completes the
// oldest one.
type ring struct {
	limiter  *weir.Limiter
	requests []weir.Request // by entity
	actuals  []weir.Costs
	entities cycle
	held     []*weir.Lease
	oldest   int
	// pile has the leases to exchange, if reserving and completing are measured apart. Those before used are
	// in held already.
	pile []*weir.Lease
	used int
}

// openRings brings a limiter into the state of a process that has run for a while, with ended leases to
// remember and live ones, and returns its works. They make the request for each entity in turn.
func openRings(
	ctx context.Context, s *spec, l *weir.Limiter, request weir.Request, actuals ...weir.Costs,
) (*world, error) {
	requests := make([]weir.Request, len(s.Entities))
	for i, entity := range s.Entities {
		requests[i] = request
		requests[i].Entity = entity
	}
	var rings []*ring
	both, reserve := &work{}, &work{}
	for i := range s.Callers {
		r := &ring{limiter: l, requests: requests, actuals: actuals, entities: s.cycle(i)}
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
	if !s.Empty { // and so the reserved leases have to be completed
		reserve = &work{
			callers: []operation{first.toPile}, chunk: chunk, before: nothing, after: first.emptyPile,
		}
	}
	return &world{
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

// remember leaves ended leases behind.
func (r *ring) remember(ctx context.Context, n int) error {
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

func (r *ring) reserve(ctx context.Context) (*weir.Lease, error) {
	return r.limiter.Reserve(ctx, &r.requests[r.entities.next()])
}

// exchange completes the oldest lease, and puts another in its place.
func (r *ring) exchange(ctx context.Context, lease *weir.Lease) error {
	old := r.held[r.oldest]
	r.held[r.oldest] = lease
	if r.oldest++; r.oldest == len(r.held) {
		r.oldest = 0
	}
	_, err := old.Complete(ctx, r.actuals...)
	return err
}

// both reserves a lease and completes the oldest one.
func (r *ring) both(ctx context.Context) (outcome, error) {
	lease, err := r.reserve(ctx)
	if err != nil {
		return judged(err)
	}
	return admitted, r.exchange(ctx, lease)
}

// reserveOne reserves a lease that is never completed.
func (r *ring) reserveOne(ctx context.Context) (outcome, error) {
	_, err := r.reserve(ctx)
	return judged(err)
}

// toPile reserves a lease.
func (r *ring) toPile(ctx context.Context) (outcome, error) {
	lease, err := r.reserve(ctx)
	if err == nil {
		r.pile = append(r.pile, lease)
	}
	return judged(err)
}

// fromPile completes the oldest lease in exchange for one of the pile.
func (r *ring) fromPile(ctx context.Context) (outcome, error) {
	lease := r.pile[r.used]
	if r.used++; r.used == len(r.pile) {
		r.pile, r.used = r.pile[:0], 0
	}
	return admitted, r.exchange(ctx, lease)
}

// fillPile reserves a chunk of leases; emptyPile completes as many.
func (r *ring) fillPile(ctx context.Context) error {
	for range chunk {
		if _, err := r.toPile(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (r *ring) emptyPile(ctx context.Context) error {
	for range chunk {
		if _, err := r.fromPile(ctx); err != nil {
			return err
		}
	}
	return nil
}

// planner is a store that makes the plan, as every store does first, and then admits without judging. What
// remains is the limiter's own part. The configuration is that of the embedded store.
type planner struct{ *memory.Store }

// Reserve admits. It fails as [weir.Reservation.Plan] does.
func (planner) Reserve(ctx context.Context, now time.Time, r *weir.Reservation) (*weir.Outcome, error) {
	out, err := r.Plan(ctx)
	if err != nil {
		return nil, err
	}
	out.At = now.Truncate(time.Millisecond)
	return out, nil
}

// Settle says that it was done.
func (planner) Settle(_ context.Context, now time.Time, s *weir.Settlement) (*weir.Outcome, error) {
	return s.Outcome(now.Truncate(time.Millisecond)), nil
}

// openPlans opens a limiter over a planner.
func openPlans(ctx context.Context, s *spec) (*world, error) {
	p, err := newParts(ctx)
	if err != nil {
		return nil, err
	}
	l, err := weir.New(planner{p.store}, nil)
	if err != nil {
		return nil, err
	}
	return openRings(ctx, s, l, weir.Request{Resource: "llm", Costs: weir.Costs{"rpm": 1}})
}

// parts has what the parts of a reservation need: a store, and a reservation made for it.
type parts struct {
	store   *memory.Store
	request weir.Reservation
	out     *weir.Outcome
	sink    int64 // uses results, so that the compiler keeps the calls
}

func newParts(ctx context.Context) (*parts, error) {
	limit, err := weir.Limit{Name: "rpm", Capacity: plenty}.Normalize()
	if err != nil {
		return nil, err
	}
	p := &parts{}
	p.store, err = memory.Open(&memory.Options{
		Definitions: &weir.Definitions{System: []weir.Limit{limit}},
	})
	if err != nil {
		return nil, err
	}
	now, resolved := time.Now(), &weir.Resolved{Level: weir.LevelSystem, Limits: []weir.Limit{limit}}
	p.request = weir.Reservation{
		ID:      weir.NewLeaseID(now),
		Charges: []weir.Charge{{Entity: "acme", Resource: "llm", Costs: weir.Costs{"rpm": 1}}},
		Depth:   1, Lifetime: time.Hour, Memory: time.Minute, MemorySize: defaultMost,
		Resolve: func(context.Context, weir.Subject, weir.ResolveMode) (*weir.Resolved, error) {
			return resolved, nil
		},
	}
	p.out, err = p.store.Reserve(ctx, now, &p.request)
	return p, err
}

// openParts returns a world with a work for each part of a reservation that can be called by itself. All calls
// carry the same now, because the clock is a part itself. The same reservation is completed again and again,
// which a store allows: the limiter is what knows that a lease has ended.
func openParts(ctx context.Context, _ *spec) (*world, error) {
	p, err := newParts(ctx)
	if err != nil {
		return nil, err
	}
	now, h := time.Now(), p.out.Holdings
	settlement := weir.Settlement{
		ID: p.request.ID, Verb: weir.VerbComplete, Holdings: h, Totals: [][]weir.Part{h[0].Parts},
		Limits: []*weir.Limit{h[0].Limit}, Lifetime: time.Hour,
		Memory: time.Minute, MemorySize: defaultMost,
	}
	w := &world{works: make(map[string]*work)}
	for name, part := range map[string]operation{
		"clock": func(context.Context) (outcome, error) {
			p.sink += int64(time.Now().Nanosecond())
			return done, nil
		},
		"id": func(context.Context) (outcome, error) {
			id := weir.NewLeaseID(now)
			p.sink += int64(id[15])
			return done, nil
		},
		"request": func(context.Context) (outcome, error) {
			r := weir.Request{Entity: "acme", Resource: "llm", Costs: weir.Costs{"rpm": 1}}
			p.request.Charges[0].Costs = r.Costs
			return done, nil
		},
		"plan": func(ctx context.Context) (outcome, error) {
			_, err := p.request.Plan(ctx)
			return done, err
		},
		"store": func(ctx context.Context) (outcome, error) {
			_, err := p.store.Reserve(ctx, now, &p.request)
			return done, err
		},
		"settle": func(ctx context.Context) (outcome, error) {
			_, err := p.store.Settle(ctx, now, &settlement)
			return done, err
		},
	} {
		w.works[name] = &work{callers: []operation{part}}
	}
	return w, nil
}
