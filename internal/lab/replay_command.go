// Package lab has the commands that try limits out: replay plays recorded traffic against them,
// loadtest measures a server, and demo shows one at work. Operators need none of them.
//
// What a command computes is in the rooms below: trace reads recorded traffic, replay plays it,
// report prints what became of it and makes pages, chart draws, live shows a replay while it runs,
// and loadtest makes calls and measures the answers.
package lab

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/lab/chart"
	"github.com/weir-limiter/weir/internal/lab/replay"
	"github.com/weir-limiter/weir/internal/lab/report"
	"github.com/weir-limiter/weir/internal/lab/trace"
)

// replayFlags are the flags of `weir replay`.
type replayFlags struct {
	limits    string
	target    connect.Target
	speed     int64
	entities  int
	seed      uint64
	read      trace.Options
	latency   replay.Latency
	costs     replay.Costs
	estimate  replay.Estimate
	retry     bool
	patience  time.Duration
	decisions string
	html      string
	compare   string
	// suggest is meant where suggests is set.
	suggest     replay.Fraction
	suggests    bool
	suggestFile string
	output      *console.Format
}

// ReplayCommand makes `weir replay`.
func ReplayCommand(a *console.App) *cobra.Command {
	f := &replayFlags{costs: replay.Costs{}}
	cmd := &cobra.Command{
		Use:   "replay TRACE {--limits FILE | --server URL}",
		Short: "Replay recorded traffic against limits",
		Long:  replayHelp,
		Example: `  weir replay trace.csv --limits limits.yaml
  weir replay trace.csv --limits limits.yaml --entities 4 --seed 7 \
    --latency 400ms+15ms
  weir replay trace.csv --limits limits.yaml --cost hourly=1 \
    --cost usd=3*input+15*output
  weir replay trace.csv --limits limits.yaml --estimate quantile:0.95 --retry
  weir replay burst.csv --limits limits.yaml \
    --time-column Timestamp --model-column Model \
      --input-column 'Request tokens' --output-column 'Response tokens'
  weir replay trace.csv --limits limits.yaml --decisions decisions.jsonl \
    --output json
  weir replay trace.csv --limits limits.yaml --compare tighter.yaml \
    --html replay.html
  weir replay trace.csv --limits limits.yaml --suggest 1% \
    --suggest-file suggested.yaml
  weir replay trace.csv --server http://127.0.0.1:7117 --speed 120`,
		Args: console.Arguments(1, 1, "a trace, or - for standard input"),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.limits, "limits", "", "limits `FILE`, or - for standard input")
	f.target.AddServerFlags(cmd, "`URL` of a server to send the calls to instead")
	flags.Int64Var(&f.speed, "speed", 1, "with --server: `N` times as fast as recorded")
	flags.IntVar(&f.entities, "entities", 1, "spread the calls over `N` tenants")
	flags.Uint64Var(&f.seed, "seed", 0, "the number `S` decides who makes which call (default random)")
	flags.Var(&f.latency, "latency", "how long calls last, like 400ms+15ms")
	flags.Var(f.costs, "cost", "what a call costs on a limit by name (repeatable)")
	flags.Var(&f.estimate, "estimate",
		"what calls reserve for their output: truth, fixed:N tokens, or quantile:Q as learned")
	flags.BoolVar(&f.retry, "retry", false, "denied calls come back when they were told to")
	flags.DurationVar(&f.patience, "patience", replay.DefaultPatience,
		"with --retry: a call gives up so long after it came")
	flags.StringVar(&f.decisions, "decisions", "",
		"`FILE` to write every decision to, as lines of JSON")
	flags.StringVar(&f.html, "html", "", "`FILE` to write a page with charts to")
	flags.StringVar(&f.compare, "compare", "",
		"limits `FILE` to replay the same calls against as well, and compare")
	suggestFlags(cmd, f)
	traceFlags(cmd, &f.read)
	f.output = console.OutputFlag(cmd)
	cmd.RunE = console.RunE(func(cmd *cobra.Command, args []string) error {
		return runReplay(a, cmd, args[0], f)
	})
	return cmd
}

// traceFlags gives a command the flags for how a trace is written.
func traceFlags(cmd *cobra.Command, o *trace.Options) {
	o.TimeUnit, o.DurationUnit = trace.Seconds, trace.Milliseconds
	flags := cmd.Flags()
	for _, f := range []struct {
		into        *string
		name, value string
		usage       string
	}{
		{&o.Time, "time-column", "TIMESTAMP", "the trace's column `NAME` for when a call came"},
		{&o.Input, "input-column", "ContextTokens", "the column `NAME` for the tokens that went in"},
		{&o.Output, "output-column", "GeneratedTokens", "the column `NAME` for the tokens that came out"},
		{&o.Entity, "entity-column", "", "the column `NAME` for who called, instead of --entities"},
		{&o.Model, "model-column", "", "the column `NAME` for the resource, instead of --resource"},
		{
			&o.Duration, "duration-column", "",
			"the column `NAME` for how long a call lasted, instead of --latency",
		},
		{&o.Resource, "resource", "llm", "`NAME` of the resource that the calls use"},
	} {
		flags.StringVar(f.into, f.name, f.value, f.usage)
	}
	flags.Var(&o.TimeUnit, "time-unit", "what times count that are numbers")
	flags.Var(&o.DurationUnit, "duration-unit", "what durations count that are numbers")
	flags.BoolVar(&o.Sort, "sort", false, "sort the calls by time")
}

// runReplay replays, and prints what came of it.
func runReplay(a *console.App, cmd *cobra.Command, trace string, f *replayFlags) error {
	if err := f.check(cmd, trace); err != nil {
		return err
	}
	if !cmd.Flags().Changed("seed") && f.read.Entity == "" {
		f.seed = uint64(rand.Uint32()) // short enough to be typed again
	}
	page, err := f.createPage()
	if err != nil {
		return err
	}
	defer page.abandon()
	o := report.NewResult(f.html != "")
	switch {
	case f.compare != "":
		o.Report, o.Compare, err = compareFiles(cmd.Context(), a, trace, f, o)
	case f.suggests:
		o.Report, o.Suggest, err = suggestCapacities(cmd.Context(), a, trace, f, o.Watchers(0)...)
	case f.limits != "":
		o.Report, err = replayVirtual(cmd.Context(), a, trace, f, o.Watchers(0)...)
	default:
		o.Report, err = replayLive(a, cmd, trace, f, o.Watchers(0)...)
	}
	if _, unfit := errors.AsType[replay.UnfitError](err); unfit {
		return console.UsageError(cmd, "%w", err)
	}
	if o.Report != nil { // a replay that was stopped has one too
		err = errors.Join(err, page.write(func() *chart.Page { return o.Page(f.commandLine(cmd, trace)) }),
			a.PrintResult(*f.output, o, func(b *bytes.Buffer) { o.Table(b, chartOptions(a)) }))
	}
	return err
}
