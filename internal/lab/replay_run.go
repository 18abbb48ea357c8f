package lab

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/lab/chart"
	"github.com/weir-limiter/weir/internal/lab/live"
	"github.com/weir-limiter/weir/internal/lab/replay"
	"github.com/weir-limiter/weir/internal/lab/report"
	"github.com/weir-limiter/weir/internal/lab/trace"
	"github.com/weir-limiter/weir/internal/text"
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
	if line := a.ProgressLine(); line != nil {
		o.Watchers = append(o.Watchers, live.NewProgress(line, w.Calls()))
		defer line.Clear()
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

// replayLive plays a trace against a server and reports what became of it, also where it was
// stopped.
func replayLive(a *console.App,
	cmd *cobra.Command, trace string, f *replayFlags, watchers ...replay.Watcher,
) (*replay.Report, error) {
	ctx, stop := console.WithHangup(cmd.Context())
	defer stop()
	console.IgnoreBrokenPipes() // nobody may be left to read the report, and yet leases are settled
	server, err := connect.Dial(a, cmd, &f.target)
	if err != nil {
		return nil, err
	}
	defer server.Close() //nolint:errcheck // It only drops connections.
	t, err := readTrace(ctx, a, trace, &f.read)
	if err != nil {
		return nil, err
	}
	out, every := live.NewOutput(a, nil)
	play := &liveOptions{output: out, every: every, watchers: watchers}
	r, err := f.play(ctx, server.Service, f.workload(t), play)
	return r, f.target.Hint(err)
}

// liveOptions says how a replay is shown.
type liveOptions struct {
	output live.Output // nil for not at all
	every  time.Duration
	// noteFirsts makes the first decisions appear as lines.
	noteFirsts bool
	// watchers are told of every event. Default: none.
	watchers []replay.Watcher
}

// play plays a workload against a service.
func (f *replayFlags) play(
	ctx context.Context, service weir.Service, w *replay.Workload, o *liveOptions,
) (*replay.Report, error) {
	p := &replay.PlayOptions{Speed: f.speed, Estimate: f.estimate, Watchers: o.watchers}
	if o.output != nil {
		p.Watch = func(v *replay.View) (stop func()) { return live.Watch(v, o.output, o.every) }
		if o.noteFirsts {
			p.Watchers = append(p.Watchers, &live.FirstCalls{Out: o.output})
		}
	}
	r, err := replay.Play(ctx, service, w, p)
	if r != nil {
		r.Live.Server = f.target.Server
		r.Live.Stopped = strings.Join(console.ComplaintLines(err), "; ")
	}
	return r, err
}

// compareFiles replays a trace against two limits files.
func compareFiles(
	ctx context.Context, a *console.App, trace string, f *replayFlags, out *report.Result,
) (*replay.Report, *replay.Comparison, error) {
	var of [2]replay.Candidate
	for i, name := range []string{f.limits, f.compare} {
		m, err := connect.ReadLimits(ctx, a, name)
		if err != nil {
			return nil, nil, err
		}
		of[i] = replay.Candidate{File: console.InputName(name), Limits: m, Watchers: out.Watchers(i)}
	}
	t, err := readTrace(ctx, a, trace, &f.read)
	if err != nil {
		return nil, nil, err
	}
	w := f.workload(t)
	o := &replay.CompareOptions{Estimate: f.estimate, Retry: f.retries()}
	if line := a.ProgressLine(); line != nil {
		o.Watchers = append(o.Watchers, live.NewProgress(line, 2*w.Calls()))
		defer line.Clear()
	}
	return replay.Compare(ctx, w, of, o)
}

// suggestCapacities replays a trace against a limits file, and looks for capacities that deny few enough.
func suggestCapacities(
	ctx context.Context, a *console.App, trace string, f *replayFlags, watchers ...replay.Watcher,
) (*replay.Report, *report.Suggested, error) {
	file, err := f.createSuggested()
	if err != nil {
		return nil, nil, err
	}
	defer file.Discard()
	m, w, err := loadWorkload(ctx, a, trace, f)
	if err != nil {
		return nil, nil, err
	}
	r, err := f.replayAgainst(ctx, a, m, w, watchers)
	if err != nil {
		return nil, nil, err
	}
	o := &replay.SuggestOptions{Estimate: f.estimate, Retry: f.retries()}
	if line := a.ProgressLine(); line != nil {
		o.Progress = func(p replay.SuggestProgress) {
			line.Update(func(int) string { return suggestProgress(p) })
		}
		defer line.Clear()
	}
	s, err := replay.Suggest(ctx, m.Definitions, w, f.suggest, o)
	if err != nil {
		return nil, nil, m.Locate(err)
	}
	return r, report.NewSuggested(s, f.suggestFile), writeSuggested(file, m, s)
}

// createSuggested begins the file for the suggested limits; nil where none is wanted.
func (f *replayFlags) createSuggested() (*console.AtomicFile, error) {
	if f.suggestFile == "" {
		return nil, nil
	}
	return console.CreateWhole(report.SuggestFileFlag, f.suggestFile)
}

// writeSuggested writes the suggested limits as a limits file. Without a file it does nothing.
func writeSuggested(d *console.AtomicFile, m *manifest.Manifest, s *replay.Suggestions) error {
	if d == nil {
		return nil
	}
	text, err := manifest.Format(m.Namespace, s.Definitions)
	if err != nil {
		return err
	}
	if _, err := d.Out.Write(text); err != nil {
		return console.NameFile(d.Flag, d.Name, err)
	}
	return d.Commit()
}

// suggestProgress says how far a search for capacities is.
func suggestProgress(p replay.SuggestProgress) string {
	return fmt.Sprintf("%d of %s sized, %s replays, %s calls", p.Sized,
		text.Plural(p.Limits, "limit", "limits"), text.FormatInt(p.Replays), text.FormatInt(p.Calls))
}

// chartOptions says how charts are drawn on standard output.
func chartOptions(a *console.App) *chart.TextOptions {
	o := &chart.TextOptions{Width: chartColumns, ASCII: !a.SpeaksUTF8()}
	if t := a.TerminalAt(a.Streams.Out); t != nil {
		columns, _ := t.Size()
		o.Width, o.Color = min(columns, 2*chartColumns), t.Style.Color
	}
	return o
}

// chartColumns is how wide a chart is where nobody says how wide a line may be: as wide as the
// table.
const chartColumns = 100
