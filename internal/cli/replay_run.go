package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/manifest"
	"github.com/weir-limiter/weir/memory"
)

// replay runs a trace against a limits file and reports what became of it.
func (a *app) replay(ctx context.Context, trace string, f *replayFlags) (*replayReport, error) {
	m, err := a.readLimits(ctx, f.limits)
	if err != nil {
		return nil, err
	}
	calls, err := a.readTraceFile(ctx, trace)
	if err != nil {
		return nil, err
	}
	w := f.workload(trace, calls)
	clock := &virtualClock{atMS: calls[0].atMS}
	limiter, err := openReplayed(m, clock)
	if err != nil {
		return nil, err
	}
	if err := w.resolve(ctx, limiter); err != nil {
		return nil, err
	}
	e := &engine{service: limiter, workload: w, ids: newLeaseIDs(f.seed), until: clock.until}
	t := newTally(w.subjects)
	began := time.Now()
	if err := a.replayWatched(ctx, e, t, f); err != nil {
		return nil, err
	}
	took := time.Since(began)
	r := f.report(t, w, span{calls[0].atMS, e.lastMS})
	r.Speed = newSpeedReport(e.operations, took)
	return r, limiter.Close()
}

// workload spreads the calls of a trace over tenants.
func (f *replayFlags) workload(trace string, calls []call) *workload {
	return &workload{
		trace: inputName(trace), calls: calls,
		tenants:  spreadCalls(len(calls), f.entities, f.seed),
		resource: f.resource, latency: f.latency, costs: f.costs,
	}
}

func (a *app) readTraceFile(ctx context.Context, name string) ([]call, error) {
	r, err := a.open(ctx, name, maxTraceBytes)
	if err != nil {
		return nil, err
	}
	calls, err := readTrace(ctx, inputName(name), r)
	return calls, errors.Join(err, r.Close())
}

// openReplayed opens a limiter of its own for a replay.
func openReplayed(m *manifest.Manifest, clock *virtualClock) (*weir.Limiter, error) {
	store, err := memory.Open(&memory.Options{Definitions: m.Definitions})
	if err != nil {
		return nil, m.Locate(err)
	}
	return weir.New(store, &weir.Options{
		Now: clock.now,
		// What the file declares is replayed, however deep its entities cascade.
		CascadeDepth: store.Traits().CascadeDepth,
		// No call is repeated, so no lease need be remembered; but none may be forgotten early
		// either, since that would refuse the IDs of other calls in the same millisecond.
		LeaseMemory:     time.Second,
		LeaseMemorySize: 1 << 30,
	})
}

// replayWatched runs the engine, with a decision log and progress where they are wanted.
func (a *app) replayWatched(ctx context.Context, e *engine, t *tally, f *replayFlags) error {
	e.watchers = []watcher{t}
	var log *decisionLog
	if f.decisions != "" {
		var err error
		if log, err = createDecisionLog(f.decisions); err != nil {
			return err
		}
		defer log.abandon()
		run := runLine{Seed: f.seed, Trace: e.workload.trace, Limits: inputName(f.limits)}
		if err := log.begin(run, e.workload.subjects); err != nil {
			return fmt.Errorf("%s: %w", f.decisions, err)
		}
		e.watchers = append(e.watchers, log)
	}
	if p := a.progress(len(e.workload.calls)); p != nil {
		e.watchers = append(e.watchers, p)
		defer p.clear()
	}
	if err := e.run(ctx); err != nil {
		return err
	}
	if log != nil {
		return log.finish(e.lastMS)
	}
	return nil
}

func (f *replayFlags) report(t *tally, w *workload, s span) *replayReport {
	const layout = "2006-01-02T15:04:05.000Z"
	r := &replayReport{
		Trace: w.trace, Calls: len(w.calls),
		From: time.UnixMilli(s.fromMS).UTC().Format(layout),
		To:   time.UnixMilli(s.toMS).UTC().Format(layout), SpanMS: s.ms(),
		Entities: f.entities, Seed: f.seed, Resource: f.resource,
		Latency: f.latency.String(), Costs: map[string]string{},
		Limits: limitReports(t, s), Totals: newTotalReport(t),
	}
	if f.limits != "" {
		r.LimitsFile = inputName(f.limits)
	}
	for _, p := range w.payers {
		for name, c := range p.costs {
			r.Costs[name] = c.String()
		}
	}
	return r
}
