package replay

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/lab/pace"
)

// LateBy is the delay up to which a call is not counted as late.
const LateBy = 20 * time.Millisecond

const (
	// MaxInFlight bounds the requests that wait for an answer at one time. The number of calls
	// between their reservation and their settlement is not bounded.
	MaxInFlight = 256
	// maxInARow is the number of requests in a row after whose failure the replay gives up.
	maxInARow = 100
	// settleTime bounds the time that requests in flight have to end after the replay was stopped.
	settleTime = 10 * time.Second
	// maxPlay bounds the duration of a replay.
	maxPlay = 30 * 24 * time.Hour
)

// livePlayer plays a workload in real time, divided by a speed. Each call is sent at its time,
// whether or not earlier calls were answered, and settled its scaled duration after it was sent. So
// a slow server does not slow the callers down; it makes them late.
type livePlayer struct {
	*boundWorkload

	service weir.Service
	speed   int64
	start   time.Time
	// inFlight has an element for each request that waits for an answer.
	inFlight pace.Semaphore
	stop     context.CancelCauseFunc

	// mu guards what follows and the watchers' state. Watchers are told one event at a time.
	mu        sync.Mutex
	watchers  watchers
	estimates *estimates
	count     liveCount
	inARow    int   // failed requests after the last one that succeeded
	last      error // the latest failure
}

// liveCount counts what only a run in real time has.
type liveCount struct {
	LiveReport

	// answered counts calls; a denial is an answer, an error is none.
	answered int64
	// operations counts requests that have ended.
	operations int64
	lateMax    time.Duration
}

func newLivePlayer(service weir.Service, of *boundWorkload, speed int64) (*livePlayer, error) {
	p := &livePlayer{
		boundWorkload: of, service: service, speed: speed, start: time.Now(),
		inFlight: pace.NewSemaphore(MaxInFlight),
	}
	p.count.Speed, p.count.Errors = speed, map[string]int64{}
	if span := of.calls[len(of.calls)-1].AtMS - of.calls[0].AtMS; span/speed > maxPlay.Milliseconds() {
		return nil, UnfitError("the replay would last more than 30 days; a higher --speed shortens it")
	}
	return p, nil
}

// play plays the whole workload. It stops sending when ctx ends or too many requests in a row have
// failed, and then settles at once what is under way. It returns when nothing is.
func (p *livePlayer) play(ctx context.Context) error {
	ctx, p.stop = context.WithCancelCause(ctx)
	defer p.stop(nil)
	// Requests continue, because dropping one would leave open whether it holds a lease.
	work, finish := context.WithCancel(context.WithoutCancel(ctx))
	defer finish()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(settleTime, finish) })()

	p.mu.Lock()
	p.start = time.Now()
	p.mu.Unlock()
	var calls sync.WaitGroup
	for i := range p.calls {
		due := p.start.Add(p.scaled(p.calls[i].AtMS - p.calls[0].AtMS))
		if !pace.Until(ctx, due) || !p.inFlight.Acquire(ctx) {
			break
		}
		sent := time.Now()
		a, end, err := p.sent(i, sent, sent.Sub(due))
		if err != nil {
			p.inFlight.Release()
			p.stop(err)
			break
		}
		calls.Go(func() { p.call(ctx, work, a, end) })
	}
	calls.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.count.answered == 0 && p.last != nil {
		return fmt.Errorf("no call was answered: %w", p.last)
	}
	return nil
}

// scaled returns the real time that ms milliseconds of the trace take.
func (p *livePlayer) scaled(ms int64) time.Duration {
	const unit = int64(time.Millisecond)
	return time.Duration(ms/p.speed*unit + ms%p.speed*unit/p.speed)
}

// plannedTime returns the time that sending the calls is planned to take.
func (p *livePlayer) plannedTime() time.Duration {
	return p.scaled(p.calls[len(p.calls)-1].AtMS - p.calls[0].AtMS)
}

// call reserves for one call, waits for its end and settles it. If ctx ends it settles at once; if
// work ends it gives up.
func (p *livePlayer) call(ctx, work context.Context, a *Attempt, end time.Time) {
	lease, err := p.service.Reserve(work, &weir.Request{
		Entity: a.Entity, Resource: a.Resource, Costs: a.Costs,
	})
	p.inFlight.Release()
	if !p.reserved(a, lease, err) {
		return
	}
	pace.Until(ctx, end)
	if !p.inFlight.Acquire(work) {
		p.settled(a, work.Err())
		return
	}
	_, err = p.service.Complete(work, a.Lease, []weir.Costs{a.Actuals})
	p.inFlight.Release()
	p.settled(a, err)
}

// sent returns the attempt of a call that is sent now, and when the call ends. The argument behind
// says how much later than planned the call is sent.
func (p *livePlayer) sent(
	seq int, now time.Time, behind time.Duration,
) (a *Attempt, end time.Time, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count.Sent++
	p.count.lateMax = max(p.count.lateMax, behind)
	if behind > LateBy {
		p.count.Late++
	}
	c := &p.calls[seq]
	if a, err = p.attempt(seq, c.AtMS, p.estimates.output(p.payers[c.Caller], c)); err != nil {
		return nil, end, err
	}
	end = now.Add(p.scaled(a.EndMS - a.AtMS))
	a.AtMS, a.EndMS = now.UnixMilli(), end.UnixMilli()
	return a, end, nil
}

// reserved counts the answer to a reservation, and reports whether the call goes ahead.
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
		p.count.Errors[string(v.Err.Code)]++
	}
	if v.degraded {
		p.count.Degraded++
	}
	if v.Admitted() {
		a.Lease = lease.ID
	}
	if err := p.watchers.reserved(a, v); err != nil {
		p.stop(err)
	}
	return v.Admitted()
}

// settled counts the answer to a completion.
func (p *livePlayer) settled(a *Attempt, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count.operations++
	if err != nil {
		p.count.Unsettled++
		_ = p.failed("complete", err) // the error is in the counts
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
	p.last = fmt.Errorf("%s: %w", verb, err)
	if p.inARow++; p.inARow >= maxInARow {
		p.stop(fmt.Errorf("gave up after %d errors in a row, the last one: %w", maxInARow, p.last))
	}
	return fault
}
