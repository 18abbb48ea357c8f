// Package replay plays recorded traffic against limits and reports what they admit and deny.
//
// A [Workload] describes the traffic: the calls of a trace, the entities that make them, and their
// costs. [Run] plays a workload in virtual time against a limiter of its own. [Compare] runs it
// once for each of two limits files, and [Suggest] runs it with many capacities to find those that
// deny few enough calls. [Play] sends a workload to a running service in real time.
//
// Every run first binds the workload to the limits that apply to each caller, and then reports each
// decision and each completion to watchers, which do all the counting. Watchers are called for one
// event at a time, so they need no locks. The result is a [Report], which holds data only; package
// report formats it.
package replay

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// Options configure the behaviour of calls, and name the watchers.
type Options struct {
	// Estimate determines the output tokens that a call reserves. Default: the number that it
	// generated.
	Estimate Estimate
	// Retry makes denied calls come back. Default: they do not.
	Retry *RetryOptions
	// Log receives every decision. Default: none.
	Log *DecisionLog
	// Watchers are told of every event. Default: none.
	Watchers []Watcher
}

// Run plays a workload in virtual time against a new limiter with the given limits, and reports
// what became of its calls. It changes neither argument, and the same arguments have the same
// result.
//
// An error about the definitions is a [*weir.Error] or several, joined. If the workload does not
// fit the definitions it is an [UnfitError] or several. An error about a call names its line in the
// trace.
func Run(ctx context.Context, d *weir.Definitions, w *Workload, o *Options) (*Report, error) {
	if o == nil {
		o = &Options{}
	}
	p, err := bindTo(ctx, d, w)
	if err != nil {
		return nil, err
	}
	arrivals := timeRange{w.calls[0].AtMS, w.calls[len(w.calls)-1].AtMS}
	c := newCounters(p, arrivals, o.Retry)
	watching := slices.Concat(c.watchers(), o.Watchers)
	if o.Log != nil {
		if err := o.Log.begin(p); err != nil {
			return nil, err
		}
		watching = append(watching, o.Log)
	}
	began := time.Now()
	e, err := simulate(ctx, p, d, &Options{Estimate: o.Estimate, Retry: o.Retry, Watchers: watching})
	if err != nil {
		return nil, err
	}
	took := time.Since(began)
	if o.Log != nil {
		if err := o.Log.end(e.lastMS); err != nil {
			return nil, err
		}
	}
	r := p.newReport(c, e.estimates, timeRange{arrivals.fromMS, e.lastMS})
	r.Estimate, r.Speed = o.Estimate.String(), NewSpeed(e.operations, took)
	return r, nil
}

// bindTo binds a workload to the limits that apply to it in some definitions.
func bindTo(ctx context.Context, d *weir.Definitions, w *Workload) (p *boundWorkload, err error) {
	lim, err := open(d, &virtualClock{w.calls[0].AtMS})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lim.Close()) }()
	return bindWorkload(ctx, lim, w)
}

// simulate plays p in virtual time against the limits in d. Without definitions every call is
// admitted. It writes no log.
func simulate(
	ctx context.Context, p *boundWorkload, d *weir.Definitions, o *Options,
) (e *simulator, err error) {
	clock := &virtualClock{p.calls[0].AtMS}
	e = &simulator{
		boundWorkload: p, service: admitAll{}, ids: newLeaseIDs(p.seed), until: clock.until,
		retry: o.Retry, later: rand.NewPCG(p.seed, retryStream), watchers: o.Watchers,
	}
	if e.estimates, err = newEstimates(o.Estimate, len(p.payers)); err != nil {
		return nil, err
	}
	if e.estimates != nil {
		e.watchers = append(e.watchers, e.estimates)
	}
	if d != nil {
		lim, err := open(d, clock)
		if err != nil {
			return nil, err
		}
		defer lim.Close() //nolint:errcheck // Its store is in memory, so closing it cannot lose data.
		e.service = lim
	}
	return e, e.run(ctx)
}

// open opens a limiter on a new memory store.
func open(d *weir.Definitions, clock *virtualClock) (*limiter.Limiter, error) {
	store, err := memory.Open(&memory.Options{Definitions: d})
	if err != nil {
		return nil, err
	}
	return limiter.New(store, &limiter.Options{
		Now: clock.now,
		// Entities may cascade as deep as the store allows.
		CascadeDepth: store.Traits().CascadeDepth,
		// No request is repeated, so ended leases need not be remembered for long. But none may be
		// dropped early: the limiter would then refuse other lease IDs of the same millisecond.
		LeaseMemory:     time.Second,
		LeaseMemorySize: 1 << 30,
	})
}

// virtualClock stands still until it is set.
type virtualClock struct {
	atMS int64
}

func (c *virtualClock) now() time.Time { return time.UnixMilli(c.atMS).UTC() }

func (c *virtualClock) until(atMS int64) { c.atMS = atMS }

// admitAll is a service without limits.
type admitAll struct {
	weir.Service
}

// Reserve admits.
func (admitAll) Reserve(_ context.Context, r *weir.Request) (*weir.Lease, error) {
	return &weir.Lease{ID: r.LeaseID}, nil
}

// Complete has nothing to settle.
func (admitAll) Complete(_ context.Context, id weir.LeaseID, _ []weir.Costs) (*weir.Receipt, error) {
	return &weir.Receipt{LeaseID: id}, nil
}
