package replay

import (
	"context"
	"time"

	"github.com/weir-limiter/weir"
)

// MaxSpeed bounds how much faster than recorded a trace is played.
const MaxSpeed = 1_000_000

// LateBy is how much later than planned a call may be sent without being counted.
const LateBy = 20 * time.Millisecond

// PlayOptions say how a workload is played.
type PlayOptions struct {
	// Speed is how many times as fast as recorded it is played, at most MaxSpeed. Default: 1.
	Speed int64
	// Estimate says how many tokens a call is taken to generate when it reserves. Default: what it
	// did generate.
	Estimate Estimate
	// Watchers are told of every event. Default: none.
	Watchers []Watcher
	// Watch is called when the first call is about to be sent, and what it returns when all is over.
	// Default: nobody watches.
	Watch func(*View) (stop func())
}

// Play replays a workload against a service in real time, divided by a speed, and reports what
// became of it. Each call is sent at its instant, whatever became of the others, and settled when
// it ends. The service has limits of its own, whose time is not divided.
//
// It stops sending when ctx ends, or when a hundred requests in a row have failed, and then settles
// at once what is under way. There is a report then too, beside the error. As with [Run], an
// [UnfitError] says that workload and limits do not go together.
func Play(
	ctx context.Context, s weir.Service, w *Workload, o *PlayOptions,
) (*Report, error) {
	if o == nil {
		o = &PlayOptions{}
	}
	of, err := newPlan(ctx, s, w)
	if err != nil {
		return nil, err
	}
	p, err := newPlayer(s, of, max(o.Speed, 1))
	if err != nil {
		return nil, err
	}
	began := time.Now()
	planned := span{began.UnixMilli(), began.Add(p.lasts()).UnixMilli()}
	c, err := newCounters(of, o.Estimate, planned)
	if err != nil {
		return nil, err
	}
	p.estimates, p.watchers = c.estimates, c.watchers(o.Watchers)
	stop := func() {}
	if o.Watch != nil {
		stop = o.Watch(newView(p, c.tally))
	}
	began = time.Now()
	err = p.play(ctx)
	ended := time.Now()
	stop()
	r := of.newReport(c, span{began.UnixMilli(), ended.UnixMilli()})
	r.Live = p.count.report(p.speed)
	r.Speed = NewSpeed(p.count.operations, ended.Sub(began))
	return r, err
}
