package limiter

import (
	"context"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
)

// This file is for stores that several servers share. What this process remembers of a lease may
// then be out of date, because another server has extended, adjusted or ended the lease.

// leaseShared reports whether other servers may have changed the lease, so that what this process
// remembers of it may be out of date.
func (l *Limiter) leaseShared(e *leaseEntry) bool {
	return l.recoverer != nil && !l.traits.Local && !e.degraded
}

// refresh updates a live entry from the store, before a repeated reservation is answered with it:
// another server may have ended, extended or adjusted the lease.
func (l *Limiter) refresh(ctx context.Context, now time.Time, e *leaseEntry) error {
	if e.state != leaseLive || !l.leaseShared(e) {
		return nil
	}
	record, err := l.readLease(ctx, now, e.id)
	switch {
	case err != nil:
		return err
	case record == nil: // it ended, and the store has forgotten it
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

// checkUpdate answers an update that contains a mistake. If the lease has ended or a later adjust
// was applied, perhaps by another server, the answer is about that; otherwise it is the mistake.
func (l *Limiter) checkUpdate(
	ctx context.Context, s *updateOp, e *leaseEntry, mistake error,
) (*weir.Receipt, error) {
	if err := l.refresh(ctx, s.now, e); err != nil {
		return nil, mistake // the store cannot tell: report the mistake
	}
	switch {
	case e.state.ended():
		return l.answerEnded(s, e)
	case s.replays(e):
		return l.answerReplay(s, e), nil
	}
	return nil, mistake
}

// recheckEnded asks the store about a lease that has expired or was voided as far as this process
// knows. Another server may have extended the lease before it expired, or may have reserved the
// voided ID; then the lease is live. It may also have ended in another way.
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
		e.activate(record) // an ended entry is a copy, so no lock is needed
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

// readLease returns what the store knows of a lease, or nil.
func (l *Limiter) readLease(ctx context.Context, now time.Time, id weir.LeaseID) (*driver.LeaseRecord, error) {
	storeCtx, cancel := l.storeContext(ctx)
	defer cancel()
	record, err := l.recoverer.RecoverLease(storeCtx, l.leaseTime(now), id)
	if err != nil {
		return nil, classify(err)
	}
	if record = l.withinMemory(now, record); record == nil {
		return nil, nil
	}
	return record, checkRecord(record)
}

// withinMemory returns the record, or nil if the lease ended longer ago than the limiter remembers.
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

// restoreID removes the record that a lease has expired or was voided, because the store says that
// the lease is live.
func (t *leaseTable) restoreID(id weir.LeaseID) {
	s := t.segment(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	place, known := s.find(id)
	if !known || place&leaseHasEnded == 0 {
		return
	}
	if e := s.ended.at(place); e.phase == leaseExpired || e.phase == leaseVoided {
		s.ended.drop(e)
		s.index.forget(id, s.valid)
	}
}
