package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/lab/replay"
)

// replayLive plays a trace against a server and reports what became of it, also where it was
// stopped.
func (a *app) replayLive(
	cmd *cobra.Command, trace string, f *replayFlags, watchers ...replay.Watcher,
) (*replay.Report, error) {
	ctx, stop := untilHangup(cmd.Context())
	defer stop()
	outlivePipes() // nobody may be left to read the report, and yet leases are settled
	server, err := a.dial(cmd, &f.target)
	if err != nil {
		return nil, err
	}
	defer server.close() //nolint:errcheck // It only drops connections.
	t, err := a.readTrace(ctx, trace, &f.read)
	if err != nil {
		return nil, err
	}
	out, every := a.liveOutput(nil)
	play := &livePlay{output: out, every: every, watchers: watchers}
	r, err := f.play(ctx, server.service, f.workload(t), play)
	return r, f.target.advise(err)
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

// liveOutput returns the terminal to show a replay on, otherwise lines on a writer, if there is
// one.
func (a *app) liveOutput(plain *lines) (liveOutput, time.Duration) {
	if t := a.terminal(); t != nil {
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
		r.Live.Server = f.target.server
		r.Live.Stopped = strings.Join(complaints(err), "; ")
	}
	return r, err
}
