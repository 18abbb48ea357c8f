package main

import (
	"context"
	"errors"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/memory"
)

// plenty is a capacity that no run can use up.
const plenty = 1_000_000_000

// plentyTokens is such a capacity where each operation costs hundreds.
const plentyTokens = 1_000_000_000_000

// chunk is how many leases are reserved before as many are completed, where the two are measured
// apart.
const chunk = 1000

// never is a refill period in which nothing comes back during a run.
const never = 24 * time.Hour

// weirRing is a limiter and its live leases: a ring, in which the oldest is completed for each that
// is reserved.
type weirRing struct {
	limiter  *weir.Limiter
	requests []weir.Request
	actuals  []weir.Costs
	held     []*weir.Lease
	oldest   int
	next     int
}

// openLimiter opens a limiter with default options over a memory store. The limits are the system's,
// so that they hold for each entity by itself; bot cascades to org.
func openLimiter(limits ...weir.Limit) (*weir.Limiter, error) {
	store, err := memory.Open(&memory.Options{Definitions: &weir.Definitions{
		System:   limits,
		Entities: map[string]weir.EntityDefinition{"org": {}, "bot": {Parent: "org", Cascade: true}},
	}})
	if err != nil {
		return nil, err
	}
	return weir.New(store, nil)
}

// bucketLimit is the one limit of a world: so much that nothing is denied, or just what the live
// leases take.
func bucketLimit(spec *worldSpec) weir.Limit {
	if spec.Empty {
		return weir.Limit{
			Name: "rpm", Capacity: int64(max(1, spec.Live)), RefillAmount: 1, RefillPeriod: never,
		}
	}
	return weir.Limit{Name: "rpm", Capacity: plenty}
}

// weirWorld is a limiter with one bucket for each key.
func weirWorld(spec *worldSpec) (*world, error) {
	l, err := openLimiter(bucketLimit(spec))
	if err != nil {
		return nil, err
	}
	return ringWorld(spec, l, keyRequests(spec.Keys), nil)
}

// keyRequests asks one unit of each key.
func keyRequests(n int) []weir.Request {
	costs := weir.Costs{"rpm": 1}
	requests := make([]weir.Request, n)
	for i, key := range keys(n) {
		requests[i] = weir.Request{Entity: key, Resource: "llm", Costs: costs}
	}
	return requests
}

// ringWorld fills a limiter's memory of ended leases, as in a process that has run for a while, then
// a ring for each goroutine, of which each begins elsewhere among the requests.
func ringWorld(
	spec *worldSpec, l *weir.Limiter, requests []weir.Request, actuals []weir.Costs,
) (*world, error) {
	procs := max(1, spec.Procs)
	rings := make([]*weirRing, procs)
	both := make([]loop, procs)
	for i := range rings {
		rings[i] = &weirRing{
			limiter: l, requests: requests, actuals: actuals, next: i * len(requests) / procs,
		}
		both[i] = rings[i].both
	}
	if !spec.Empty {
		if err := rings[0].remember(spec.Remembered); err != nil {
			return nil, err
		}
	}
	for _, ring := range rings {
		if err := ring.fill(max(1, spec.Live/procs)); err != nil {
			return nil, err
		}
	}
	return &world{
		works: map[string]work{
			workBoth: parallel(both), workDenied: timed(rings[0].denied),
			workReserve: rings[0].reserveAlone, workComplete: rings[0].completeAlone,
		},
		close: l.Close,
	}, nil
}

// remember leaves so many ended leases behind.
func (r *weirRing) remember(n int) error {
	ctx := context.Background()
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

// fill makes so many leases live.
func (r *weirRing) fill(n int) error {
	r.held = make([]*weir.Lease, n)
	for i := range r.held {
		lease, err := r.reserve(context.Background())
		if err != nil {
			return err
		}
		r.held[i] = lease
	}
	return nil
}

func (r *weirRing) reserve(ctx context.Context) (*weir.Lease, error) {
	request := &r.requests[r.next]
	if r.next++; r.next == len(r.requests) {
		r.next = 0
	}
	return r.limiter.Reserve(ctx, request)
}

// completeOldest completes the lease that was reserved first, and puts another into its place.
func (r *weirRing) completeOldest(ctx context.Context, lease *weir.Lease) error {
	old := r.held[r.oldest]
	r.held[r.oldest] = lease
	if r.oldest++; r.oldest == len(r.held) {
		r.oldest = 0
	}
	_, err := old.Complete(ctx, r.actuals...)
	return err
}

// both reserves and completes.
func (r *weirRing) both(n int) (tally, error) {
	ctx := context.Background()
	for range n {
		lease, err := r.reserve(ctx)
		if err != nil {
			return tally{}, err
		}
		if err := r.completeOldest(ctx, lease); err != nil {
			return tally{}, err
		}
	}
	return tally{admitted: int64(n)}, nil
}

// denied reserves in vain.
func (r *weirRing) denied(n int) (tally, error) {
	ctx := context.Background()
	var t tally
	for range n {
		_, err := r.reserve(ctx)
		if err == nil {
			t.admitted++
		} else if _, ok := errors.AsType[*weir.DeniedError](err); ok {
			t.denied++
		} else {
			return t, err
		}
	}
	return t, nil
}

// reserveAlone measures the reservations: leases pile up for a chunk, then as many are completed.
func (r *weirRing) reserveAlone(m *meter, n int) error { return r.split(n, m, &meter{}) }

// completeAlone measures the completions of the same.
func (r *weirRing) completeAlone(m *meter, n int) error { return r.split(n, &meter{}, m) }

func (r *weirRing) split(n int, reserving, completing *meter) error {
	ctx := context.Background()
	leases := make([]*weir.Lease, chunk)
	for done := 0; done < n; done += chunk {
		err := reserving.time(chunk, func(int) (tally, error) {
			for i := range leases {
				var err error
				if leases[i], err = r.reserve(ctx); err != nil {
					return tally{}, err
				}
			}
			return tally{admitted: chunk}, nil
		})
		if err != nil {
			return err
		}
		err = completing.time(chunk, func(int) (tally, error) {
			for _, lease := range leases {
				if err := r.completeOldest(ctx, lease); err != nil {
					return tally{}, err
				}
			}
			return tally{admitted: chunk}, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
