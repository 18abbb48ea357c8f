package main

import (
	"context"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/memory"
)

// partsItem says what the parts of a reservation cost, as far as they can be had from outside.
func partsItem() item {
	return item{
		name:  "parts",
		title: "The parts of reserve + complete: one bucket, one key, 1,000 live leases",
		worlds: []worldSpec{
			{Name: worldWeir, Live: 1_000, Remembered: memorySize, Keys: 1, Procs: 1},
			{Name: worldNowhere, Live: 1_000, Remembered: memorySize, Keys: 1, Procs: 1},
			{Name: worldParts, Keys: 1, Procs: 1},
		},
		sides: []side{
			{"all: weir, reserve + complete", 0, workBoth},
			{"all: reserve alone", 0, workReserve},
			{"all: complete alone", 0, workComplete},
			{"over a store that only plans, reserve + complete", 1, workBoth},
			{"over a store that only plans, reserve", 1, workReserve},
			{"over a store that only plans, complete", 1, workComplete},
			{"time.Now", 2, "clock"},
			{"weir.NewLeaseID", 2, "id"},
			{"a weir.Request with its Costs", 2, "request"},
			{"Reservation.Plan, resolved", 2, "plan"},
			{"memory Store.Reserve, plan included", 2, "store"},
			{"memory Store.Settle", 2, "settle"},
		},
		note: "Over a store that plans and then admits without judging there remain the clock, the ID, " +
			"the fingerprint, the resolution from the cache, the table of leases and the handle. Plan " +
			"and the store's own calls are made by hand here, and find no memory to use again.",
	}
}

// nowhere is a store that plans as every store does first, and then admits without judging, so that
// what is left is the limiter's own part. It reads the configuration from a real one.
type nowhere struct{ *memory.Store }

// Reserve admits. It fails as [weir.Reservation.Plan] does.
func (nowhere) Reserve(
	ctx context.Context, now time.Time, r *weir.Reservation,
) (*weir.Outcome, error) {
	out, err := r.Plan(ctx)
	if err != nil {
		return nil, err
	}
	out.At = now.Truncate(time.Millisecond)
	return out, nil
}

// Settle says that it was done.
func (nowhere) Settle(
	_ context.Context, now time.Time, s *weir.Settlement,
) (*weir.Outcome, error) {
	return s.Outcome(now.Truncate(time.Millisecond)), nil
}

// parts is what the parts are measured with: a store and a reservation prepared for it.
type parts struct {
	store    *memory.Store
	resolved *weir.Resolved
	r        weir.Reservation
	out      *weir.Outcome
	sink     int64 // so that nothing is left out as useless
}

func newParts() (*parts, error) {
	limit, err := weir.Limit{Name: "rpm", Capacity: plenty}.Normalize()
	if err != nil {
		return nil, err
	}
	p := &parts{resolved: &weir.Resolved{Level: weir.LevelSystem, Limits: []weir.Limit{limit}}}
	p.store, err = memory.Open(&memory.Options{
		Definitions: &weir.Definitions{System: []weir.Limit{limit}},
	})
	if err != nil {
		return nil, err
	}
	now := time.Now()
	p.r = weir.Reservation{
		ID:      weir.NewLeaseID(now),
		Charges: []weir.Charge{{Entity: "acme", Resource: "llm", Costs: weir.Costs{"rpm": 1}}},
		Depth:   1, Lifetime: time.Hour, Memory: time.Minute, MemorySize: memorySize,
		Resolve: func(context.Context, weir.Subject, weir.ResolveMode) (*weir.Resolved, error) {
			return p.resolved, nil
		},
	}
	p.out, err = p.store.Reserve(context.Background(), now, &p.r)
	return p, err
}

// nowhereWorld is a limiter over nowhere.
func nowhereWorld(spec *worldSpec) (*world, error) {
	p, err := newParts()
	if err != nil {
		return nil, err
	}
	l, err := weir.New(nowhere{p.store}, nil)
	if err != nil {
		return nil, err
	}
	return ringWorld(spec, l, keyRequests(1), nil)
}

// partsWorld has the parts that can be had by themselves.
func partsWorld() (*world, error) {
	p, err := newParts()
	if err != nil {
		return nil, err
	}
	return &world{works: map[string]work{
		"clock": p.repeat(func(time.Time) error {
			p.sink += int64(time.Now().Nanosecond())
			return nil
		}),
		"id": p.repeat(func(now time.Time) error {
			id := weir.NewLeaseID(now)
			p.sink += int64(id[15])
			return nil
		}),
		"request": p.repeat(func(time.Time) error {
			r := weir.Request{Entity: "acme", Resource: "llm", Costs: weir.Costs{"rpm": 1}}
			p.r.Charges[0].Costs = r.Costs
			return nil
		}),
		"plan": p.repeat(func(time.Time) error {
			_, err := p.r.Plan(context.Background())
			return err
		}),
		"store": p.repeat(func(now time.Time) error {
			out, err := p.store.Reserve(context.Background(), now, &p.r)
			p.out = out
			return err
		}),
		"settle": p.settle,
	}}, nil
}

// repeat makes a work of one part. All calls carry the same now, since the clock is a part itself.
func (p *parts) repeat(part func(now time.Time) error) work {
	return timed(func(n int) (tally, error) {
		now := time.Now()
		for range n {
			if err := part(now); err != nil {
				return tally{}, err
			}
		}
		return tally{}, nil
	})
}

// settle completes the same reservation again and again: the store leaves it to the limiter to know
// that it was completed.
func (p *parts) settle(m *meter, n int) error {
	h := p.out.Holdings
	s := weir.Settlement{
		ID: p.r.ID, Verb: weir.VerbComplete, Holdings: h, Totals: [][]weir.Part{h[0].Parts},
		Limits: []*weir.Limit{h[0].Limit}, Lifetime: time.Hour,
		Memory: time.Minute, MemorySize: memorySize,
	}
	return m.time(n, func(n int) (tally, error) {
		now := time.Now()
		for range n {
			if _, err := p.store.Settle(context.Background(), now, &s); err != nil {
				return tally{}, err
			}
		}
		return tally{}, nil
	})
}
