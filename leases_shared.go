package weir

import (
	"context"
	"time"
)

// Where several servers settle the leases of one store, what this one remembers of a lease may be
// old.

// shared is true for a lease that other servers may have renewed or ended.
func (l *Limiter) shared(e *leaseEntry) bool {
	return l.recoverer != nil && !l.traits.Local && !e.degraded
}

// refresh asks the store about a lease that is live here before a reservation is answered again: it
// may be over.
func (l *Limiter) refresh(ctx context.Context, now time.Time, e *leaseEntry) error {
	if e.state != leaseHeld || !l.shared(e) {
		return nil
	}
	record, err := l.ask(ctx, now, e.id)
	switch {
	case err != nil:
		return err
	case record == nil: // it ended so long ago that the store has forgotten when
		e.end(leaseExpired, min(e.expires, now.UnixMilli()))
	case record.State != LeaseLive:
		e.endedAs = record.EndFingerprint
		e.end(conditionOf(record.State), record.EndedAt.UnixMilli())
	default:
		e.expires = max(e.expires, record.Expires.UnixMilli())
		if record.Seq > e.seq {
			e.seq, e.seqAt = record.Seq, record.SeqAt.UnixMilli()
		}
	}
	return nil
}

// mistaken refuses a settlement for what is wrong with it. That the lease is over, or has been
// adjusted with a later number, comes first, also where another server has done it.
func (l *Limiter) mistaken(
	ctx context.Context, s *settling, e *leaseEntry, mistake error,
) (*Receipt, error) {
	if err := l.refresh(ctx, s.now, e); err != nil {
		return nil, mistake // a store that does not answer hides none
	}
	switch {
	case e.state.ended():
		return l.settleEnded(s, e)
	case s.repeats(e):
		return l.repeat(s, e), nil
	}
	return nil, mistake
}

// revive asks the store about a lease whose end is known here only: another server may have renewed
// one that has expired, or reserved one whose ID was voided, and then it is live. It may also have
// ended it in another way.
func (l *Limiter) revive(
	ctx context.Context, now time.Time, leaseNow int64, e *leaseEntry,
) (*leaseEntry, error) {
	doubtful := e.state == leaseExpired || e.state == leaseVoided && l.voider == nil
	if !doubtful || !l.shared(e) {
		return e, nil
	}
	record, err := l.ask(ctx, now, e.id)
	if err != nil {
		return nil, err
	}
	if record == nil {
		return e, nil
	}
	if record.State != LeaseLive {
		e.bear(*record) // the entry is this call's alone
		return e, nil
	}
	l.leases.unend(e.id)
	again, err := l.acquire(ctx, e.id, leaseNow, true)
	if err != nil {
		return nil, err
	}
	if again.state == leaseUnborn {
		again.bear(*record)
	}
	return again, nil
}

// ask is what the store knows of a lease.
func (l *Limiter) ask(ctx context.Context, now time.Time, id LeaseID) (*LeaseRecord, error) {
	storeCtx, cancel := l.storeContext(ctx)
	defer cancel()
	record, err := l.recoverer.RecoverLease(storeCtx, now, id)
	if err != nil {
		return nil, classify(err)
	}
	return l.remembered(now, record), nil
}

// remembered is a store's record of a lease, or nil if the lease ended longer ago than the limiter
// remembers.
func (l *Limiter) remembered(now time.Time, r *LeaseRecord) *LeaseRecord {
	if r == nil || r.State == LeaseLive {
		return r
	}
	ended := endedLease{id: r.ID, at: r.EndedAt.UnixMilli()}
	if ended.forgetAt(l.options.LeaseMemory.Milliseconds()) < now.UnixMilli() {
		return nil
	}
	return r
}

// unend forgets that a lease has expired or its ID was voided. The ID may be used again: it is
// live.
func (t *leaseTable) unend(id LeaseID) {
	s := t.shard(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	place, known := s.find(id)
	if !known || place&leaseHasEnded == 0 {
		return
	}
	if e := s.ended.at(place); e.as == leaseExpired || e.as == leaseVoided {
		s.ended.drop(e)
		s.index.leave(id, false, s.valid)
	}
}
