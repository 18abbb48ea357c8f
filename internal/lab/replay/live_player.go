package replay

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weir-limiter/weir"
)

// LateBy is how much later than planned a call may be sent without being counted.
const LateBy = 20 * time.Millisecond

const (
	// MaxInFlight bounds the requests that wait for an answer at one time. Calls that run, between
	// their reservation and their settlement, are bounded by the trace alone.
	MaxInFlight = 256
	// maxInARow is how many requests may fail one after the other.
	maxInARow = 100
	// settleTime is how long what is under way gets to end once the replay has been stopped.
	settleTime = 10 * time.Second
	// maxPlay bounds how long a replay lasts.
	maxPlay = 30 * 24 * time.Hour
)

// livePlayer replays a workload in real time, divided by a speed. Each call is sent at its instant,
// whatever became of the others, and settled when it ends: its scaled latency after it was sent. So
// a slow server does not slow its callers down, it makes them late.
type livePlayer struct {
	*boundWorkload

	service weir.Service
	speed   int64
	// estimates are guarded by mu too.
	estimates *estimates

	start time.Time
	// underWay has an element for each request that waits for an answer.
	underWay chan struct{}
	stop     context.CancelCauseFunc

	// mu guards what follows. Watchers are called under it, one at a time.
	mu       sync.Mutex
	watchers watchers
	count    liveCount
	inARow   int
}

func newLivePlayer(service weir.Service, of *boundWorkload, speed int64) (*livePlayer, error) {
	p := &livePlayer{
		boundWorkload: of, service: service, speed: speed, start: time.Now(),
		underWay: make(chan struct{}, MaxInFlight),
	}
	p.count.errors = map[weir.Code]int64{}
	if span := of.calls[len(of.calls)-1].AtMS - of.calls[0].AtMS; span/speed > maxPlay.Milliseconds() {
		return nil, UnfitError("the replay would last more than 30 days; a higher --speed shortens it")
	}
	return p, nil
}

// play replays the whole workload. It stops sending when ctx ends, or when a hundred requests in a
// row have failed, and then settles at once what is under way. It returns when nothing is.
func (p *livePlayer) play(ctx context.Context) error {
	ctx, p.stop = context.WithCancelCause(ctx)
	defer p.stop(nil)
	// Requests outlive ctx: to drop one would leave open whether it holds a lease.
	work, finish := context.WithCancel(context.WithoutCancel(ctx))
	defer finish()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(settleTime, finish) })()

	p.mu.Lock()
	p.start = time.Now()
	p.mu.Unlock()
	var calls sync.WaitGroup
	for i := range p.calls {
		due := p.start.Add(p.scaled(p.calls[i].AtMS - p.calls[0].AtMS))
		if !sleepUntil(ctx, due) || !p.acquire(ctx) {
			break
		}
		sent := time.Now()
		a, err := p.sent(i, sent, sent.Sub(due))
		if err != nil {
			p.release()
			p.stop(err)
			break
		}
		calls.Go(func() { p.call(ctx, work, a) })
	}
	calls.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count.checkAnswered()
}

// scaled returns how long ms milliseconds of the trace last.
func (p *livePlayer) scaled(ms int64) time.Duration {
	const unit = int64(time.Millisecond)
	return time.Duration(ms/p.speed*unit + ms%p.speed*unit/p.speed)
}

// lasts is how long sending the calls is planned to take.
func (p *livePlayer) lasts() time.Duration {
	return p.scaled(p.calls[len(p.calls)-1].AtMS - p.calls[0].AtMS)
}

// liveAttempt is one call on its way, in real time.
type liveAttempt struct {
	*Attempt

	end time.Time
}

// call reserves for one call, lets it run and settles it. ctx ends the run, work the requests.
func (p *livePlayer) call(ctx, work context.Context, a *liveAttempt) {
	lease, err := p.service.Reserve(work, &weir.Request{
		Entity: a.Entity, Resource: a.Resource, Costs: a.Costs,
	})
	p.release()
	if !p.reserved(a.Attempt, lease, err) {
		return
	}
	sleepUntil(ctx, a.end) // stopped: what is left of the call is not waited for
	if !p.acquire(work) {
		p.settled(a.Attempt, work.Err())
		return
	}
	_, err = p.service.Complete(work, a.Lease, []weir.Costs{a.Actuals})
	p.release()
	p.settled(a.Attempt, err)
}

// acquire waits until one more request may be under way; false means that ctx ended first.
func (p *livePlayer) acquire(ctx context.Context) bool {
	select {
	case p.underWay <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (p *livePlayer) release() { <-p.underWay }

// sent returns what a call asks that is sent now, later than planned by behind.
func (p *livePlayer) sent(seq int, now time.Time, behind time.Duration) (*liveAttempt, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count.sent++
	p.count.lateMax = max(p.count.lateMax, behind)
	if behind > LateBy {
		p.count.late++
	}
	c := &p.calls[seq]
	a, err := p.attempt(seq, c.AtMS, p.estimates.output(p.payers[c.Caller], c))
	if err != nil {
		return nil, err
	}
	end := now.Add(p.scaled(a.EndMS - a.AtMS))
	a.AtMS, a.EndMS = now.UnixMilli(), end.UnixMilli()
	return &liveAttempt{a, end}, nil
}

// reserved takes the answer to a reservation, and reports whether the call goes ahead.
func (p *livePlayer) reserved(a *Attempt, lease *weir.Lease, err error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count.operations++
	v, err := newDecision(lease, err)
	if err != nil {
		v = &Decision{Err: p.failed("reserve", err)}
	} else {
		p.inARow = 0
		p.count.answered++
	}
	if v.Err != nil {
		p.count.errors[v.Err.Code]++
	}
	if v.degraded {
		p.count.degraded++
	}
	if v.Admitted() {
		a.Lease = lease.ID
	}
	if err := p.watchers.reserved(a, v); err != nil {
		p.stop(err)
	}
	return v.Admitted()
}

// settled takes the answer to a completion.
func (p *livePlayer) settled(a *Attempt, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count.operations++
	if err != nil {
		p.count.unsettled++
		_ = p.failed("complete", err) // it is noted
		return
	}
	p.inARow = 0
	if err := p.watchers.completed(a); err != nil {
		p.stop(err)
	}
}

// failed notes a request that failed, and ends the replay after too many of them in a row.
func (p *livePlayer) failed(verb string, err error) *weir.Error {
	fault, ok := errors.AsType[*weir.Error](err)
	if !ok {
		fault = &weir.Error{Code: weir.Unavailable, Err: err}
	}
	p.count.last = fmt.Errorf("%s: %w", verb, err)
	if p.inARow++; p.inARow >= maxInARow {
		p.stop(fmt.Errorf("gave up after %d errors in a row, the last one: %w", maxInARow, p.count.last))
	}
	return fault
}

// sleepUntil waits for an instant; false means that ctx has ended, before or meanwhile.
func sleepUntil(ctx context.Context, at time.Time) bool {
	if left := time.Until(at); left > 0 {
		timer := time.NewTimer(left)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return ctx.Err() == nil
}

// liveCount counts what only a replay in real time has.
type liveCount struct {
	// sent and answered are calls; a denial is an answer, an error is none.
	sent, answered int64
	// operations are requests that have ended: reservations and completions.
	operations int64
	// late calls were sent more than LateBy after their instant; lateMax is the longest delay.
	late    int64
	lateMax time.Duration
	// errors are reservations that got neither a lease nor a denial, by code.
	errors map[weir.Code]int64
	// unsettled leases could not be completed; degraded ones were never charged.
	unsettled, degraded int64
	// last is the latest error of a request; nil without any.
	last error
}

// report is the part of a report that only a replay in real time has.
func (c *liveCount) report(speed int64) *LiveReport {
	r := &LiveReport{
		Speed: speed, Sent: c.sent, Late: c.late, LateMaxMS: c.lateMax.Milliseconds(),
		Errors: map[string]int64{}, Unsettled: c.unsettled, Degraded: c.degraded,
	}
	for code, n := range c.errors {
		r.Errors[string(code)] = n
	}
	return r
}

// checkAnswered returns an error where there were calls and no answers.
func (c *liveCount) checkAnswered() error {
	if c.answered == 0 && c.last != nil {
		return fmt.Errorf("no call was answered: %w", c.last)
	}
	return nil
}
