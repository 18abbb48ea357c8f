package memory

import (
	"slices"
	"sync"
	"sync/atomic"
)

// The sweep's pace: every stripe is walked about once in lapMS of the callers' time, and one call
// looks at no more than sweepMost items.
const (
	sweepInterval  = 60_000
	stripeInterval = sweepInterval / stripeCount
	sweepMost      = 1024
)

// sweeper forgets what is no longer in use, stripe after stripe, whoever is calling: so the stripes
// of entities that nobody asks for any more are swept too. One call sweeps; others do not wait.
type sweeper struct {
	mu sync.Mutex
	// due is the instant (ms) at which the next stripe has its turn.
	due atomic.Int64
	// stripe is the one whose turn it is.
	stripe int
}

// sweep forgets a bounded number of idle states, if it is time to. No lock may be held.
func (s *Store) sweep(now int64) {
	w := &s.sweeper
	if early := w.due.Load() - now; early > 0 && early <= sweepInterval || !w.mu.TryLock() {
		return
	}
	defer w.mu.Unlock()
	// After a long silence one lap is enough; and where a clock was far ahead, the next lap is now.
	due := min(max(w.due.Load(), now-sweepInterval), now)
	for left := sweepMost; left > 0 && due <= now; {
		n, done := s.stripes[w.stripe].sweep(now, left)
		left -= n + 1
		if done {
			w.stripe = (w.stripe + 1) % stripeCount
			due += stripeInterval
		}
	}
	w.due.Store(due)
}

// sweep looks at no more than most items, from where the last one stopped. It returns how many it
// looked at, and whether it has come to the end.
func (p *stripe) sweep(now int64, most int) (n int, done bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for ; n < most && p.cursor < len(p.dense); n++ {
		it := p.dense[p.cursor]
		idle := func(s limitState) bool { return s.counter.Idle(now, idleMS) }
		if slices.ContainsFunc(it.states, idle) {
			p.preserve(it)
			it.states = slices.DeleteFunc(it.states, idle)
		}
		if len(it.states) > 0 {
			p.cursor++
			continue
		}
		p.remove(it) // another takes its place
	}
	if p.cursor < len(p.dense) {
		return n, false
	}
	p.cursor = 0
	p.shrink()
	return n, true
}
