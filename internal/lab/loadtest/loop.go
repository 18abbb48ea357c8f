package loadtest

import (
	"context"
	"errors"
	"math/bits"
	"sync"
	"time"

	"github.com/weir-limiter/weir"
)

// loop is a run that has begun.
type loop struct {
	*Runner

	calls *generator
	start time.Time
	// semaphore has an element for each request of an open loop that is under way; nil in a closed
	// one.
	semaphore chan struct{}
}

// end is when no call is due anymore.
func (l *loop) end() time.Time { return l.start.Add(l.options.Warmup + l.options.Duration) }

// run makes the calls, settles all of them, and returns how long after the start it was stopped, or
// came to its end.
func (l *loop) run(ctx context.Context) time.Duration {
	end := l.end()
	last := end
	if l.options.Rate > 0 {
		last = end.Add(drainTime)
		l.semaphore = make(chan struct{}, l.options.Concurrency)
	}
	// No call begins once sending has ended, and no lease is kept any longer once thinking has.
	// Requests outlive both: to drop one would leave open whether it holds a lease.
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
		l.runOpenLoop(sending, thinking, work, endThinking)
	} else {
		l.runClosedLoop(sending, thinking, work)
	}
	if !unnoted() {
		<-noted
	}
	l.cancelLeftovers(ctx)
	return stopped
}

// runClosedLoop lets each caller make one call after the other.
func (l *loop) runClosedLoop(sending, thinking, work context.Context) {
	end := l.end()
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

// runOpenLoop begins each call at its instant, as soon as a request may be sent. Leases are kept
// until all calls have begun, and to the end: what is settled before its time would delay those
// still to come.
func (l *loop) runOpenLoop(sending, thinking, work context.Context, endThinking func()) {
	var calls sync.WaitGroup
	for i := range instantsBefore(l.options.Warmup+l.options.Duration, l.options.Rate) {
		due := l.start.Add(startOf(i, l.options.Rate))
		if !sleepUntil(sending, due) || !l.acquire(sending) {
			break
		}
		c := l.calls.next()
		l.record.begun(due, time.Now())
		calls.Go(func() { l.call(thinking, work, c, due) })
	}
	sleepUntil(sending, l.end())
	endThinking()
	calls.Wait()
}

// call makes one call. It has a slot, where there are any.
func (l *loop) call(thinking, work context.Context, c *call, due time.Time) {
	at := timestamps{due: due, sent: time.Now()}
	lease, err := l.service.Reserve(work, c.request)
	at.answered = time.Now()
	l.release()
	if !l.record.addReserved(at, c, lease, err) {
		return
	}
	due = at.answered.Add(c.think)
	if !sleepUntil(thinking, due) {
		due = time.Now() // the rest is not waited for
	}
	l.settle(work, c, lease.ID, due)
}

// settle ends the lease of a call.
func (l *loop) settle(work context.Context, c *call, id weir.LeaseID, due time.Time) {
	verb := Complete
	if c.cancels {
		verb = Cancel
	}
	if !l.acquire(work) {
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
		_, err = l.service.Complete(work, id, c.totals())
	}
	at.answered = time.Now()
	l.release()
	l.record.addSettled(at, verb, id, err)
}

// totals are what a call has used.
func (c *call) totals() []weir.Costs {
	if len(c.actuals) == 0 {
		return nil
	}
	return []weir.Costs{c.actuals}
}

// acquire waits until one more request may be under way; false means that ctx ended first.
func (l *loop) acquire(ctx context.Context) bool {
	if l.semaphore == nil {
		return true
	}
	select {
	case l.semaphore <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (l *loop) release() {
	if l.semaphore != nil {
		<-l.semaphore
	}
}

// planned is how many calls of an open loop were to be measured, had it gone on until then.
func (l *loop) planned(stopped time.Duration) int64 {
	o := &l.options
	until := min(stopped, o.Warmup+o.Duration)
	return max(instantsBefore(until, o.Rate)-instantsBefore(o.Warmup, o.Rate), 0)
}

// startOf is when the i-th call begins, counting from 0.
func startOf(i, rate int64) time.Duration {
	const second = int64(time.Second)
	return time.Duration(i/rate*second + i%rate*second/rate)
}

// instantsBefore is how many calls begin before d.
func instantsBefore(d time.Duration, rate int64) int64 {
	hi, lo := bits.Mul64(uint64(max(d, 0)), uint64(rate))
	n, rest := bits.Div64(hi, lo, uint64(time.Second)) // a day of a million a second fits
	if rest > 0 {
		n++
	}
	return int64(n)
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

// cancelLeftovers cancels the leases whose settlement failed, and those that a reservation without
// an answer may have made. What is not known to have ended by then is left.
func (l *loop) cancelLeftovers(ctx context.Context) {
	r := l.record
	r.mu.Lock()
	unsure := r.doubtful
	r.doubtful = nil
	r.mu.Unlock()
	if len(unsure) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	leases := make(chan uncertainLease)
	var sweepers sync.WaitGroup
	for range min(l.options.Concurrency, len(unsure)) {
		sweepers.Go(func() {
			for lease := range leases {
				_, err := l.service.Cancel(ctx, lease.id)
				r.swept(lease, err)
			}
		})
	}
	for _, lease := range unsure {
		leases <- lease
	}
	close(leases)
	sweepers.Wait()
}

// swept takes the answer to a cancellation at the end.
func (r *resultCounts) swept(lease uncertainLease, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil || errors.Is(err, weir.Ended) || errors.Is(err, weir.Conflict):
		r.settled++
		if !lease.taken { // so it was made
			r.taken++
		}
	case errors.Is(err, weir.UnknownLease): // it was never made, or has expired
	default:
		r.left++
	}
}

// Run makes the calls and returns what it measured. What the service says of the mix beforehand (an
// unknown limit, a cost that can never fit, a caller it does not let in) is returned at once,
// without a report. Otherwise there is a report beside every error: a run ends early when ctx does,
// and after a hundred errors in a row. What is under way then is settled at once.
func (r *Runner) Run(ctx context.Context) (*Report, error) {
	templates, err := prepareTemplates(ctx, r.service, r.mix)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	start := time.Now()
	r.record.from = start.Add(r.options.Warmup)
	r.record.to = r.record.from.Add(r.options.Duration)
	r.record.giveUp = stop
	r.mu.Lock()
	r.start = start
	r.mu.Unlock()

	l := &loop{
		Runner: r, calls: newGenerator(templates, &r.options), start: start,
	}
	stopped := l.run(ctx)
	report := r.record.report()
	report.Options = r.options
	report.Elapsed = max(min(stopped, r.options.Warmup+r.options.Duration)-r.options.Warmup, 0)
	report.Served = max(report.Served, report.Elapsed)
	report.Planned, report.Unsent = report.Started, 0
	if r.options.Rate > 0 {
		report.Planned = l.planned(stopped)
		report.Unsent = max(report.Planned-report.Started, 0)
	}
	report.Stopped = context.Cause(ctx)
	return report, r.record.failure(report.Stopped)
}

// Progress is how far a run is.
type Progress struct {
	// Elapsed counts from the first call, of Total; both with the warm-up.
	Elapsed, Total time.Duration
	// Calls have begun; of those, the others have ended.
	Calls, Admitted, Denied, Failed int64
}

// Progress says how far the run is at now.
func (r *Runner) Progress(now time.Time) Progress {
	p := Progress{Total: r.options.Warmup + r.options.Duration}
	r.mu.Lock()
	start := r.start
	r.mu.Unlock()
	if !start.IsZero() {
		p.Elapsed = max(now.Sub(start), 0)
	}
	c := r.record
	c.mu.Lock()
	defer c.mu.Unlock()
	p.Calls, p.Admitted, p.Denied, p.Failed = c.calls, c.admitted, c.denied, c.failed
	return p
}
