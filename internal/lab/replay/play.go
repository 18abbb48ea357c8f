package replay

import (
	"context"
	"math/big"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
)

// MaxSpeed bounds the speed of a replay in real time.
const MaxSpeed = 1_000_000

// PlayOptions say how [Play] plays a workload.
type PlayOptions struct {
	// Speed is the factor by which the workload is played faster than recorded, at most MaxSpeed.
	// Default: 1.
	Speed int64
	// Estimate determines the output tokens that a call reserves. Default: the number that it
	// generated.
	Estimate Estimate
	// Watchers are told of every event. Default: none.
	Watchers []Watcher
	// Watch is called before the first call is sent, and the function it returns after the last one
	// has been settled. Default: none.
	Watch func(*View) (stop func())
}

// Play plays a workload against a service in real time, divided by a speed, and reports the results
// of its calls. Each call is sent at its time, whether or not earlier calls were answered, and
// settled when it ends. The service has limits of its own, whose time is not divided.
//
// Play stops sending when ctx ends, or when a hundred requests in a row have failed, and then
// settles all live leases at once. The error then comes with a report. As with [Run], an
// [UnfitError] says that the workload does not fit the limits.
func Play(ctx context.Context, s weir.Service, w *Workload, o *PlayOptions) (*Report, error) {
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
	c := newCounters(of, timeRange{began.UnixMilli(), began.Add(p.plannedTime()).UnixMilli()}, nil)
	p.watchers = slices.Concat(c.watchers(), o.Watchers)
	if p.estimates != nil {
		p.watchers = append(p.watchers, p.estimates)
	}
	stop := func() {}
	if o.Watch != nil {
		stop = o.Watch(&View{player: p, tally: c.tally})
	}
	began = time.Now()
	err = p.play(ctx)
	ended := time.Now()
	stop()
	r := of.newReport(c, p.estimates, timeRange{began.UnixMilli(), ended.UnixMilli()})
	r.Live, r.Estimate = &p.count.LiveReport, o.Estimate.String()
	r.Live.LateMaxMS = p.count.lateMax.Milliseconds()
	r.Speed = NewSpeed(p.count.operations, ended.Sub(began))
	return r, err
}

// rateOver is the time over which calls per second are averaged.
const rateOver = 2 * time.Second

// View observes a run in real time. Only one goroutine may use it.
type View struct {
	player *livePlayer
	tally  *callCounts

	rows   []*limitRow
	known  int     // limits in rows
	denied []int64 // by row, at the previous look
	past   []sample
}

// sample is the number of calls that had been decided at a time.
type sample struct {
	at   time.Time
	done int64
}

// State is the state of a run at one time.
type State struct {
	Done, Total              int64 // calls
	PerSecond                int64 // calls decided per second, lately
	Late                     int64 // calls that were sent late
	Admitted, Denied, Errors int64
	Left                     time.Duration // until the last call is sent, as planned
	Rows                     []StateRow
}

// StateRow has the units in use of one row of a report's limits.
type StateRow struct {
	// LimitReport names the row and counts what it admitted and denied.
	*LimitReport

	InUse, Capacity *big.Int
	// Denies reports whether the limit has denied a call after the previous look.
	Denies bool
}

// Take returns the current state of the run.
func (v *View) Take(now time.Time) *State {
	v.player.mu.Lock()
	defer v.player.mu.Unlock()
	totals := &v.tally.totals
	s := &State{
		Done: totals.Calls, Total: int64(len(v.player.calls)), Late: v.player.count.Late,
		Admitted: totals.Admitted, Denied: totals.Denied, Errors: totals.Errors,
		Left: max(v.player.start.Add(v.player.plannedTime()).Sub(now), 0),
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

// rate returns the number of calls per second that were decided lately.
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

// state adds up the limits of a row.
func (r *limitRow) state() StateRow {
	row := StateRow{LimitReport: r.newReport(), InUse: new(big.Int), Capacity: new(big.Int)}
	for _, c := range r.counts {
		row.Admitted += c.admitted
		row.Denied += c.denied
		capacity, available := big.NewInt(c.capacity), big.NewInt(c.available)
		if c.capacity == 0 { // no answer has named the limit yet, so no use of it is known
			capacity.SetInt64(c.limit.Capacity)
			available.SetInt64(c.limit.Capacity)
		}
		row.Capacity.Add(row.Capacity, capacity)
		row.InUse.Add(row.InUse, capacity.Sub(capacity, available))
	}
	return row
}
