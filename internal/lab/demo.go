package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/lab/live"
	"github.com/weir-limiter/weir/internal/lab/replay"
	"github.com/weir-limiter/weir/internal/lab/report"
	"github.com/weir-limiter/weir/internal/lab/trace"
	"github.com/weir-limiter/weir/internal/server"
	"github.com/weir-limiter/weir/internal/text"
	"github.com/weir-limiter/weir/memory"
)

const demoHelp = `Show weir at work: start a server on this machine, send it an hour of recorded LLM
traffic in half a minute, and show what its limits make of it as it goes. A terminal gets a
table that is drawn again and again, everything else a line every two seconds.

Afterwards the server stays up, with a page to look at and three lines to paste into another
terminal: a call that is admitted, one that is denied, and one that is settled. They work as
long as it is up. An interrupt (Ctrl-C) ends it.

Traffic and limits are files of weir's repository, so run it in a clone, or name others. The
limits are for time that passes 120 times as fast; the lines to paste are about the entity
"you" in them.`

// demoFlags are the flags of `weir demo`.
type demoFlags struct {
	replayFlags

	trace  string
	file   string // of the limits; the replay itself asks the server
	listen string
	exit   bool
}

// DemoCommand makes `weir demo`.
func DemoCommand(a *console.App) *cobra.Command {
	f := &demoFlags{replayFlags: replayFlags{
		read: trace.Options{Resource: "llm"}, costs: replay.Costs{},
		latency: replay.Latency{Base: 400 * time.Millisecond, PerToken: 15 * time.Millisecond},
	}}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch a server limit an hour of traffic in half a minute",
		Long:  demoHelp,
		Example: `  weir demo
  weir demo --speed 30 --seed 7
  weir demo --exit > demo.txt`,
		Args: console.Arguments(0, 0, ""),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.trace, "trace", "testdata/azure-llm-2023-code.csv",
		"the traffic: a trace `FILE` as replay reads it")
	flags.StringVar(&f.file, "limits", "examples/demo.yaml", "the server's limits `FILE`")
	flags.StringVar(&f.listen, "listen", connect.DefaultListen,
		"listen on `HOST:PORT`; port 0 takes a free one")
	flags.Int64Var(&f.speed, "speed", 120, "`N` times as fast as recorded")
	flags.IntVar(&f.entities, "entities", 4, "spread the calls over `N` tenants")
	flags.Uint64Var(&f.seed, "seed", 1, "the number `S` decides who makes which call")
	flags.Var(&f.latency, "latency", "how long calls last")
	flags.BoolVar(&f.exit, "exit", false, "end once the lines are printed, not by an interrupt")
	cmd.RunE = console.RunE(func(cmd *cobra.Command, _ []string) error {
		if err := checkDemoListen(cmd, f.listen); err != nil {
			return err
		}
		f.target.Server = connect.DefaultServer // only for the check: the address is known later
		if err := f.check(cmd, f.trace); err != nil {
			return err
		}
		err := runDemo(cmd.Context(), a, f, cmd.Flags().Changed("listen"))
		switch _, unfit := errors.AsType[replay.UnfitError](err); {
		case unfit:
			return console.UsageError(cmd, "%w", err)
		case listens(err):
			return fmt.Errorf("%w (--listen names another address)", err)
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%w (run the demo in a clone of weir, or name files with --trace "+
				"and --limits)", err)
		}
		return err
	})
	return cmd
}

// runDemo serves, plays, and stays up. It begins with what may be wrong with the files.
func runDemo(ctx context.Context, a *console.App, f *demoFlags, fixed bool) (err error) {
	trace, err := readTrace(ctx, a, f.trace, &f.read)
	if err != nil {
		return err
	}
	if _, err := connect.ReadLimits(ctx, a, f.file); err != nil {
		return err
	}
	s, err := startDemoServer(ctx, a, f, fixed)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	f.target.Server = s.url
	client, err := httpapi.NewClient(s.url, nil)
	if err != nil {
		return err
	}
	defer client.Close() //nolint:errcheck // It only drops connections.

	d := &demoRun{app: a, flags: f, server: s, client: client}
	if err := d.check(ctx); err != nil {
		return err
	}
	if err := d.play(ctx, trace); err != nil {
		return err
	}
	return d.keepRunning(ctx)
}

// demoRun is a demo whose server is up.
type demoRun struct {
	app    *console.App
	flags  *demoFlags
	server *demoServer
	client *httpapi.Client
}

// play plays the trace, and prints what came of it.
func (d *demoRun) play(ctx context.Context, trace *trace.Trace) error {
	f := d.flags
	w := f.workload(trace)
	out, every := live.NewOutput(d.app, &live.Lines{To: d.app.Streams.Out})
	d.printf("serving %s on %s\n", f.file, d.server.url)
	d.printf("sending it %s of %s, %s times as fast as recorded\n\n",
		text.Plural(w.Calls(), "call", "calls"), f.trace, text.FormatInt(f.speed))
	played, err := f.play(ctx, d.client, w, &liveOptions{output: out, every: every, noteFirsts: true})
	if played != nil {
		var b bytes.Buffer
		(&report.Result{Report: played}).Table(&b, chartOptions(d.app))
		d.printf("\n%s", b.String())
	}
	return err
}

// printf prints to standard output. Who closed it has seen enough, and is not told so again and again.
func (d *demoRun) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(d.app.Streams.Out, format, args...)
}

// demoShutdown is how long the demo's server waits for what is under way.
const demoShutdown = 10 * time.Second

// demoServer is a server in this process.
type demoServer struct {
	url string
	end context.CancelFunc
	err chan error // one, when it has ended
}

// startDemoServer serves the demo's limits from memory. Where the usual port is taken, and nobody
// asked for it, it takes a free one.
func startDemoServer(ctx context.Context, a *console.App, f *demoFlags, fixed bool) (*demoServer, error) {
	console.IgnoreBrokenPipes()
	s, err := newDemoServer(ctx, a, f, f.listen)
	if e, ok := errors.AsType[*weir.Error](err); ok && e.Field == "listen" && !fixed {
		s, err = newDemoServer(ctx, a, f, "127.0.0.1:0")
	}
	if err != nil {
		return nil, err
	}
	// The server outlives ctx: what is under way is settled there.
	ctx, end := context.WithCancel(context.WithoutCancel(ctx))
	d := &demoServer{url: s.URL(), end: end, err: make(chan error, 1)}
	go func() { d.err <- s.Run(ctx) }()
	return d, nil
}

func newDemoServer(
	ctx context.Context, a *console.App, f *demoFlags, address string,
) (*server.Server, error) {
	store, err := memory.Open(nil)
	if err != nil {
		return nil, err
	}
	errorsOnly := &slog.HandlerOptions{Level: slog.LevelError}
	return server.New(ctx, store, &server.Options{
		Listen: address, LimitsFile: f.file, Version: console.BuildVersion().Version, Limiter: demoLimiter(),
		// Nobody else depends on it, so nobody needs time to look elsewhere.
		Bounds: server.Bounds{ShutdownDelay: time.Millisecond, ShutdownTimeout: demoShutdown},
		// The file may be changed while the demo is up, and may have mistakes then.
		Logger: slog.New(slog.NewTextHandler(a.Streams.Err, errorsOnly)),
	})
}

// demoLimiter tunes the demo's limiter: the line that settles a lease may be pasted again much
// later than it was first.
func demoLimiter() *weir.Options { return &weir.Options{LeaseMemory: 30 * 24 * time.Hour} }

// stop ends the server, and returns what it ended with.
func (d *demoServer) stop() error {
	d.end()
	return <-d.err
}
