package memory

import (
	"slices"
	"sync"
	"sync/atomic"
)

// The pace of the sweep: it walks all stripes about once in sweepInterval of the callers' time, and
// one call looks at no more than maxSweep subject states.
const (
	sweepInterval  = 60_000
	stripeInterval = sweepInterval / stripeCount
	maxSweep       = 1024
)

// sweeper decides which stripe is swept next. Calls sweep all stripes in turn, not the ones that
// they use, so that entities that are not used any more are swept too. If a call is sweeping,
// others do not wait for it.
type sweeper struct {
	// mu is held by the call that sweeps, around the locks of the stripes. It guards stripe.
	mu sync.Mutex
	// due is the instant at which the next stripe is swept, in milliseconds.
	due atomic.Int64
	// stripe is the index of that stripe.
	stripe int
}

// sweep removes a bounded number of idle states, if the next stripe is due. No stripe may be
// locked.
func (s *Store) sweep(now int64) {
	w := &s.sweeper
	if early := w.due.Load() - now; early > 0 && early <= sweepInterval || !w.mu.TryLock() {
		return
	}
	defer w.mu.Unlock()
	if s.usage != nil {
		s.usage.saw(now)
	}
	// After a pause all stripes are swept once, not once for each interval that has passed. If a
	// clock was far ahead when due was set, the next sweep is now.
	due := min(max(w.due.Load(), now-sweepInterval), now)
	for left := maxSweep; left > 0 && due <= now; {
		n, done := s.stripes[w.stripe].sweep(now, left)
		left -= n + 1
		if done {
			w.stripe = (w.stripe + 1) % stripeCount
			due += stripeInterval
		}
	}
	w.due.Store(due)
}

// sweep looks at no more than most subjects, from where the last sweep stopped. It returns the
// number and whether it has reached the end.
func (p *stripe) sweep(now int64, most int) (n int, done bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n, done = p.usage.sweep(most); !done {
		return n, false
	}
	for ; n < most && p.cursor < len(p.dense); n++ {
		it := p.dense[p.cursor]
		idle := func(s limitState) bool { return s.counter.Idle(now, idleMS) }
		if slices.ContainsFunc(it.states, idle) {
			p.preserve(it)
			for i := range it.states {
				if idle(it.states[i]) {
					p.record(it, &it.states[i])
				}
			}
			it.states = slices.DeleteFunc(it.states, idle)
		}
		if len(it.states) > 0 {
			p.cursor++
			continue
		}
		p.remove(it) // the last one moves to this index, so the cursor stays
	}
	if p.cursor < len(p.dense) {
		return n, false
	}
	p.cursor = 0
	p.shrink()
	return n, true
}
