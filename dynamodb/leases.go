package dynamodb

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/dynamodb/internal/leaserecord"
	"github.com/weir-limiter/weir/internal/schema"
)

// Recovered reports whether a process has recorded leases in the namespace before this store opened
// it. Before that, leases may have been reserved that are in no record.
func (s *Store) Recovered() (early time.Time, ok bool) { return time.Time{}, s.hasLeases }

// RecoverLease reads a lease from its record. It returns nil if the table does not know the lease,
// or if its ID was cancelled before it was reserved. The error for a record that was altered, or
// that a newer weir has written, has code [weir.Unsupported].
func (s *Store) RecoverLease(
	ctx context.Context, now time.Time, id weir.LeaseID,
) (*driver.LeaseRecord, error) {
	if err := s.running.Enter(); err != nil {
		return nil, err
	}
	defer s.running.End()
	l, err := s.leases.Read(ctx, id)
	if err != nil || l == nil || l.State == schema.LeaseVoided {
		return nil, err
	}
	return leaseRecord(id, l, now), nil
}

// VoidLease writes a tombstone into the slot of a lease ID, unless the slot holds a lease. A reserve
// that is still under way then finds the slot taken, and gives back what it took.
func (s *Store) VoidLease(
	ctx context.Context, now time.Time, id weir.LeaseID,
) (exists bool, err error) {
	if err := s.running.Enter(); err != nil {
		return false, err
	}
	defer s.running.End()
	if s.buckets.Gone.Load() { // nothing would remove the record after a purge
		return false, nil
	}
	tombstone := &schema.Lease{
		Version: newVersion(), State: schema.LeaseVoided, EndedMS: now.UnixMilli(),
	}
	r, err := s.sendSlot(ctx, &leaserecord.Write{
		ID: id, Lease: tombstone, KeepUntil: max(tombstone.EndedMS, id.UnixMilli()) + voidMemory.Milliseconds(),
	})
	if err = cmp.Or(err, r.Err); err != nil {
		return false, err
	}
	return r.Lost && r.Found != nil && r.Found.State != schema.LeaseVoided, nil
}

// voidMemory is the least time for which a tombstone is kept, the default of
// limiter.Options.LeaseMemory.
const voidMemory = 10 * time.Minute

// AdoptLease returns an error with code [weir.Ended] if the ID was cancelled before it was reserved.
// There is nothing else to do: the store does not give back a lease that is in its record.
func (s *Store) AdoptLease(ctx context.Context, _ time.Time, id weir.LeaseID, _ uint64) error {
	if err := s.running.Enter(); err != nil {
		return err
	}
	defer s.running.End()
	l, err := s.leases.Read(ctx, id)
	if err != nil || l == nil || l.State != schema.LeaseVoided {
		return err
	}
	return voidedError(id)
}

var (
	_ driver.LeaseVoider    = (*Store)(nil)
	_ driver.LeaseRecoverer = (*Store)(nil)
)

// sendSlot writes a slot and waits for the result. After an error from ctx the write goes on.
func (s *Store) sendSlot(ctx context.Context, w *leaserecord.Write) (leaserecord.Result, error) {
	select {
	case r := <-s.leases.Send(w):
		return r, nil
	case <-ctx.Done():
		return leaserecord.Result{}, client.AbandonedError(ctx)
	}
}

// record writes the lease of an admitted reservation into its slot. If the slot is taken, it gives
// back what the reservation took and answers by the slot. If the caller leaves before the slot is
// written, the rest is done in the background.
func (s *Store) record(ctx context.Context, op *reserveOp) error {
	w, sent := op.early.rightFor(op)
	if w == nil {
		w = s.slotWrite(op)
		sent = s.leases.Send(w)
	}
	select {
	case r := <-sent:
		return s.recorded(op, w, r)
	case <-ctx.Done():
	}
	// The limiter made a new ID, and its caller will not repeat the call.
	cancel := op.plan.New && errors.Is(context.Cause(ctx), context.Canceled)
	late := &reserveOp{now: op.now, at: op.at, charges: op.charges}
	late.retain(s)
	s.running.Run(func() {
		defer late.release()
		s.recordedLate(late, w, <-sent, cancel)
	})
	return client.AbandonedError(ctx)
}

// slotWrite returns the write of the slot of an admitted reservation.
func (*Store) slotWrite(op *reserveOp) *leaserecord.Write {
	p := op.plan
	w := &leaserecord.Write{
		ID: p.ID, Lease: reservedSlot(p, op.out),
		KeepUntil: max(p.Expires(op.at).UnixMilli(), p.ID.UnixMilli()) + p.Memory.Milliseconds(),
	}
	if op.early != nil {
		w.Replaces = op.early.write.Lease.Version
	}
	return w
}

// recorded fills in the outcome after the write of the slot.
func (s *Store) recorded(op *reserveOp, w *leaserecord.Write, r leaserecord.Result) error {
	switch {
	case r.Unknown:
		op.count(s.buckets.Counts.AmbiguousRecord)
	case (r.Err != nil || r.Lost) && !r.Applied:
		op.compensate()
	}
	switch {
	case r.Err != nil:
		return r.Err
	case r.Lost && r.Found == nil: // the record was deleted between two writes
		return &weir.Error{Code: weir.Unavailable, Reason: "the record of the lease was deleted"}
	case r.Lost:
		return op.answerBySlot(r.Found)
	}
	op.out.Version = w.Lease.Version
	return nil
}

// recordedLate ends a reservation whose caller has left while its slot was written.
func (s *Store) recordedLate(
	op *reserveOp, w *leaserecord.Write, r leaserecord.Result, cancel bool,
) {
	switch {
	case r.Unknown:
		op.count(s.buckets.Counts.AmbiguousRecord)
	case r.Applied: // another process continues the lease
	case r.Err != nil, r.Lost:
		op.compensate()
	case cancel:
		end := &schema.Lease{
			Version: newVersion(), State: schema.LeaseCancelled, EndedMS: op.now,
		}
		ended := <-s.leases.Send(&leaserecord.Write{
			ID: w.ID, Replaces: w.Lease.Version, Lease: end, KeepUntil: w.KeepUntil,
		})
		switch {
		case ended.Lost: // another process has ended the lease, and refunds
		case ended.Err == nil:
			op.compensate()
		default: // the lease may live on, without a caller
			op.count(s.buckets.Counts.AmbiguousRecord)
		}
	}
}

// count calls add with the milli-units of each take.
func (op *reserveOp) count(add func(milli int64)) {
	for _, ic := range op.charges {
		for k := range ic.takes {
			add(ic.takes[k].Milli)
		}
	}
}

// answerDenied answers a reservation that was denied: by its slot, if that is taken. The lease may
// be live though the bucket has too little left for another one.
func (s *Store) answerDenied(ctx context.Context, op *reserveOp) error {
	if op.plan.New {
		return nil
	}
	l, err := s.leases.Read(ctx, op.plan.ID)
	if err != nil || l == nil {
		return err
	}
	return op.answerBySlot(l)
}

// answerBySlot answers a reservation whose slot holds a lease: a repeat of it, a conflict, or the
// end of the lease.
func (op *reserveOp) answerBySlot(l *schema.Lease) error {
	id := op.plan.ID
	ended := func(what string, atMS int64) error {
		return weir.NewError(weir.Ended, "lease_id", id,
			what+" at "+time.UnixMilli(atMS).UTC().Format(time.RFC3339Nano))
	}
	switch {
	case l.State == schema.LeaseVoided:
		return voidedError(id)
	case l.State != schema.LeaseLive:
		return ended("was "+string(leaseState(l.State)), l.EndedMS)
	case op.now >= l.ExpiresMS:
		return ended("was "+string(driver.LeaseExpired), l.ExpiresMS)
	case l.Fingerprint != op.plan.Fingerprint:
		return weir.NewError(weir.Conflict, "lease_id", id, "was used for another request")
	}
	op.out.Replay, op.out.Denied, op.out.Contended = true, false, false
	return nil
}

func voidedError(id weir.LeaseID) error {
	return weir.NewError(weir.Ended, "lease_id", id, "was cancelled before it was reserved")
}
