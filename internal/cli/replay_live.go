package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
)

// replayLive plays a trace against a server and reports what became of it, also where it was
// stopped.
func (a *app) replayLive(cmd *cobra.Command, trace string, f *replayFlags) (*replayReport, error) {
	ctx, stop := untilHangup(cmd.Context())
	defer stop()
	outlivePipes() // nobody may be left to read the report, and yet leases are settled
	server, err := a.dial(cmd, &f.target)
	if err != nil {
		return nil, err
	}
	defer server.close() //nolint:errcheck // It only drops connections.
	calls, err := a.readTraceFile(ctx, trace)
	if err != nil {
		return nil, err
	}
	out, every := a.liveOutput(nil)
	play := &livePlay{output: out, every: every}
	r, err := f.play(ctx, server.service, f.workload(trace, calls), play)
	return r, f.target.advise(err)
}

// livePlay says how a replay is shown.
type livePlay struct {
	output liveOutput // nil for not at all
	every  time.Duration
	// noteFirsts makes the first decisions appear as lines.
	noteFirsts bool
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
	ctx context.Context, service weir.Service, w *workload, o *livePlay,
) (*replayReport, error) {
	if err := w.resolve(ctx, service); err != nil {
		return nil, err
	}
	p, err := newPlayer(service, w, f.speed)
	if err != nil {
		return nil, err
	}
	t := newTally(w.subjects)
	p.watchers = []watcher{t}
	if o.noteFirsts && o.output != nil {
		p.watchers = append(p.watchers, &firsts{out: o.output})
	}
	stop := func() {}
	if o.output != nil {
		stop = watchLive(newLiveView(p, t), o.output, o.every)
	}
	began := time.Now()
	err = p.play(ctx)
	ended := time.Now()
	stop()
	r := f.report(t, w, span{began.UnixMilli(), ended.UnixMilli()})
	r.Live = newLiveReport(p, f.target.server, err)
	r.Speed = newSpeedReport(p.count.operations, ended.Sub(began))
	return r, err
}
