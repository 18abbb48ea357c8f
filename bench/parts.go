package main

import (
	"context"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// planOnlyStore is a store that admits every plan without judging it, so that a call of a limiter
// over it costs only the limiter's part. The embedded store has the configuration.
type planOnlyStore struct{ *memory.Store }

// Reserve admits the plan.
func (planOnlyStore) Reserve(_ context.Context, now time.Time, _ *driver.Plan, out *driver.Outcome) error {
	out.At = now.Truncate(time.Millisecond)
	return nil
}

// Update reports that the update was applied.
func (planOnlyStore) Update(_ context.Context, now time.Time, _ *driver.Update, out *driver.Outcome) error {
	out.At = now.Truncate(time.Millisecond)
	return nil
}

// openPlans opens a limiter over a planOnlyStore.
func openPlans(ctx context.Context, s *spec) (*workload, error) {
	p, err := newParts(ctx)
	if err != nil {
		return nil, err
	}
	l, err := limiter.New(planOnlyStore{p.store}, nil)
	if err != nil {
		return nil, err
	}
	return openRings(ctx, s, l, weir.Request{Resource: "llm", Costs: weir.Costs{"rpm": 1}})
}

// parts has what the parts of a reservation need: a store, and a plan made for it.
type parts struct {
	store *memory.Store
	costs weir.Costs
	plan  *driver.Plan
	out   *driver.Outcome
	sink  int64 // uses results, so that the compiler keeps the calls
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
	now, of := time.Now(), weir.Subject{Entity: "acme", Resource: "llm"}
	p.plan = &driver.Plan{
		ID: weir.NewLeaseID(now), Charges: 1,
		Subjects: []driver.Judged{{Subject: of, Level: weir.LevelSystem, Limits: []weir.Limit{limit}}},
		Takes: []*driver.Take{{
			Subject: of, Limit: &limit, Level: weir.LevelSystem, Ceiling: limit.Capacity, Parts: []driver.Part{{Units: 1}},
		}},
		Lifetime: time.Hour, Memory: time.Minute, MemorySize: defaultMost,
	}
	p.out = p.plan.Outcome()
	return p, p.store.Reserve(ctx, now, p.plan, p.out)
}

// openParts returns a workload with a work for each part of a reservation that can be called
// separately. All calls carry the same now, because reading the clock is a part itself. The same
// reservation is completed repeatedly, which a store allows, because the limiter checks whether a
// lease has ended.
func openParts(ctx context.Context, _ *spec) (*workload, error) {
	p, err := newParts(ctx)
	if err != nil {
		return nil, err
	}
	now, h := time.Now(), p.plan.Holdings(p.out)
	update := &driver.Update{
		ID: p.plan.ID, Verb: weir.VerbComplete, Lifetime: time.Hour, Memory: time.Minute, MemorySize: defaultMost,
		Changes: []driver.Change{{
			Holding: &h[0], Limit: h[0].Limit, From: h[0].Cost(), To: h[0].Cost(), Parts: h[0].Parts,
		}},
	}
	updated := update.Outcome()
	w := &workload{works: make(map[string]*work)}
	for name, part := range map[string]operation{
		"clock": func(context.Context) (opResult, error) {
			p.sink += int64(time.Now().Nanosecond())
			return done, nil
		},
		"id": func(context.Context) (opResult, error) {
			id := weir.NewLeaseID(now)
			p.sink += int64(id[15])
			return done, nil
		},
		"request": func(context.Context) (opResult, error) {
			r := weir.Request{Entity: "acme", Resource: "llm", Costs: weir.Costs{"rpm": 1}}
			p.costs = r.Costs
			return done, nil
		},
		"store": func(ctx context.Context) (opResult, error) {
			for i := range p.out.Taken {
				p.out.Taken[i].Pieces = p.out.Taken[i].Pieces[:0]
			}
			return done, p.store.Reserve(ctx, now, p.plan, p.out)
		},
		"settle": func(ctx context.Context) (opResult, error) {
			return done, p.store.Update(ctx, now, update, updated)
		},
	} {
		w.works[name] = &work{callers: []operation{part}}
	}
	return w, nil
}
