package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/examples"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/lab/live"
	"github.com/weir-limiter/weir/internal/lab/replay"
	"github.com/weir-limiter/weir/internal/lab/report"
	"github.com/weir-limiter/weir/internal/lab/trace"
	"github.com/weir-limiter/weir/internal/server"
	"github.com/weir-limiter/weir/internal/text"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/manifest"
	"github.com/weir-limiter/weir/memory"
)

const demoHelp = `Show weir at work: start a server on this machine, send it an hour of
recorded LLM traffic in half a minute, and show what its limits admit and deny. On a terminal
the command draws a table that changes as the calls come; otherwise it prints a line every two
seconds.

Afterwards the server stays up, with a page to look at and three lines to paste into another
terminal: a call that is admitted, one that is denied, and one that is settled. They work as
long as it is up. An interrupt (Ctrl-C) ends it.

The traffic and its limits are built in. The limits are for time that passes 120 times as fast;
the lines to paste are about the entity "you" in them, which limits of your own need too.`

// demoFlags are the flags of `weir demo`.
type demoFlags struct {
	replayFlags

	trace  string
	file   string // of the limits; the replay itself asks the server
	listen string
	exit   bool
	// builtInTrace and builtInLimits are true if the files are those of package examples.
	builtInTrace, builtInLimits bool
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
	flags.StringVar(&f.trace, "trace", examples.TraceName,
		"the traffic: a trace `FILE` as replay reads it; the default is built in")
	flags.StringVar(&f.file, "limits", examples.LimitsName,
		"the server's limits `FILE`; the default is built in")
	flags.StringVar(&f.listen, "listen", connect.DefaultListen,
		"listen on `HOST:PORT`; port 0 takes a free one")
	flags.Int64Var(&f.speed, "speed", 120, "`N` times as fast as recorded")
	flags.IntVar(&f.entities, "entities", 4, "spread the calls over `N` tenants")
	flags.Uint64Var(&f.seed, "seed", 1, "spread the calls as in an earlier run with seed `S`")
	flags.Var(&f.latency, "latency", "how long calls last")
	flags.BoolVar(&f.exit, "exit", false, "end once the lines are printed, not by an interrupt")
	cmd.RunE = console.RunE(func(cmd *cobra.Command, _ []string) error {
		if err := checkDemoListen(cmd, f.listen); err != nil {
			return err
		}
		f.builtInTrace, f.builtInLimits = !cmd.Flags().Changed("trace"), !cmd.Flags().Changed("limits")
		f.target.Server = connect.DefaultServer // for the check only; the address is known later
		if err := f.check(cmd, f.trace); err != nil {
			return err
		}
		err := runDemo(cmd.Context(), a, f, cmd.Flags().Changed("listen"))
		switch _, unfit := errors.AsType[replay.UnfitError](err); {
		case unfit:
			return console.UsageError(cmd, "%w", err)
		case listenFailed(err):
			return fmt.Errorf("%w (--listen names another address)", err)
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%w (without --trace and --limits the demo has its own)", err)
		}
		return err
	})
	return cmd
}

// runDemo serves, plays, and stays up. It reads the files first, because they may have mistakes.
func runDemo(ctx context.Context, a *console.App, f *demoFlags, fixed bool) (err error) {
	trace, err := f.readTrace(ctx, a)
	if err != nil {
		return err
	}
	limits, err := f.readLimits(ctx, a)
	if err != nil {
		return err
	}
	s, err := startDemoServer(ctx, a, f, limits.Definitions, fixed)
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

func (f *demoFlags) readTrace(ctx context.Context, a *console.App) (*trace.Trace, error) {
	if f.builtInTrace {
		return trace.Read(ctx, f.trace, bytes.NewReader(examples.Trace), &f.read)
	}
	return readTrace(ctx, a, f.trace, &f.read)
}

func (f *demoFlags) readLimits(ctx context.Context, a *console.App) (*manifest.Manifest, error) {
	if f.builtInLimits {
		return manifest.Parse(f.file, examples.Limits)
	}
	return connect.ReadLimits(ctx, a, f.file)
}

// demoRun is a demo whose server is up.
type demoRun struct {
	app    *console.App
	flags  *demoFlags
	server *demoServer
	client *httpapi.Client
}

// play plays the trace and prints the report.
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

// printf prints to standard output. Errors are ignored: a closed output does not end the demo.
func (d *demoRun) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(d.app.Streams.Out, format, args...)
}

// demoShutdown is how long the demo's server waits for requests under way.
const demoShutdown = 10 * time.Second

// demoServer is a server in this process.
type demoServer struct {
	url string
	end context.CancelFunc
	err chan error // receives one error when the server has ended
}

// startDemoServer serves the demo's limits from memory. If the default port is taken and no flag
// asked for it, it takes a free one.
func startDemoServer(
	ctx context.Context, a *console.App, f *demoFlags, limits *weir.Definitions, fixed bool,
) (*demoServer, error) {
	console.IgnoreBrokenPipes()
	file := f.file
	if f.builtInLimits {
		file = ""
	}
	open := func(address string) (*server.Server, error) {
		store, err := memory.Open(&memory.Options{Definitions: limits})
		if err != nil {
			return nil, err
		}
		errorsOnly := &slog.HandlerOptions{Level: slog.LevelError}
		return server.New(ctx, store, &server.Options{
			Listen: address, LimitsFile: file, Version: console.BuildVersion().Version, Limiter: demoLimiter(),
			// No client needs time to find another server, because there is only this one.
			Bounds: server.Bounds{ShutdownDelay: time.Millisecond, ShutdownTimeout: demoShutdown},
			// The file may be changed while the demo is up, and have mistakes then.
			Logger: slog.New(slog.NewTextHandler(a.Streams.Err, errorsOnly)),
		})
	}
	s, err := open(f.listen)
	if !fixed && listenFailed(err) {
		s, err = open("127.0.0.1:0")
	}
	if err != nil {
		return nil, err
	}
	// The server outlives ctx, so that requests under way can be settled.
	ctx, end := context.WithCancel(context.WithoutCancel(ctx))
	d := &demoServer{url: s.URL(), end: end, err: make(chan error, 1)}
	go func() { d.err <- s.Run(ctx) }()
	return d, nil
}

// demoLimiter remembers leases for a month, because the line that settles one may be pasted again
// much later.
func demoLimiter() *limiter.Options { return &limiter.Options{LeaseMemory: 30 * 24 * time.Hour} }

// stop ends the server, and returns the error with which it ended.
func (d *demoServer) stop() error {
	d.end()
	return <-d.err
}

// The entity that the printed commands are about, and the resource on which it may do one thing at
// a time.
const (
	demoEntity = "you"
	demoSingle = "one-at-a-time"
)

// keepRunning prints the commands to paste and keeps them working until ctx ends. It needs two
// leases: one holds the only slot, so that a call is denied, and the other is there to be settled.
// weir.Do extends them, and gives them back in the end unless the user has settled them.
func (d *demoRun) keepRunning(ctx context.Context) error {
	printed := false
	held := &weir.Request{Entity: demoEntity, Resource: demoSingle, Costs: weir.Costs{"parallel": 1}}
	spare := &weir.Request{
		Entity: demoEntity, Resource: d.flags.read.Resource, Costs: weir.Costs{"rpm": 1, "tpm": 2000},
	}
	err := weir.Do(ctx, d.client, held, func(ctx context.Context, _ *weir.Lease) error {
		return weir.Do(ctx, d.client, spare, func(ctx context.Context, l *weir.Lease) error {
			printed = true
			d.printCommands(l.ID)
			if d.flags.exit {
				return nil
			}
			select {
			case <-ctx.Done():
			case err := <-d.server.err:
				d.server.err <- err // stop reads it too
			}
			return nil
		})
	})
	if printed {
		return nil // if a lease has ended early, the user has settled it
	}
	return fmt.Errorf("the example calls need the entity %q as in examples/demo.yaml: %w",
		demoEntity, err)
}

// printCommands prints the commands to paste.
func (d *demoRun) printCommands(spare weir.LeaseID) {
	if d.flags.exit {
		d.printf("\nThe server ends now. Without --exit it stays up, for lines like these:\n")
	} else {
		d.printf("\nThe server is still up: %s/ is its page. Ctrl-C ends it.\n", d.server.url)
	}
	reserve := `{"entity":"` + demoEntity + `","resource":"%s","costs":{%s}}`
	for _, l := range [][3]string{
		{"admitted", "reserve", fmt.Sprintf(reserve, d.flags.read.Resource, `"rpm":1,"tpm":500`)},
		{
			"denied: the demo itself has the only slot, and keeps it",
			"reserve", fmt.Sprintf(reserve, demoSingle, `"parallel":1`),
		},
		{
			"settled: 2,000 tokens were reserved for a call, and it used 812",
			"complete", fmt.Sprintf(`{"lease_id":"%s","actuals":{"tpm":812}}`, spare),
		},
	} {
		d.printf("\n# %s\ncurl -i %s/v1/%s -H 'Content-Type: application/json' -d '%s'\n",
			l[0], d.server.url, l[1], l[2])
	}
}

// checkDemoListen refuses addresses other than loopback. The demo has no bearer tokens, so every
// client that reaches it has the role admin.
func checkDemoListen(cmd *cobra.Command, listen string) error {
	refuse := func(reason string) error {
		return console.UsageError(cmd, "%w", &weir.Error{
			Code: weir.Invalid, Field: "listen", Value: listen, Reason: reason,
		})
	}
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return refuse("must be host:port, such as " + connect.DefaultListen)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return refuse("must have a port from 0 to 65535")
	}
	address, err := netip.ParseAddr(host)
	if !strings.EqualFold(host, "localhost") && (err != nil || !address.Unmap().IsLoopback()) {
		return refuse("must be a loopback address: in the demo every client is admin")
	}
	return nil
}

// listenFailed reports whether an error is about listening on an address.
func listenFailed(err error) bool {
	e, ok := errors.AsType[*weir.Error](err)
	return ok && e.Code == weir.Unavailable && e.Field == "listen"
}

// check returns an error, before anything is played, if the limits do not suit the commands to
// paste.
func (d *demoRun) check(ctx context.Context) error {
	for _, need := range []demoRequirement{
		{demoSingle, "parallel", weir.Concurrency, 1, 1},
		{d.flags.read.Resource, "rpm", "", 2, 0},
		{d.flags.read.Resource, "tpm", "", 2500, 0},
	} {
		e, err := d.client.Explain(ctx, demoEntity, need.resource)
		if err == nil {
			err = need.missing(e.Limits)
		}
		if err != nil {
			return fmt.Errorf("%s: the example calls need the entity %q as in examples/demo.yaml: %w",
				d.flags.file, demoEntity, err)
		}
	}
	return nil
}

// demoRequirement is a limit that the commands need.
type demoRequirement struct {
	resource, limit string
	kind            weir.Kind // empty for any
	least, most     int64     // bounds of the capacity; most is 0 for none
}

// missing returns an error unless the limit is among those of the entity.
func (n *demoRequirement) missing(limits []weir.Limit) error {
	reason := "is missing"
	if i := slices.IndexFunc(limits, func(l weir.Limit) bool { return l.Name == n.limit }); i >= 0 {
		switch l := &limits[i]; {
		case n.kind != "" && l.Kind != n.kind:
			reason = fmt.Sprintf("is a %s, and must be a %s", l.Kind, n.kind)
		case n.most > 0 && (l.Capacity > n.most || l.Shadow):
			reason = fmt.Sprintf("must deny a cost above %d", n.most)
		case l.Capacity < n.least:
			reason = fmt.Sprintf("its capacity is %d, and must be at least %d", l.Capacity, n.least)
		default:
			return nil
		}
	}
	return fmt.Errorf("limit %q on resource %q: %s", n.limit, n.resource, reason)
}
