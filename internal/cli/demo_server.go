package cli

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/server"
	"github.com/weir-limiter/weir/memory"
)

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
