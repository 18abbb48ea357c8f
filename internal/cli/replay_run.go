package cli

import (
	"context"
	"errors"

	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/lab/replay"
	"github.com/weir-limiter/weir/internal/lab/trace"
	"github.com/weir-limiter/weir/manifest"
)

// replayVirtual runs a trace against a limits file and reports what became of it.
func replayVirtual(
	ctx context.Context, a *console.App, trace string, f *replayFlags, watchers ...replay.Watcher,
) (*replay.Report, error) {
	m, w, err := loadWorkload(ctx, a, trace, f)
	if err != nil {
		return nil, err
	}
	return f.replayAgainst(ctx, a, m, w, watchers)
}

// loadWorkload reads the limits and the trace.
func loadWorkload(
	ctx context.Context, a *console.App, trace string, f *replayFlags,
) (*manifest.Manifest, *replay.Workload, error) {
	m, err := connect.ReadLimits(ctx, a, f.limits)
	if err != nil {
		return nil, nil, err
	}
	t, err := readTrace(ctx, a, trace, &f.read)
	if err != nil {
		return nil, nil, err
	}
	return m, f.workload(t), nil
}

// replayAgainst runs a workload against limits, and writes the decisions where they are wanted.
func (f *replayFlags) replayAgainst(
	ctx context.Context, a *console.App, m *manifest.Manifest, w *replay.Workload, watchers []replay.Watcher,
) (*replay.Report, error) {
	o := &replay.Options{Estimate: f.estimate, Retry: f.retries(), Watchers: watchers}
	if p := startProgress(a, w.Calls()); p != nil {
		o.Watchers = append(o.Watchers, p)
		defer p.clear()
	}
	file, err := f.log(o)
	if err != nil {
		return nil, err
	}
	defer file.Discard()
	r, err := replay.Run(ctx, m.Definitions, w, o)
	if err != nil {
		return nil, file.NameError(m.Locate(err))
	}
	r.LimitsFile = console.InputName(f.limits)
	return r, file.Commit()
}

// retries says how denied calls come back; nil if they do not.
func (f *replayFlags) retries() *replay.RetryOptions {
	if !f.retry {
		return nil
	}
	return &replay.RetryOptions{Patience: f.patience}
}

// log opens the file for the decisions where one is wanted; nil otherwise.
func (f *replayFlags) log(o *replay.Options) (*console.AtomicFile, error) {
	if f.decisions == "" {
		return nil, nil
	}
	file, err := console.CreateWhole("--decisions", f.decisions)
	if err != nil {
		return nil, err
	}
	o.Log = replay.NewDecisionLog(file.Out, console.InputName(f.limits))
	return file, nil
}

// workload says who makes the calls of a trace, and what they cost.
func (f *replayFlags) workload(t *trace.Trace) *replay.Workload {
	return replay.NewWorkload(t, &replay.WorkloadOptions{
		Entities: f.entities, Seed: f.seed, Latency: f.latency, Costs: f.costs,
	})
}

func readTrace(
	ctx context.Context, a *console.App, name string, o *trace.Options,
) (*trace.Trace, error) {
	r, err := a.Open(ctx, name, trace.MaxBytes)
	if err != nil {
		return nil, err
	}
	t, err := trace.Read(ctx, console.InputName(name), r, o)
	return t, errors.Join(err, r.Close())
}
