package cli

import (
	"context"

	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/lab/replay"
)

// compareFiles replays a trace against two limits files.
func compareFiles(
	ctx context.Context, a *console.App, trace string, f *replayFlags, out *replayOutcome,
) (*replay.Report, *replay.Comparison, error) {
	var of [2]replay.Candidate
	for i, name := range []string{f.limits, f.compare} {
		m, err := connect.ReadLimits(ctx, a, name)
		if err != nil {
			return nil, nil, err
		}
		of[i] = replay.Candidate{File: console.InputName(name), Limits: m, Watchers: out.watchers(i)}
	}
	t, err := readTrace(ctx, a, trace, &f.read)
	if err != nil {
		return nil, nil, err
	}
	w := f.workload(t)
	o := &replay.CompareOptions{Estimate: f.estimate, Retry: f.retries()}
	if p := startProgress(a, 2*w.Calls()); p != nil {
		o.Watchers = append(o.Watchers, p)
		defer p.clear()
	}
	return replay.Compare(ctx, w, of, o)
}
