//go:build cgo

package tigerbeetle

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-limiter/weir"
)

const (
	// adoptWithin is how long a reservation that nobody waits for is kept for a repeat, once it
	// is known to have been carried out.
	adoptWithin = time.Second
	// mostWithdrawals is how many reservations are withdrawn at once. The client sends calls that
	// are made at once together.
	mostWithdrawals = 64
	// closeWithin is how long Close waits for abandoned reservations to be withdrawn.
	closeWithin = time.Second
)

// attempt is a Reserve under way. It goes on after its caller has left, because a chain that the
// cluster has been given cannot be called back.
type attempt struct {
	c *reserving
	// decided is closed once err, and the outcome of c, are set.
	decided chan struct{}
	err     error

	// The fields below matter once the caller has left.

	// adopted is closed when a repeat has taken the reservation over, withdrawn when it was given
	// back, or when there is nothing to give back. withdrawing excludes adoption. All three are
	// guarded by abandoned.mu.
	adopted, withdrawn chan struct{}
	withdrawing        bool
}

// abandoned are the attempts whose callers have left.
type abandoned struct {
	count atomic.Int64

	mu      sync.Mutex
	byLease map[weir.LeaseID]*attempt
	keepers sync.WaitGroup
	// slots bounds the withdrawals at once.
	slots chan struct{}
}

// run makes an attempt and waits for its outcome, or for the end of the context. The chain that
// is on its way then is not called back: if it was carried out, it is withdrawn unless a repeat
// comes for it.
func (s *Store) run(ctx context.Context, c *reserving) error {
	a := &attempt{c: c}
	if ctx.Done() == nil {
		a.err = c.run(ctx)
	} else {
		a.decided = make(chan struct{})
		go func() {
			a.err = c.run(ctx)
			close(a.decided)
		}()
		select {
		case <-a.decided:
		case <-ctx.Done():
			select {
			case <-a.decided: // both at once: the outcome counts
			default:
				s.abandon(a)
				return unavailable(ctx.Err())
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

// charged reports whether the attempt was carried out. It must be decided.
func (a *attempt) charged() bool { return a.err == nil && !a.c.out.Denied && !a.c.out.Replay }

// abandon begins to look after an attempt whose caller leaves.
func (s *Store) abandon(a *attempt) {
	s.counts.abandoned.Add(1)
	if a.decided == nil {
		a.decided = make(chan struct{})
		close(a.decided)
	}
	a.adopted, a.withdrawn = make(chan struct{}), make(chan struct{})
	l := &s.abandoned
	l.mu.Lock()
	if old := l.byLease[a.c.plan.ID]; old != nil {
		l.count.Add(-1)
		if !old.withdrawing {
			close(old.adopted) // by this one, which has repeated its chain
		}
	}
	l.byLease[a.c.plan.ID] = a
	l.count.Add(1)
	l.keepers.Add(1)
	l.mu.Unlock()
	go s.keep(a)
}

// forget ends what [Store.abandon] began, unless another attempt of the lease has taken its place.
func (l *abandoned) forget(a *attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byLease[a.c.plan.ID] == a {
		delete(l.byLease, a.c.plan.ID)
		l.count.Add(-1)
	}
	close(a.withdrawn)
}

// keep waits until the fate of an abandoned attempt is known, and withdraws what was carried out
// if no repeat has come for it.
func (s *Store) keep(a *attempt) {
	l := &s.abandoned
	defer l.keepers.Done()
	<-a.decided
	if !a.charged() && !a.c.unknown {
		l.forget(a)
		return
	}
	timer := time.NewTimer(adoptWithin)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.stop:
	case <-a.adopted:
		return
	}
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
	l.slots <- struct{}{}
	defer func() { <-l.slots }()
	s.withdrawSurely(a)
}

// withdrawSurely withdraws an attempt, and tries again for as long as the store is open.
func (s *Store) withdrawSurely(a *attempt) {
	for pause := leastPause; ; pause = min(2*pause, mostPause) {
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

// resume answers a reservation whose earlier attempt is still looked after. No repeat is denied,
// and nothing is sent again, before the fate of that attempt is known: it could be charged after
// the denial. The outcome stays empty if the cluster is to be asked; earlier is then the attempt whose
// fate only the cluster knows, or nil.
func (s *Store) resume(
	ctx context.Context, p *weir.Plan, out *weir.Outcome,
) (earlier *reserving, err error) {
	l := &s.abandoned
	for l.count.Load() > 0 {
		l.mu.Lock()
		a := l.byLease[p.ID]
		l.mu.Unlock()
		if a == nil {
			break
		}
		if err := wait(ctx, a.decided); err != nil {
			return nil, err
		}
		if a.c.unknown && !l.withdraws(a) {
			return a.c, nil
		}
		over, err := l.adopt(a, p, out)
		if out.Replay {
			s.tell(a)
		}
		if err != nil || !over {
			return nil, err
		}
		if err := wait(ctx, a.withdrawn); err != nil {
			return nil, err
		}
	}
	return nil, nil // There is none.
}

// tell keeps the statuses of an attempt that was carried out for whoever recovers the lease next.
func (s *Store) tell(a *attempt) {
	select {
	case <-a.decided:
		if a.charged() {
			s.answers.Store(a.c.plan.ID, slices.Clone(a.c.out.Limits))
		}
	default:
	}
}

// wait waits until a channel is closed, or the context ends.
func wait(ctx context.Context, closed <-chan struct{}) error {
	select {
	case <-closed:
		return nil
	case <-ctx.Done():
		return unavailable(ctx.Err())
	}
}

// withdraws reports whether an attempt is being withdrawn.
func (l *abandoned) withdraws(a *attempt) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return a.withdrawing
}

// adopt takes over an attempt that was carried out. It is over if there is nothing left to adopt. If
// other limits apply by now, the lease is to be recovered.
func (l *abandoned) adopt(a *attempt, p *weir.Plan, out *weir.Outcome) (over bool, err error) {
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
	case a.c.plan.Fingerprint != p.Fingerprint:
		return false, usedOtherwise(p.ID)
	}
	l.drop(a)
	if slices.EqualFunc(a.c.plan.Takes, p.Takes, func(a, b weir.Take) bool {
		return a.Subject == b.Subject && a.Limit.Same(*b.Limit) && slices.Equal(a.Parts, b.Parts)
	}) {
		*out = *a.c.out
	} else {
		out.Replay = true
	}
	return false, nil
}

// drop makes an attempt its adopter's. The lock is held.
func (l *abandoned) drop(a *attempt) {
	close(a.adopted)
	delete(l.byLease, a.c.plan.ID)
	l.count.Add(-1)
}

// answered notes that a caller has been told what became of a lease. An attempt whose fate was
// unknown is over then: either that caller has the lease, or a denial has used up the IDs of its
// chain.
func (l *abandoned) answered(id weir.LeaseID) {
	if l.count.Load() == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.byLease[id]; a != nil && a.c.unknown && !a.withdrawing {
		l.drop(a)
	}
}

// settleAbandoned ends the care for abandoned attempts when the store closes: those that were
// carried out are withdrawn at once, and those whose fate is unknown are waited for, both for no
// longer than closeWithin.
func (s *Store) settleAbandoned() {
	done := make(chan struct{})
	go func() {
		s.abandoned.keepers.Wait()
		close(done)
	}()
	timer := time.NewTimer(closeWithin)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
	s.end()
}

// withdraw gives back what an attempt was charged, unless the lease has been adopted on another
// server or has ended. If it is unknown whether the attempt was carried out, the lease ID is
// voided first: then it cannot be any more.
func (s *Store) withdraw(ctx context.Context, a *attempt) (did bool, err error) {
	id := a.c.plan.ID
	var holdings []weir.Holding
	if a.c.unknown {
		reserved, err := s.void(ctx, id)
		if err != nil || !reserved {
			return false, err
		}
		h, err := s.recover(ctx, id)
		if err != nil {
			return false, err
		}
		if h == nil || h.record.State != weir.LeaseLive || h.token() != 0 {
			return false, nil
		}
		holdings = h.record.Holdings
	} else {
		holdings = a.c.plan.Holdings(a.c.out)
	}
	c := newSettling(s, cancelling(id, holdings))
	c.withdraws = true
	out, err := c.run(ctx)
	return out != nil, err
}

// cancelling is the update that cancels a lease.
func cancelling(id weir.LeaseID, holdings []weir.Holding) *weir.Update {
	u := &weir.Update{ID: id, Verb: weir.VerbCancel, Changes: make([]weir.Change, len(holdings))}
	for i := range holdings {
		h := &holdings[i]
		parts := make([]weir.Part, len(h.Parts))
		for k, p := range h.Parts {
			parts[k] = weir.Part{Charge: p.Charge}
		}
		u.Changes[i] = weir.Change{Holding: h, Limit: h.Limit, From: h.Cost(), Parts: parts}
	}
	return u
}
