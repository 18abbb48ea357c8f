// Package replay plays recorded traffic against limits and says what became of it.
//
// [NewWorkload] says who makes the calls of a trace and what they cost. [Run]
// replays that in virtual time against a limiter of its own, as often as it is asked to and each
// time with other limits if need be; [Play] sends it in real time to a service that runs. Both
// return a [Report], which is data; package report prints it.
package replay

import (
	"context"
	"errors"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// Options say how calls behave.
type Options struct {
	// Estimate says how many tokens a call is taken to generate when it reserves. Default: what it
	// did generate.
	Estimate Estimate
	// Retry makes denied calls come back. Default: they do not.
	Retry *RetryOptions
	// Log gets every decision. Default: none is kept.
	Log *DecisionLog
	// Watchers are told of every event. Default: none.
	Watchers []Watcher
}

// Run replays a workload in virtual time, against a limiter of its own with the limits that are
// defined, and reports what became of it. It changes neither; the same arguments have the same
// outcome.
//
// An error about the definitions is a [*weir.Error] or several, joined; where the workload and the
// definitions do not go together it is an [UnfitError] or several; one that concerns a call names
// its line in the trace.
func Run(
	ctx context.Context, d *weir.Definitions, w *Workload, o *Options,
) (report *Report, err error) {
	if o == nil {
		o = &Options{}
	}
	arrivals := timeRange{w.calls[0].AtMS, w.calls[len(w.calls)-1].AtMS}
	clock := &virtualClock{atMS: arrivals.fromMS}
	lim, err := open(d, clock)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lim.Close()) }()
	p, err := bindWorkload(ctx, lim, w)
	if err != nil {
		return nil, err
	}
	c, err := newCounters(p, o.Estimate, arrivals)
	if err != nil {
		return nil, err
	}
	e := &simulator{
		boundWorkload: p, service: lim, ids: newLeaseIDs(w.seed), until: clock.until,
		estimates: c.estimates, retry: o.Retry,
	}
	if o.Retry != nil {
		c.retry = &retryCount{}
	}
	e.watchers = c.watchers(o.Watchers)
	if o.Log != nil {
		if err := o.Log.begin(p); err != nil {
			return nil, err
		}
		e.watchers = append(e.watchers, o.Log)
	}
	began := time.Now()
	if err := e.run(ctx); err != nil {
		return nil, err
	}
	took := time.Since(began)
	if o.Log != nil {
		if err := o.Log.end(e.lastMS); err != nil {
			return nil, err
		}
	}
	r := p.newReport(c, timeRange{arrivals.fromMS, e.lastMS})
	r.Speed = NewSpeed(e.operations, took)
	if o.Retry != nil {
		r.Retry = c.retry.done(o.Retry)
	}
	return r, nil
}

// open opens a limiter for a replay.
func open(d *weir.Definitions, clock *virtualClock) (*limiter.Limiter, error) {
	store, err := memory.Open(&memory.Options{Definitions: d})
	if err != nil {
		return nil, err
	}
	return limiter.New(store, &limiter.Options{
		Now: clock.now,
		// What is declared is replayed, however deep its entities cascade.
		CascadeDepth: store.Traits().CascadeDepth,
		// No request is repeated, so no lease need be remembered; but none may be forgotten early
		// either, since that would refuse the IDs of other calls in the same millisecond.
		LeaseMemory:     time.Second,
		LeaseMemorySize: 1 << 30,
	})
}
