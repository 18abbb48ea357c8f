//go:build cgo

package tigerbeetle

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/tigerbeetle/internal/client"
)

const (
	// adoptTimeout is how long an abandoned reservation waits for a repeat once it is known to have
	// been carried out.
	adoptTimeout = time.Second
	// maxWithdrawals is how many reservations are withdrawn at the same time. TigerBeetle's client
	// sends concurrent calls together.
	maxWithdrawals = 64
	// minPause is the pause before a failed withdrawal is tried again; it doubles up to maxPause.
	minPause = 100 * time.Millisecond
	maxPause = 5 * time.Second
	// closeTimeout is how long Close waits for abandoned reservations to be withdrawn.
	closeTimeout = time.Second
)

// inflightReserve is a Reserve in progress. It continues after its caller has left, because a chain
// cannot be recalled once it was sent.
type inflightReserve struct {
	op *reserveOp
	// done is closed once err and the outcome of op are set.
	done chan struct{}
	err  error

	// The fields below are used once the caller has left.

	// adopted is closed when a repeat has taken the reservation over. withdrawn is closed when it
	// was given back, or when there is nothing to give back. withdrawing excludes adoption.
	// abandoned.mu guards all three.
	adopted, withdrawn chan struct{}
	withdrawing        bool
}

// abandoned is the set of reservations whose callers have left. For each of them a goroutine,
// watchAbandoned, waits for the outcome. mu decides between an adoption and a withdrawal that come
// at the same time; it is not locked during a call to the cluster.
type abandoned struct {
	// count is the length of byLease, so that a call need not lock mu if nothing is abandoned.
	count atomic.Int64

	mu       sync.Mutex
	byLease  map[weir.LeaseID]*inflightReserve
	watchers sync.WaitGroup
	// permits bounds the concurrent withdrawals.
	permits chan struct{}
}

// runReserve runs a reservation and waits for its outcome, or for the end of the context. If the
// context ends first, the chain may be in flight and cannot be recalled: it is abandoned to
// watchAbandoned, which withdraws it if it was carried out, unless a repeat adopts it.
func (s *Store) runReserve(ctx context.Context, c *reserveOp) error {
	a := &inflightReserve{op: c}
	if ctx.Done() == nil {
		a.err = c.run(ctx)
	} else {
		a.done = make(chan struct{})
		go func() {
			a.err = c.run(ctx)
			close(a.done)
		}()
		select {
		case <-a.done:
		case <-ctx.Done():
			select {
			case <-a.done: // both happened: the outcome counts
			default:
				s.abandon(a)
				return client.Unavailable(ctx.Err())
			}
		}
	}
	if c.unknown {
		s.abandon(a)
	} else if a.err == nil {
		s.abandoned.answered(c.plan.ID)
	}
	return a.err
}

// charged reports whether the reservation was carried out. The reservation must be done.
func (a *inflightReserve) charged() bool { return a.err == nil && !a.op.out.Denied && !a.op.out.Replay }

// abandon registers a reservation whose caller leaves, and starts its watcher.
func (s *Store) abandon(a *inflightReserve) {
	s.counts.abandoned.Add(1)
	if a.done == nil {
		a.done = make(chan struct{})
		close(a.done)
	}
	a.adopted, a.withdrawn = make(chan struct{}), make(chan struct{})
	l := &s.abandoned
	l.mu.Lock()
	if old := l.byLease[a.op.plan.ID]; old != nil {
		l.count.Add(-1)
		if !old.withdrawing {
			close(old.adopted) // by a, which has sent the same chain again
		}
	}
	l.byLease[a.op.plan.ID] = a
	l.count.Add(1)
	l.watchers.Add(1)
	l.mu.Unlock()
	go s.watchAbandoned(a)
}

// forget drops a reservation that needs no more care, unless another one of the same lease has
// taken its place.
func (l *abandoned) forget(a *inflightReserve) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byLease[a.op.plan.ID] == a {
		delete(l.byLease, a.op.plan.ID)
		l.count.Add(-1)
	}
	close(a.withdrawn)
}

// watchAbandoned waits for the outcome of an abandoned reservation, gives a repeat adoptTimeout to
// adopt it, and withdraws it if it was carried out or its outcome is unknown.
func (s *Store) watchAbandoned(a *inflightReserve) {
	l := &s.abandoned
	defer l.watchers.Done()
	<-a.done
	if !a.charged() && !a.op.unknown {
		l.forget(a)
		return
	}
	timer := time.NewTimer(adoptTimeout)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.stop:
	case <-a.adopted:
		return
	}
	// The timer and an adoption may come at the same time. From here on l.mu decides: either the
	// reservation is adopted, or it is withdrawn and can no longer be adopted.
	l.mu.Lock()
	select {
	case <-a.adopted:
		l.mu.Unlock()
		return
	default:
	}
	a.withdrawing = true
	l.mu.Unlock()
	defer l.forget(a)
	l.permits <- struct{}{}
	defer func() { <-l.permits }()
	s.withdrawUntilKnown(a)
}

// withdrawUntilKnown withdraws a reservation, and tries again until it succeeds or the store is
// closed.
func (s *Store) withdrawUntilKnown(a *inflightReserve) {
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		did, err := s.withdraw(s.life, a)
		if err == nil {
			if did {
				s.counts.withdrawn.Add(1)
			}
			return
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-s.life.Done():
			timer.Stop()
			return
		}
	}
}

// resumeReserve answers a reservation that repeats an abandoned one. The repeat is neither denied
// nor sent before the outcome of the abandoned one is known, which could otherwise be charged after
// the denial. If out stays empty, the cluster has to be asked; earlier is then the abandoned
// reservation of which only the cluster knows whether it was carried out, or nil.
func (s *Store) resumeReserve(
	ctx context.Context, p *driver.Plan, out *driver.Outcome,
) (earlier *reserveOp, err error) {
	l := &s.abandoned
	for l.count.Load() > 0 {
		l.mu.Lock()
		a := l.byLease[p.ID]
		l.mu.Unlock()
		if a == nil {
			break
		}
		if err := wait(ctx, a.done); err != nil {
			return nil, err
		}
		if a.op.unknown && !l.withdraws(a) {
			return a.op, nil
		}
		over, err := l.adopt(a, p, out)
		if out.Replay {
			s.keepStatuses(a)
		}
		if err != nil || !over {
			return nil, err
		}
		if err := wait(ctx, a.withdrawn); err != nil {
			return nil, err
		}
	}
	return nil, nil // Nothing is abandoned.
}

// keepStatuses keeps the statuses of a reservation that was carried out for the call that recovers
// its lease next.
func (s *Store) keepStatuses(a *inflightReserve) {
	select {
	case <-a.done:
		if a.charged() {
			s.replayLimits.Store(a.op.plan.ID, slices.Clone(a.op.out.Limits))
		}
	default:
	}
}

// wait waits until a channel is closed or the context ends.
func wait(ctx context.Context, closed <-chan struct{}) error {
	select {
	case <-closed:
		return nil
	case <-ctx.Done():
		return client.Unavailable(ctx.Err())
	}
}

// withdraws reports whether a reservation is being withdrawn.
func (l *abandoned) withdraws(a *inflightReserve) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return a.withdrawing
}

// adopt takes over a reservation that was carried out. It returns over if there is nothing left to
// adopt. If the limits of the plan have changed, it only marks the outcome as a replay, and the
// engine recovers the lease.
func (l *abandoned) adopt(a *inflightReserve, p *driver.Plan, out *driver.Outcome) (over bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-a.adopted:
		return false, nil
	default:
	}
	switch {
	case a.withdrawing || !a.charged():
		return true, nil
	case a.op.plan.Fingerprint != p.Fingerprint:
		return false, usedOtherwise(p.ID)
	}
	l.drop(a)
	if slices.EqualFunc(a.op.plan.Takes, p.Takes, func(a, b *driver.Take) bool {
		return a.Subject == b.Subject && a.Limit.Same(*b.Limit) && slices.Equal(a.Parts, b.Parts)
	}) {
		*out = *a.op.out
	} else {
		out.Replay = true
	}
	return false, nil
}

// drop marks a reservation as adopted. l.mu is held.
func (l *abandoned) drop(a *inflightReserve) {
	close(a.adopted)
	delete(l.byLease, a.op.plan.ID)
	l.count.Add(-1)
}

// answered records that a caller has had an answer for a lease. An abandoned reservation of unknown
// outcome needs no more care then: either that caller has the lease, or the denial has used up the
// IDs of its chain.
func (l *abandoned) answered(id weir.LeaseID) {
	if l.count.Load() == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.byLease[id]; a != nil && a.op.unknown && !a.withdrawing {
		l.drop(a)
	}
}

// closeAbandoned waits until the watchers have finished, but for at most closeTimeout. After s.stop
// is closed they withdraw at once. Then it ends the withdrawals that are left.
func (s *Store) closeAbandoned() {
	done := make(chan struct{})
	go func() {
		s.abandoned.watchers.Wait()
		close(done)
	}()
	timer := time.NewTimer(closeTimeout)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
	s.end()
}

// withdraw gives back what a reservation was charged, unless the lease has been adopted on another
// server or has ended. If the outcome of the reservation is unknown, the lease ID is voided first,
// so that the reservation can no longer be carried out.
func (s *Store) withdraw(ctx context.Context, a *inflightReserve) (did bool, err error) {
	id := a.op.plan.ID
	var holdings []driver.Holding
	if a.op.unknown {
		reserved, err := s.void(ctx, id)
		if err != nil || !reserved {
			return false, err
		}
		h, err := s.readHistory(ctx, id)
		if err != nil {
			return false, err
		}
		if h == nil || h.record.State != driver.LeaseLive || h.token() != 0 {
			return false, nil
		}
		holdings = h.record.Holdings
	} else {
		holdings = a.op.plan.Holdings(a.op.out)
	}
	c := newUpdateOp(s, time.UnixMilli(s.clock.nowMS()), cancelUpdate(id, holdings))
	c.withdrawing = true
	out, err := c.run(ctx)
	return out != nil, err
}

// cancelUpdate returns the update that cancels a lease.
func cancelUpdate(id weir.LeaseID, holdings []driver.Holding) *driver.Update {
	u := &driver.Update{ID: id, Verb: weir.VerbCancel, Changes: make([]driver.Change, len(holdings))}
	for i := range holdings {
		h := &holdings[i]
		parts := make([]driver.Part, len(h.Parts))
		for k, p := range h.Parts {
			parts[k] = driver.Part{Charge: p.Charge}
		}
		u.Changes[i] = driver.Change{Holding: h, Limit: h.Limit, From: h.Cost(), Parts: parts}
	}
	return u
}
