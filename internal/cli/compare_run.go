package cli

import (
	"context"

	"github.com/weir-limiter/weir/internal/lab/replay"
)

// compare replays a trace against two limits files.
func (a *app) compare(
	ctx context.Context, trace string, f *replayFlags, out *replayOutcome,
) (*replay.Report, *replay.Comparison, error) {
	var of [2]replay.Candidate
	for i, name := range []string{f.limits, f.compare} {
		m, err := a.readLimits(ctx, name)
		if err != nil {
			return nil, nil, err
		}
		of[i] = replay.Candidate{File: inputName(name), Limits: m, Watchers: out.watchers(i)}
	}
	t, err := a.readTrace(ctx, trace, &f.read)
	if err != nil {
		return nil, nil, err
	}
	w := f.workload(t)
	o := &replay.CompareOptions{Estimate: f.estimate, Retry: f.retries()}
	if p := a.progress(2 * w.Calls()); p != nil {
		o.Watchers = append(o.Watchers, p)
		defer p.clear()
	}
	return replay.Compare(ctx, w, of, o)
}
