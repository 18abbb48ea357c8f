package limiter

import (
	"context"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
)

// Where several servers settle the leases of one store, what this one remembers of a lease may be
// old.

// leaseShared is true for a lease that other servers may have renewed or ended.
func (l *Limiter) leaseShared(e *leaseEntry) bool {
	return l.recoverer != nil && !l.traits.Local && !e.degraded
}

// refresh asks the store about a lease that is live here before a reservation is answered again: it
// may be over.
func (l *Limiter) refresh(ctx context.Context, now time.Time, e *leaseEntry) error {
	if e.state != leaseLive || !l.leaseShared(e) {
		return nil
	}
	record, err := l.readLease(ctx, now, e.id)
	switch {
	case err != nil:
		return err
	case record == nil: // it ended so long ago that the store has forgotten when
		e.end(leaseExpired, min(e.expires, now.UnixMilli()))
	case record.State != driver.LeaseLive:
		e.endedAs = record.EndFingerprint
		e.end(phaseOf(record.State), record.EndedAt.UnixMilli())
	default:
		e.expires = max(e.expires, record.Expires.UnixMilli())
		if record.Seq > e.seq {
			e.seq, e.seqAt = record.Seq, record.SeqAt.UnixMilli()
		}
	}
	return nil
}

// checkUpdate refuses a settlement for what is wrong with it. That the lease is over, or has been
// adjusted with a later number, comes first, also where another server has done it.
func (l *Limiter) checkUpdate(
	ctx context.Context, s *updateOp, e *leaseEntry, mistake error,
) (*weir.Receipt, error) {
	if err := l.refresh(ctx, s.now, e); err != nil {
		return nil, mistake // a store that does not answer hides none
	}
	switch {
	case e.state.ended():
		return l.answerEnded(s, e)
	case s.replays(e):
		return l.answerReplay(s, e), nil
	}
	return nil, mistake
}

// recheckEnded asks the store about a lease whose end is known here only: another server may have
// renewed one that has expired, or reserved one whose ID was voided, and then it is live. It may
// also have ended it in another way.
func (l *Limiter) recheckEnded(
	ctx context.Context, now time.Time, leaseNow int64, e *leaseEntry,
) (*leaseEntry, error) {
	doubtful := e.state == leaseExpired || e.state == leaseVoided && l.voider == nil
	if !doubtful || !l.leaseShared(e) {
		return e, nil
	}
	record, err := l.readLease(ctx, now, e.id)
	if err != nil {
		return nil, err
	}
	if record == nil {
		return e, nil
	}
	if record.State != driver.LeaseLive {
		e.activate(record) // the entry is this call's alone
		return e, nil
	}
	l.leases.restoreID(e.id)
	again, err := l.acquire(ctx, e.id, leaseNow, true)
	if err != nil {
		return nil, err
	}
	if again.state == leasePending {
		again.activate(record)
	}
	return again, nil
}

// readLease is what the store knows of a lease.
func (l *Limiter) readLease(ctx context.Context, now time.Time, id weir.LeaseID) (*driver.LeaseRecord, error) {
	storeCtx, cancel := l.storeContext(ctx)
	defer cancel()
	record, err := l.recoverer.RecoverLease(storeCtx, now, id)
	if err != nil {
		return nil, classify(err)
	}
	if record = l.withinMemory(now, record); record == nil {
		return nil, nil
	}
	return record, checkRecord(record)
}

// withinMemory is a store's record of a lease, or nil if the lease ended longer ago than the
// limiter remembers.
func (l *Limiter) withinMemory(now time.Time, r *driver.LeaseRecord) *driver.LeaseRecord {
	if r == nil || r.State == driver.LeaseLive {
		return r
	}
	ended := endedLease{id: r.ID, at: r.EndedAt.UnixMilli()}
	if ended.forgetAt(l.options.LeaseMemory.Milliseconds()) < now.UnixMilli() {
		return nil
	}
	return r
}

// restoreID forgets that a lease has expired or its ID was voided. The ID may be used again: it is
// live.
func (t *leaseTable) restoreID(id weir.LeaseID) {
	s := t.shard(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	place, known := s.find(id)
	if !known || place&leaseHasEnded == 0 {
		return
	}
	if e := s.ended.at(place); e.phase == leaseExpired || e.phase == leaseVoided {
		s.ended.drop(e)
		s.index.forget(id, false, s.valid)
	}
}
