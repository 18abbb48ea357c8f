package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/joined"
	"github.com/weir-limiter/weir/internal/lab/loadtest"
	"github.com/weir-limiter/weir/internal/text"
)

const loadtestHelp = `Send calls to a running server, and measure how it answers. A call
reserves, waits for --think, and settles with the same figures. What it reserves is charged
like any other call, so use entities that nothing else uses.

Requests. ENTITY RESOURCE [NAME=N...] is what every call asks for, as for weir reserve. A
number may be a range: tpm=500..4000 draws one for each call. So may a part of the entity:
tenant-{1..100000} means 100,000 entities, and a name without a range is one hot key. Give
several sorts of requests with --request, or on the lines of a file for --mix, as

  [Nx] ENTITY RESOURCE [NAME=N...]      (# begins a comment)

A request with 3x comes three times as often as one with 1x. The same --seed makes the same
calls again.

Closed loop. Each of --concurrency callers makes one call after the other; a caller that is
denied makes its next call at once. A slow server gets fewer calls, so the latencies do not
show how long callers would have waited that had come anyway.

Open loop. With --rate that many calls a second begin at planned instants, whether or not
earlier ones have ended. Latency counts from when a request was due, service time from when it
was sent. --concurrency is how many requests may be in progress, not counting calls that think;
the others wait, and the wait is part of their latency. Calls that began more than 20 ms late
are counted, and so are those that had not begun ten seconds after the end.

Report. Latencies are those of weir's client: with the connection, and with up to three
repetitions if no answer comes. A denial is an answer, an error is not. After a hundred errors
in a row it gives up. Stopped with an interrupt, it settles the calls in progress and reports
what it has measured. The leases of calls that failed are cancelled at the end.

It asks the server at --server (or WEIR_SERVER; ` + connect.DefaultServer + ` by default). The bearer
token is in WEIR_TOKEN, or in a file named with --token-file.`

// loadtestFlags are the flags of `weir loadtest`.
type loadtestFlags struct {
	target   connect.Target
	requests []string
	mix      string
	options  loadtest.Options
	output   *console.Choice
}

// LoadtestCommand makes `weir loadtest`.
func LoadtestCommand(a *console.App) *cobra.Command {
	f := &loadtestFlags{}
	cmd := &cobra.Command{
		Use: "loadtest {ENTITY RESOURCE [NAME=N...] | --request TEXT... | --mix FILE}",
		// Its usage line is as wide as the help without "[flags]".
		DisableFlagsInUseLine: true,

		Short: "Measure how a server answers under load",
		Long:  loadtestHelp,
		Example: `  weir loadtest tenant-1 gpt-4o rpm=1 tpm=500
  weir loadtest 'tenant-{1..100000}' gpt-4o rpm=1 tpm=500..4000 --concurrency 64
  weir loadtest acme gpt-4o rpm=1 --rate 2000 --think 50ms..150ms --warmup 5s
  weir loadtest --request '9x tenant-{1..100} gpt-4o rpm=1' \
    --request '1x hot gpt-4o rpm=1'
  weir loadtest --mix mix.txt --duration 5m --output json`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := cmd.Flags()
	f.target.AddServerFlags(cmd, "`URL` of the server to load (default "+connect.DefaultServer+")")
	flags.StringArrayVar(&f.requests, "request", nil,
		"a kind of request, as `TEXT` like '3x acme gpt-4o rpm=1' (repeatable)")
	flags.StringVar(&f.mix, "mix", "", "`FILE` with such a text on each line, or - for standard input")
	flags.DurationVar(&f.options.Duration, "duration", loadtest.DefaultDuration, "how long to measure")
	flags.DurationVar(&f.options.Warmup, "warmup", 0,
		"make calls for this `DURATION` first, without measuring them")
	flags.IntVar(&f.options.Concurrency, "concurrency", loadtest.DefaultConcurrency,
		"`N` callers; with --rate, at most N requests at one time")
	flags.Int64Var(&f.options.Rate, "rate", 0, "begin `N` calls a second: an open loop")
	flags.Var(&f.options.Think, "think", "time between reserving and settling, like 100ms or 50ms..150ms")
	flags.IntVar(&f.options.CancelPercent, "cancel", 0, "cancel `N` of a hundred leases, complete the others")
	flags.Uint64Var(&f.options.Seed, "seed", 0,
		"make the same calls as an earlier run with seed `S` (default random)")
	f.output = console.OutputFlag(cmd)
	console.GroupFlags(cmd, "Server", "server", "token-file", "ca-cert")
	console.GroupFlags(cmd, "What the calls ask for", "request", "mix", "seed")
	console.GroupFlags(cmd, "How the calls come", "concurrency", "rate", "think", "cancel",
		"warmup", "duration")
	cmd.RunE = console.RunE(func(cmd *cobra.Command, args []string) error {
		if err := f.check(cmd, args); err != nil {
			return err
		}
		report, err := runLoadtest(a, cmd, args, f)
		if report != nil { // a run that was stopped has one too
			err = errors.Join(err, a.PrintResult(f.output, report, report.table))
		}
		return err
	})
	return cmd
}

// check finds mistakes in the flags themselves.
func (f *loadtestFlags) check(cmd *cobra.Command, args []string) error {
	given := cmd.Flags().Changed
	if err := console.RejectBlankFlags(cmd); err != nil {
		return err
	}
	switch named := len(f.requests) > 0 || f.mix != ""; {
	case len(args) == 0 && !named:
		return console.UsageError(cmd,
			"give what the calls ask for: ENTITY RESOURCE [NAME=N...], --request or --mix")
	case len(args) > 0 && named:
		return console.UsageError(cmd,
			"%q cannot be combined with --request or --mix: name all requests there",
			text.Shorten(strings.Join(args, " "), 64))
	case given("duration") && f.options.Duration == 0:
		return console.UsageError(cmd, "--duration 0s: must be from 1ms to 24h")
	case given("concurrency") && f.options.Concurrency == 0:
		return console.UsageError(cmd, "--concurrency 0: must be from 1 to 4096")
	case given("rate") && f.options.Rate == 0:
		return console.UsageError(cmd, "--rate 0: must be from 1 to 1000000")
	}
	if !given("seed") {
		f.options.Seed = uint64(rand.Uint32()) // short enough to be typed again
	}
	return nil
}

// optionErrors turns mistakes in the options into mistakes in the flags.
func optionErrors(cmd *cobra.Command, err error) error {
	errs := joined.Errors(err)
	for i, err := range errs {
		if e, ok := errors.AsType[*weir.Error](err); ok {
			errs[i] = console.UsageError(cmd, "--%s %s: %s", e.Field, e.Value, e.Reason)
		}
	}
	return errors.Join(errs...)
}

// maxMixBytes bounds a file of requests.
const maxMixBytes = 1 << 20

// runLoadtest loads a server and reports what it measured, even if it was stopped.
func runLoadtest(a *console.App, cmd *cobra.Command, args []string, f *loadtestFlags) (*loadtestReport, error) {
	ctx, stop := console.WithHangup(cmd.Context())
	defer stop()
	console.IgnoreBrokenPipes() // leases are settled even if the output is closed
	mix, texts, err := readRequests(ctx, a, cmd, args, f)
	if err != nil {
		return nil, err
	}
	if f.target.Server = cmp.Or(f.target.Server, a.Env(connect.ServerEnv)); f.target.Server == "" {
		f.target.Server, f.target.Defaulted = connect.DefaultServer, true
	}
	if _, err := loadtest.New(nil, mix, &f.options); err != nil {
		return nil, optionErrors(cmd, err) // before anything else is looked at
	}
	f.target.Idle = f.options.Concurrency
	server, err := connect.Dial(a, cmd, &f.target)
	if err != nil {
		return nil, err
	}
	defer server.Close() //nolint:errcheck // It only drops connections.
	runner, err := loadtest.New(server.Service, mix, &f.options)
	if err != nil {
		return nil, optionErrors(cmd, err)
	}
	done := watchLoad(a, runner)
	measured, err := runner.Run(ctx)
	done()
	err = f.target.Hint(connect.ServiceError(err))
	if measured == nil {
		return nil, err
	}
	return newLoadtestReport(measured, f.target.Server, texts), err
}

// readRequests returns the mix of requests, and the same as text.
func readRequests(
	ctx context.Context, a *console.App, cmd *cobra.Command, args []string, f *loadtestFlags,
) (mix []loadtest.Template, texts []string, err error) {
	given := f.requests
	if len(args) > 0 {
		given = []string{strings.Join(args, " ")}
	}
	var errs []error
	for _, request := range given {
		t, err := loadtest.ParseTemplate(request)
		if err != nil {
			if len(args) == 0 {
				err = fmt.Errorf("--request %q: %w", text.Shorten(request, 64), err)
			}
			errs = append(errs, console.UsageError(cmd, "%w", err))
			continue
		}
		mix = append(mix, *t)
	}
	if f.mix != "" {
		data, err := a.Read(ctx, f.mix, maxMixBytes)
		if err != nil {
			return nil, nil, errors.Join(append(errs, err)...)
		}
		more, err := loadtest.ParseMix(console.InputName(f.mix), data)
		errs = append(errs, err)
		mix = append(mix, more...)
	}
	for i := range mix {
		texts = append(texts, mix[i].String())
	}
	return mix, texts, errors.Join(errs...)
}

// loadEvery is the interval at which the progress of a run is shown on a terminal.
const loadEvery = 250 * time.Millisecond

// watchLoad shows the progress of a run on a terminal until the returned function is called.
func watchLoad(a *console.App, r *loadtest.Runner) (done func()) {
	line := a.ProgressLine()
	if line == nil {
		return func() {}
	}
	return console.Every(loadEvery, func(now time.Time) {
		line.Update(func(int) string { return loadLine(line.Style, r.Progress(now)) })
	}, line.Clear)
}

// loadLine returns the line that shows the progress of a run.
func loadLine(look console.Style, p loadtest.Progress) string {
	left := "settling"
	if p.Elapsed < p.Total {
		left = (p.Total - p.Elapsed + time.Second - 1).Truncate(time.Second).String() + " left"
	}
	share := min(int64(p.Elapsed)/max(int64(p.Total)/100, 1), 100)
	bar := look.Bar(big.NewInt(int64(p.Elapsed)), big.NewInt(int64(p.Total)), 10)
	return fmt.Sprintf("%3d %%  %s  %s calls  %s/s  %s denied  %s failed  %s", share, bar, text.FormatInt(p.Calls),
		perSecond(p.Calls, min(p.Elapsed, p.Total)), text.FormatInt(p.Denied), text.FormatInt(p.Failed), left)
}
