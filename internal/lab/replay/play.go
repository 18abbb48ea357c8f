package replay

import (
	"context"
	"math/big"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
)

// MaxSpeed bounds how much faster than recorded a trace is played.
const MaxSpeed = 1_000_000

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
	// Default: none.
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
	of, err := bindWorkload(ctx, s, w)
	if err != nil {
		return nil, err
	}
	p, err := newLivePlayer(s, of, max(o.Speed, 1))
	if err != nil {
		return nil, err
	}
	if p.estimates, err = newEstimates(o.Estimate, len(of.payers)); err != nil {
		return nil, err
	}
	began := time.Now()
	c := newCounters(of, timeRange{began.UnixMilli(), began.Add(p.lasts()).UnixMilli()}, nil)
	p.watchers = slices.Concat(c.watchers(), o.Watchers)
	if p.estimates != nil {
		p.watchers = append(p.watchers, p.estimates)
	}
	stop := func() {}
	if o.Watch != nil {
		stop = o.Watch(newView(p, c.tally))
	}
	began = time.Now()
	err = p.play(ctx)
	ended := time.Now()
	stop()
	r := of.newReport(c, p.estimates, timeRange{began.UnixMilli(), ended.UnixMilli()})
	r.Live, r.Estimate = p.count.report(p.speed), o.Estimate.String()
	r.Speed = NewSpeed(p.count.operations, ended.Sub(began))
	return r, err
}

// rateOver is the time over which calls a second are averaged.
const rateOver = 2 * time.Second

// View looks at a replay that runs. It is for one goroutine.
type View struct {
	player *livePlayer
	tally  *callCounts
	total  int64

	rows   []*limitRow
	known  int // limits in rows
	denied []int64
	past   []sample
}

// sample is how many calls had been answered, with a denial or an error too, at an instant.
type sample struct {
	at   time.Time
	done int64
}

// State is what there was to see at an instant.
type State struct {
	Done, Total              int64 // calls
	PerSecond                int64 // calls that were answered lately
	Late                     int64 // calls that were sent late
	Admitted, Denied, Errors int64
	Left                     time.Duration // until the last call is sent, as planned
	Rows                     []StateRow
}

// StateRow is one row of a report's limits: how much is in use, of how much.
type StateRow struct {
	// Which row it is, and what it admitted and denied.
	*LimitReport

	InUse, Capacity *big.Int
	// Denies is true where the limit has denied something since the look before.
	Denies bool
}

func newView(p *livePlayer, t *callCounts) *View {
	return &View{player: p, tally: t, total: int64(len(p.calls))}
}

// Take looks at the replay.
func (v *View) Take(now time.Time) *State {
	v.player.mu.Lock()
	defer v.player.mu.Unlock()
	totals := &v.tally.totals
	s := &State{
		Done: totals.calls, Total: v.total, Late: v.player.count.late, Admitted: totals.admitted,
		Denied: totals.denied, Errors: totals.faults,
		Left: max(v.player.start.Add(v.player.lasts()).Sub(now), 0),
	}
	s.PerSecond = v.rate(sample{now, s.Done})
	if v.known != len(v.tally.order) {
		v.rows, v.known = limitRows(v.tally), len(v.tally.order)
		v.denied = append(v.denied, make([]int64, max(len(v.rows)-len(v.denied), 0))...)
	}
	for i, r := range v.rows {
		row := r.state()
		row.Denies = row.Denied > v.denied[i]
		v.denied[i] = row.Denied
		s.Rows = append(s.Rows, row)
	}
	return s
}

// rate returns how many calls a second were answered lately.
func (v *View) rate(now sample) int64 {
	if v.past == nil {
		v.past = []sample{{v.player.start, 0}}
	}
	for len(v.past) > 1 && now.at.Sub(v.past[1].at) >= rateOver {
		v.past = v.past[1:]
	}
	first := v.past[0]
	v.past = append(v.past, now)
	return NewSpeed(now.done-first.done, now.at.Sub(first.at)).OperationsPerSecond
}

// state adds up what is known of a row.
func (r *limitRow) state() StateRow {
	row := StateRow{LimitReport: r.newReport(), InUse: new(big.Int), Capacity: new(big.Int)}
	for _, c := range r.counts {
		row.Admitted += c.admitted
		row.Denied += c.denied
		capacity, available := big.NewInt(c.capacity), big.NewInt(c.available)
		if c.capacity == 0 { // no answer has named it yet, so nothing is known to be in use
			capacity.SetInt64(c.limit.Capacity)
			available.SetInt64(c.limit.Capacity)
		}
		row.Capacity.Add(row.Capacity, capacity)
		row.InUse.Add(row.InUse, capacity.Sub(capacity, available))
	}
	return row
}
