package livetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
)

// ending is the way in which a caller ends its lease.
type ending int

const (
	complete  ending = iota // report what was reserved
	giveBack                // report nothing
	stay                    // hold it until all other callers have settled; then complete
	untilGone               // hold it until the caller goes away
)

// plan is the behaviour of one caller.
type plan struct {
	index int
	wave  *wave
	// aborts is set if the caller goes away after a time, by a deadline or without one.
	aborts, deadline bool
	after            time.Duration
	ending           ending
	work             time.Duration

	began time.Time
	// leased is the time that it took to get a lease, in nanoseconds; 0 without one.
	leased  atomic.Int64
	arrived sync.Once
}

// arrive ends the waits for the caller.
func (p *plan) arrive() { p.arrived.Do(p.wave.arriving.Done) }

// gone reports whether the caller went away while it had its lease.
func (p *plan) gone() bool { return p.ending == untilGone }

// wave is a group of concurrent callers.
type wave struct {
	plans    []*plan
	arriving sync.WaitGroup
	ended    sync.WaitGroup
	release  chan struct{}
	// kept counts the calls that took place, and staying those that have not ended.
	kept, staying atomic.Int64

	mu sync.Mutex
	figures
	failed []error
}

// plans draws the plans of n callers while reservations, or their answers, are held back for up to
// most.
func (w *world) plans(n int, most, usual time.Duration) *wave {
	v := &wave{release: make(chan struct{})}
	far := 4 * usual
	if w.network != direct {
		far = most + usual
	}
	for i := range n {
		p := &plan{index: i, wave: v, aborts: !w.oneIn(5), deadline: w.oneIn(2)}
		p.work = w.upTo(2 * usual)
		p.after = w.upTo(2 * usual)
		if w.oneIn(2) {
			p.after = w.upTo(far)
		}
		p.ending = []ending{complete, giveBack, complete, stay}[w.pick(4)]
		if p.aborts {
			p.ending = []ending{complete, giveBack, untilGone}[w.pick(3)]
		} else if w.front.waits && v.staying.Load() >= w.slots/2 {
			p.ending = complete
		}
		if p.ending == stay {
			v.staying.Add(1) // so that these do not take all slots
		}
		v.plans = append(v.plans, p)
	}
	v.staying.Store(0)
	v.arriving.Add(n)
	return v
}

// play starts all callers at the same time. It returns when all their messages in flight have
// arrived.
func (w *world) play(v *wave, most time.Duration) {
	w.wave = v
	w.delays.most.Store(int64(most))
	for _, p := range v.plans {
		v.ended.Go(func() { v.note(p, w.caller(p)) })
	}
	v.arriving.Wait()
	w.delays.most.Store(0)
	const calm = 3
	for quiet := 0; quiet < calm; {
		<-time.After(poll)
		quiet++
		if w.delays.underway.Load()+w.tally.reserving.Load() > 0 ||
			w.front.serves && w.serving.Load() > v.staying.Load() {
			quiet = 0
		}
	}
}

// poll is the time between two checks of a condition.
const poll = 10 * time.Millisecond

// caller runs one caller.
func (w *world) caller(p *plan) error {
	defer p.arrive()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	p.began = time.Now()
	if p.aborts && p.deadline {
		ctx, cancel = context.WithTimeout(ctx, p.after)
		defer cancel()
	} else if p.aborts {
		defer time.AfterFunc(p.after, cancel).Stop()
	}
	if w.front.direct {
		<-time.After(p.work) // there is no network that delays the call
	}
	return w.front.call(ctx, w, p)
}

// note counts the outcome of a caller.
func (v *wave) note(p *plan, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	_, denied := errors.AsType[*weir.DeniedError](err)
	switch {
	case err == nil:
		v.got++
		v.took = append(v.took, time.Duration(p.leased.Load()))
	case p.aborts && p.leased.Load() > 0:
		v.under++
	case p.aborts && (!denied || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded)):
		v.gone++
	case denied:
		v.denied++
		v.failed = append(v.failed, err)
	default:
		v.unanswered++
		v.failed = append(v.failed, err)
	}
}

// usual returns the median time that it took to get a lease.
func (v *wave) usual() time.Duration {
	if len(v.took) == 0 {
		return 20 * time.Millisecond
	}
	slices.Sort(v.took)
	return max(v.took[len(v.took)/2], time.Millisecond)
}

// patience bounds the wait for units that have not come back after a wave, on a busy machine.
const patience = 2 * time.Minute

// settled waits until the units in use are those that the callers hold or have used. It returns the
// time that this took, or the difference that is left. The time begins when the store answers
// again, because before that it has not decided the outcome of calls.
func (w *world) settled(t *testing.T, v *wave) (took time.Duration, left error) {
	t.Helper()
	began, opened := time.Now(), time.Now()
	for {
		took = time.Since(began)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		all, err := w.inUse(ctx)
		cancel()
		if err == nil {
			err = w.compare(v, all)
		} else if w.network == lateStore && time.Since(opened) < 2*patience {
			began = time.Now()
			continue
		}
		if err == nil || took > patience {
			return took, err
		}
		<-time.After(poll)
	}
}

// compare returns an error if the units in use are not those that the callers hold or have used.
func (w *world) compare(v *wave, all []map[string]int64) error {
	staying := v.staying.Load()
	calls := w.keptBefore + v.kept.Load() + staying
	for i, of := range all {
		var errs []error
		for name, cost := range w.store.costs() {
			want := calls * cost
			if name == "slots" {
				want = staying
			}
			if got := of[name]; got < want || got > want+cost*w.reported.Load()+w.doubts() {
				errs = append(errs, fmt.Errorf("%d of %s in use, want %d", got, name, want))
			}
		}
		if err := errors.Join(errs...); err != nil {
			return fmt.Errorf("server %d: %w", i+1, err)
		}
	}
	return nil
}
