package loadtest

import (
	"context"
	"math/bits"
	"sync"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/lab/pace"
)

const (
	// drainTime is the time after its end for which an open loop still sends calls that were due
	// before.
	drainTime = 10 * time.Second
	// settleTime bounds the time that requests in flight have to end after the last one was sent.
	settleTime = 10 * time.Second
)

// loop is a run that has begun.
type loop struct {
	*Runner

	calls *generator
	start time.Time
	// semaphore has an element for each request of an open loop that is in flight; nil in a closed
	// loop.
	semaphore pace.Semaphore
}

// run makes the calls and settles all of them. It returns the time from the start until the run was
// stopped or came to its end.
func (l *loop) run(ctx context.Context) time.Duration {
	end := l.record.to
	last := end
	if l.options.Rate > 0 {
		last = end.Add(drainTime)
		l.semaphore = pace.NewSemaphore(l.options.Concurrency)
	}
	// No call begins once sending has ended, and no call thinks once thinking has ended. Requests go
	// on, because dropping one would leave open whether it holds a lease.
	sending, cancelSending := context.WithDeadline(ctx, last)
	defer cancelSending()
	thinking, endThinking := context.WithCancel(sending)
	defer endThinking()
	work, finish := context.WithCancel(context.WithoutCancel(ctx))
	defer finish()
	defer context.AfterFunc(sending, func() { time.AfterFunc(settleTime, finish) })()

	stopped := end.Sub(l.start)
	noted := make(chan struct{})
	unnoted := context.AfterFunc(ctx, func() {
		now := time.Now()
		stopped = now.Sub(l.start)
		l.record.stop(now)
		close(noted)
	})
	if l.semaphore != nil {
		l.runOpenLoop(sending, thinking, work, end, endThinking)
	} else {
		l.runClosedLoop(sending, thinking, work, end)
	}
	if !unnoted() {
		<-noted
	}
	l.cancelLeftovers(ctx)
	return stopped
}

// runClosedLoop lets each caller make one call after the other.
func (l *loop) runClosedLoop(sending, thinking, work context.Context, end time.Time) {
	var callers sync.WaitGroup
	for range l.options.Concurrency {
		callers.Go(func() {
			for sending.Err() == nil {
				now := time.Now()
				if !now.Before(end) {
					return // the deadline's timer may be late
				}
				c := l.calls.next()
				l.record.begun(now, now)
				l.call(thinking, work, c, now)
			}
		})
	}
	callers.Wait()
}

// runOpenLoop begins each call at its time, as soon as a request may be sent. Calls think until all
// calls have begun and the run ends: settling early would delay the calls still to come.
func (l *loop) runOpenLoop(sending, thinking, work context.Context, end time.Time, endThinking func()) {
	var calls sync.WaitGroup
	for i := range instantsBefore(end.Sub(l.start), l.options.Rate) {
		due := l.start.Add(startOf(i, l.options.Rate))
		if !pace.Until(sending, due) || !l.semaphore.Acquire(sending) {
			break
		}
		c := l.calls.next()
		l.record.begun(due, time.Now())
		calls.Go(func() { l.call(thinking, work, c, due) })
	}
	pace.Until(sending, end)
	endThinking()
	calls.Wait()
}

// call makes one call. In an open loop it has acquired the semaphore.
func (l *loop) call(thinking, work context.Context, c *call, due time.Time) {
	at := timestamps{due: due, sent: time.Now()}
	lease, err := l.service.Reserve(work, c.request)
	at.answered = time.Now()
	l.semaphore.Release()
	if !l.record.addReserved(at, c, lease, err) {
		return
	}
	due = at.answered.Add(c.think)
	if !pace.Until(thinking, due) {
		due = time.Now()
	}
	l.settle(work, c, lease.ID, due)
}

// settle ends the lease of a call.
func (l *loop) settle(work context.Context, c *call, id weir.LeaseID, due time.Time) {
	verb := Complete
	if c.cancels {
		verb = Cancel
	}
	if !l.semaphore.Acquire(work) {
		now := time.Now()
		l.record.addSettled(timestamps{due, now, now}, verb, id, work.Err())
		return
	}
	at := timestamps{due: due, sent: time.Now()}
	if l.semaphore == nil {
		at.due = at.sent // in a closed loop a request is due when its caller is ready
	}
	var err error
	if c.cancels {
		_, err = l.service.Cancel(work, id)
	} else {
		var totals []weir.Costs
		if len(c.actuals) > 0 {
			totals = []weir.Costs{c.actuals}
		}
		_, err = l.service.Complete(work, id, totals)
	}
	at.answered = time.Now()
	l.semaphore.Release()
	l.record.addSettled(at, verb, id, err)
}

// startOf returns the time at which the i-th call begins, counting from 0.
func startOf(i, rate int64) time.Duration {
	const second = int64(time.Second)
	return time.Duration(i/rate*second + i%rate*second/rate)
}

// instantsBefore returns the number of calls that begin before d.
func instantsBefore(d time.Duration, rate int64) int64 {
	hi, lo := bits.Mul64(uint64(max(d, 0)), uint64(rate))
	n, rest := bits.Div64(hi, lo, uint64(time.Second)) // a million calls a second fit for a day
	if rest > 0 {
		n++
	}
	return int64(n)
}

// cancelLeftovers cancels the leases whose settlement failed, and those that a reservation without
// an answer may have made. It gives up after settleTime.
func (l *loop) cancelLeftovers(ctx context.Context) {
	r := l.record
	r.mu.Lock()
	leftovers := r.leftovers
	r.leftovers = nil
	r.mu.Unlock()
	if len(leftovers) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	leases := make(chan leftover)
	var workers sync.WaitGroup
	for range min(l.options.Concurrency, len(leftovers)) {
		workers.Go(func() {
			for lease := range leases {
				_, err := l.service.Cancel(ctx, lease.id)
				r.addCancelled(lease, err)
			}
		})
	}
	for _, lease := range leftovers {
		leases <- lease
	}
	close(leases)
	workers.Wait()
}
