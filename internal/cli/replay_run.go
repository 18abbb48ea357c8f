package cli

import (
	"context"
	"errors"

	"github.com/weir-limiter/weir/internal/lab/replay"
	"github.com/weir-limiter/weir/internal/lab/trace"
	"github.com/weir-limiter/weir/manifest"
)

// replay runs a trace against a limits file and reports what became of it.
func (a *app) replay(
	ctx context.Context, trace string, f *replayFlags, watchers ...replay.Watcher,
) (*replay.Report, error) {
	m, w, err := a.load(ctx, trace, f)
	if err != nil {
		return nil, err
	}
	return a.replayAgainst(ctx, m, w, f, watchers)
}

// load reads the limits and the trace.
func (a *app) load(
	ctx context.Context, trace string, f *replayFlags,
) (*manifest.Manifest, *replay.Workload, error) {
	m, err := a.readLimits(ctx, f.limits)
	if err != nil {
		return nil, nil, err
	}
	t, err := a.readTrace(ctx, trace, &f.read)
	if err != nil {
		return nil, nil, err
	}
	return m, f.workload(t), nil
}

// replayAgainst runs a workload against limits, and writes the decisions where they are wanted.
func (a *app) replayAgainst(
	ctx context.Context, m *manifest.Manifest, w *replay.Workload, f *replayFlags, watchers []replay.Watcher,
) (*replay.Report, error) {
	o := &replay.Options{Estimate: f.estimate, Retry: f.retries(), Watchers: watchers}
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
		return nil, file.blame(m.Locate(err))
	}
	r.LimitsFile = inputName(f.limits)
	return r, file.finish()
}

// retries says how denied calls come back; nil if they do not.
func (f *replayFlags) retries() *replay.RetryOptions {
	if !f.retry {
		return nil
	}
	return &replay.RetryOptions{Patience: f.patience}
}

// log opens the file for the decisions where one is wanted; nil otherwise.
func (f *replayFlags) log(o *replay.Options) (*wholeFile, error) {
	if f.decisions == "" {
		return nil, nil
	}
	file, err := createWhole("--decisions", f.decisions)
	if err != nil {
		return nil, err
	}
	o.Log = replay.NewDecisionLog(file.out, inputName(f.limits))
	return file, nil
}

// workload says who makes the calls of a trace, and what they cost.
func (f *replayFlags) workload(t *trace.Trace) *replay.Workload {
	return replay.NewWorkload(t, &replay.WorkloadOptions{
		Entities: f.entities, Seed: f.seed, Latency: f.latency, Costs: f.costs,
	})
}

func (a *app) readTrace(
	ctx context.Context, name string, o *trace.Options,
) (*trace.Trace, error) {
	r, err := a.open(ctx, name, trace.MaxBytes)
	if err != nil {
		return nil, err
	}
	t, err := trace.Read(ctx, inputName(name), r, o)
	return t, errors.Join(err, r.Close())
}
