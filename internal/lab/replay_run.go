package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/chart"
	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/lab/live"
	"github.com/weir-limiter/weir/internal/lab/replay"
	"github.com/weir-limiter/weir/internal/lab/report"
	"github.com/weir-limiter/weir/internal/lab/trace"
	"github.com/weir-limiter/weir/internal/text"
	"github.com/weir-limiter/weir/manifest"
)

// replayRun is one run of `weir replay`.
type replayRun struct {
	*replayFlags

	app    *console.App
	trace  string
	result *report.Result
}

// run replays and prints the report.
func (r *replayRun) run(cmd *cobra.Command) error {
	if err := r.check(cmd, r.trace); err != nil {
		return err
	}
	if !cmd.Flags().Changed("seed") && r.read.Entity == "" {
		r.seed = uint64(rand.Uint32()) // short enough to be typed again
	}
	page, err := console.CreateAtomic("--html", r.html)
	if err != nil {
		return err
	}
	defer page.Discard()
	r.result = report.NewResult(page != nil)
	if r.limits != "" {
		err = r.againstFiles(cmd.Context())
	} else {
		err = r.againstServer(cmd)
	}
	if _, unfit := errors.AsType[replay.UnfitError](err); unfit {
		return console.UsageError(cmd, "%w", err)
	}
	if r.result.Report == nil {
		return err
	}
	// A replay against a server has a report even if it was stopped.
	if page != nil {
		pageErr := r.result.Page(r.commandLine(cmd, r.trace)).Write(page)
		if pageErr == nil {
			pageErr = page.Commit()
		}
		err = errors.Join(err, pageErr)
	}
	return errors.Join(err, r.app.PrintResult(r.output, r.result, func(b *bytes.Buffer) {
		r.result.Table(b, chartOptions(r.app))
	}))
}

// againstFiles replays the trace against one limits file or two, and searches for capacities if
// asked.
func (r *replayRun) againstFiles(ctx context.Context) error {
	suggested, err := console.CreateAtomic(report.SuggestFileFlag, r.suggestFile)
	if err != nil {
		return err
	}
	defer suggested.Discard()
	var of []replay.Candidate
	for i, name := range []string{r.limits, r.compare} {
		if name == "" {
			continue
		}
		m, err := connect.ReadLimits(ctx, r.app, name)
		if err != nil {
			return err
		}
		of = append(of, replay.Candidate{
			File: console.InputName(name), Limits: m, Watchers: r.result.Watchers(i),
		})
	}
	t, err := readTrace(ctx, r.app, r.trace, &r.read)
	if err != nil {
		return err
	}
	w := r.workload(t)
	o := &replay.Options{Estimate: r.estimate, Retry: r.retries()}
	line := r.app.ProgressLine()
	if line != nil {
		o.Watchers = append(o.Watchers, live.NewProgress(line, len(of)*w.Calls()))
		defer line.Clear()
	}
	if r.compare != "" {
		r.result.Report, r.result.Compare, err = replay.Compare(ctx, w, [2]replay.Candidate(of), o)
		return err
	}
	log, err := console.CreateAtomic("--decisions", r.decisions)
	if err != nil {
		return err
	}
	defer log.Discard()
	if log != nil {
		o.Log = replay.NewDecisionLog(log, of[0].File)
	}
	o.Watchers = append(o.Watchers, of[0].Watchers...)
	m := of[0].Limits
	played, err := replay.Run(ctx, m.Definitions, w, o)
	if err != nil {
		return m.Locate(err)
	}
	played.LimitsFile = of[0].File
	if err := log.Commit(); err != nil || !r.suggests {
		r.result.Report = played
		return err
	}
	found, err := r.searchCapacities(ctx, m, w, line)
	if err != nil {
		return m.Locate(err)
	}
	r.result.Report, r.result.Suggest = played, report.NewSuggested(found, r.suggestFile)
	if suggested == nil {
		return nil
	}
	limits, err := manifest.Format(m.Namespace, found.Definitions)
	if err != nil {
		return err
	}
	if _, err := suggested.Write(limits); err != nil {
		return err
	}
	return suggested.Commit()
}

// searchCapacities searches for capacities that deny few enough calls, and shows the progress.
func (r *replayRun) searchCapacities(
	ctx context.Context, m *manifest.Manifest, w *replay.Workload, line *console.ProgressLine,
) (*replay.Suggestions, error) {
	o := &replay.SuggestOptions{Estimate: r.estimate, Retry: r.retries()}
	if line != nil {
		o.Progress = func(p replay.SuggestProgress) {
			line.Update(func(int) string { return suggestProgress(p) })
		}
	}
	return replay.Suggest(ctx, m.Definitions, w, r.suggest, o)
}

// suggestProgress returns the line that shows the progress of a search.
func suggestProgress(p replay.SuggestProgress) string {
	return fmt.Sprintf("%d of %s sized, %s replays, %s calls", p.Sized,
		text.Plural(p.Limits, "limit", "limits"), text.FormatInt(p.Replays), text.FormatInt(p.Calls))
}

// againstServer plays the trace against a server. There is a report even if it was stopped.
func (r *replayRun) againstServer(cmd *cobra.Command) error {
	ctx, stop := console.WithHangup(cmd.Context())
	defer stop()
	console.IgnoreBrokenPipes() // leases are settled even if the output is closed
	server, err := connect.Dial(r.app, cmd, &r.target)
	if err != nil {
		return err
	}
	defer server.Close() //nolint:errcheck // It only drops connections.
	t, err := readTrace(ctx, r.app, r.trace, &r.read)
	if err != nil {
		return err
	}
	out, every := live.NewOutput(r.app, nil)
	play := &liveOptions{output: out, every: every, watchers: r.result.Watchers(0)}
	r.result.Report, err = r.play(ctx, server.Service, r.workload(t), play)
	return r.target.Hint(err)
}

// liveOptions configure the progress that a replay shows.
type liveOptions struct {
	output live.Output // nil for none
	every  time.Duration
	// noteFirsts shows the first decisions.
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
		r.Live.Stopped = strings.Join(console.MistakeLines(err), "; ")
	}
	return r, err
}

// retries returns nil if denied calls do not come back.
func (f *replayFlags) retries() *replay.RetryOptions {
	if !f.retry {
		return nil
	}
	return &replay.RetryOptions{Patience: f.patience}
}

// workload returns the workload of a trace.
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

// chartOptions returns the options of charts on standard output.
func chartOptions(a *console.App) *chart.TextOptions {
	o := &chart.TextOptions{Width: chartColumns, ASCII: !a.SpeaksUTF8()}
	if t := a.TerminalAt(a.Streams.Out); t != nil {
		columns, _ := t.Size()
		o.Width, o.Color = min(columns, 2*chartColumns), t.Style.Color
	}
	return o
}

// chartColumns is the width of a chart without a terminal, about that of the table.
const chartColumns = 100
