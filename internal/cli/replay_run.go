package cli

import (
	"context"
	"errors"

	"github.com/weir-limiter/weir/internal/replay"
)

// replay runs a trace against a limits file and reports what became of it.
func (a *app) replay(ctx context.Context, trace string, f *replayFlags) (*replay.Report, error) {
	m, err := a.readLimits(ctx, f.limits)
	if err != nil {
		return nil, err
	}
	t, err := a.readTrace(ctx, trace, &f.read)
	if err != nil {
		return nil, err
	}
	w := f.workload(t)
	o := &replay.Options{Estimate: f.estimate}
	if f.retry {
		o.Retry = &replay.RetryOptions{Patience: f.patience}
	}
	if p := a.progress(w.Calls()); p != nil {
		o.Watchers = append(o.Watchers, p)
		defer p.clear()
	}
	file, err := f.log(o)
	if err != nil {
		return nil, err
	}
	defer file.abandon()
	r, err := replay.Run(ctx, m.Definitions, w, o)
	if err != nil {
		return nil, m.Locate(err)
	}
	r.LimitsFile = inputName(f.limits)
	return r, file.finish()
}

// log opens the file for the decisions where one is wanted; nil otherwise.
func (f *replayFlags) log(o *replay.Options) (*decisionFile, error) {
	if f.decisions == "" {
		return nil, nil
	}
	file, err := createDecisions(f.decisions)
	if err != nil {
		return nil, err
	}
	o.Log = replay.NewDecisionLog(file.out, inputName(f.limits))
	return file, nil
}

// workload says who makes the calls of a trace, and what they cost.
func (f *replayFlags) workload(t *replay.Trace) *replay.Workload {
	return replay.NewWorkload(t, &replay.WorkloadOptions{
		Entities: f.entities, Seed: f.seed, Latency: f.latency, Costs: f.costs,
	})
}

func (a *app) readTrace(
	ctx context.Context, name string, o *replay.ReadOptions,
) (*replay.Trace, error) {
	r, err := a.open(ctx, name, replay.MaxTraceBytes)
	if err != nil {
		return nil, err
	}
	t, err := replay.ReadTrace(ctx, inputName(name), r, o)
	return t, errors.Join(err, r.Close())
}
