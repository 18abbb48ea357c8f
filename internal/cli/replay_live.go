package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/lab/replay"
)

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
	out, every := newLiveOutput(a, nil)
	play := &livePlay{output: out, every: every, watchers: watchers}
	r, err := f.play(ctx, server.Service, f.workload(t), play)
	return r, f.target.Hint(err)
}

// livePlay says how a replay is shown.
type livePlay struct {
	output liveOutput // nil for not at all
	every  time.Duration
	// noteFirsts makes the first decisions appear as lines.
	noteFirsts bool
	// watchers are told of every event. Default: none.
	watchers []replay.Watcher
}

// newLiveOutput returns the terminal to show a replay on, otherwise lines on a writer, if there is
// one.
func newLiveOutput(a *console.App, plain *lines) (liveOutput, time.Duration) {
	if t := a.Terminal(); t != nil {
		return newScreen(t), pictureEvery
	}
	if plain != nil {
		return plain, lineEvery
	}
	return nil, 0
}

// play plays a workload against a service.
func (f *replayFlags) play(
	ctx context.Context, service weir.Service, w *replay.Workload, o *livePlay,
) (*replay.Report, error) {
	p := &replay.PlayOptions{Speed: f.speed, Estimate: f.estimate, Watchers: o.watchers}
	if o.output != nil {
		p.Watch = func(v *replay.View) (stop func()) { return watchLive(v, o.output, o.every) }
		if o.noteFirsts {
			p.Watchers = append(p.Watchers, &firsts{out: o.output})
		}
	}
	r, err := replay.Play(ctx, service, w, p)
	if r != nil {
		r.Live.Server = f.target.Server
		r.Live.Stopped = strings.Join(console.ComplaintLines(err), "; ")
	}
	return r, err
}
