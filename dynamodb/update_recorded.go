package dynamodb

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/dynamodb/internal/bucketitem"
	"github.com/weir-limiter/weir/dynamodb/internal/leaserecord"
	"github.com/weir-limiter/weir/internal/schema"
)

// applyRecorded makes the writes of an update of a lease that is in the table: the charges, the
// slot, the refunds.
func (s *Store) applyRecorded(
	ctx context.Context, now time.Time, u *driver.Update, t *leaseUpdate,
) error {
	if err := t.resolve(ctx, s, now); err != nil {
		return err
	}
	if err := t.resume(s, now, u); err != nil {
		return err
	}
	deltas, err := t.pieceDeltas(u)
	if err != nil {
		return err
	}
	if err := t.enqueue(s, now, u, charges(deltas)); err != nil {
		return err
	}
	if err := t.wait(ctx); err != nil {
		return err
	}
	// From here on the update goes to its end even if the caller leaves: once the slot is written, no
	// other process makes the refunds. The goroutine has its own copy of the update.
	own := cloneUpdate(u)
	t.begin(1)
	s.running.Run(func() { t.writeSlot(s, now, own) })
	if err := t.wait(ctx); err != nil {
		return err
	}
	return t.lost
}

// resolve finds out whether an earlier update was recorded whose last write of the slot had no
// answer, by sending that write again.
func (t *leaseUpdate) resolve(ctx context.Context, s *Store, now time.Time) error {
	w := t.unknown
	if w == nil {
		return nil
	}
	r, err := s.sendSlot(ctx, &leaserecord.Write{
		ID: w.ID, Replaces: w.Replaces, Lease: w.Lease, Doubtful: true, KeepUntil: w.KeepUntil,
	})
	if err != nil || r.Err != nil {
		return cmp.Or(err, r.Err)
	}
	t.unknown = nil
	if r.Lost {
		t.lose(s, now, t.recorded, t.owed, r)
	} else {
		t.slot = w.Lease
		t.settle(s, now, t.recorded, t.owed)
	}
	return t.wait(ctx)
}

// resume takes over from an earlier update that failed, or whose caller had left. If it was applied
// or lost after all, resume returns the answer that the limiter computes u again from. If the lease
// was changed since, resume gives back what the earlier one has charged.
func (t *leaseUpdate) resume(s *Store, now time.Time, u *driver.Update) error {
	switch {
	case t.lost != nil:
	case t.slot != nil && t.slot.Version == u.Lease.Version:
		t.restart(u)
	case t.slot != nil:
		t.lost = &driver.StaleError{Lease: leaseRecord(u.ID, t.slot, now)}
	case t.version != u.Lease.Version:
		t.giveBack(s, now, u)
		t.restart(u)
	}
	return t.lost
}

// cloneUpdate returns a copy of an update, with the changes, holdings and parts that a caller may
// use again. Definitions are shared.
func cloneUpdate(u *driver.Update) *driver.Update {
	c, lease := *u, *u.Lease
	c.Lease, c.Changes = &lease, slices.Clone(u.Changes)
	for i := range c.Changes {
		h := *c.Changes[i].Holding
		h.Parts = slices.Clone(h.Parts)
		c.Changes[i].Holding, c.Changes[i].Parts = &h, slices.Clone(c.Changes[i].Parts)
	}
	return &c
}

// writeSlot writes the slot of a lease after the charges of an update, and then makes the refunds.
// It ends with one write in flight less.
func (t *leaseUpdate) writeSlot(s *Store, now time.Time, u *driver.Update) {
	left, err := t.pieceDeltas(u)
	if err != nil {
		t.endSlot(err)
		return
	}
	slot := updatedSlot(now, u, after(t.pieces, left))
	w := &leaserecord.Write{
		ID: u.ID, Replaces: u.Lease.Version, Lease: slot, KeepUntil: keepUntil(u, slot),
	}
	r := <-s.leases.Send(w)
	switch {
	case r.Lost && r.Err == nil:
		t.lose(s, now, u, refunds(left), r)
		t.endSlot(nil)
	case r.Unknown: // the next update of the lease finds out
		t.countAmbiguous(s, left)
		t.unknown, t.owed, t.recorded = w, refunds(left), u
		t.endSlot(r.Err)
	case r.Err != nil:
		t.endSlot(r.Err)
	default:
		t.slot = slot
		t.settle(s, now, u, refunds(left))
		t.endSlot(nil)
	}
}

// lose ends an update that found something else in the slot. If its own write was applied before,
// lose makes the refunds that it owes, which no other process makes. Otherwise it gives back what
// the update has charged. If that is not known, neither is done, so that nothing is given back that
// the lease stands for.
func (t *leaseUpdate) lose(
	s *Store, now time.Time, u *driver.Update, owed []pieceDelta, r leaserecord.Result,
) {
	switch {
	case r.Applied:
		t.settle(s, now, u, owed)
	case r.Unknown:
		t.countAmbiguous(s, owed)
		t.uncertain, t.base = t.uncertain || len(owed) > 0, after(t.pieces, nil)
	default:
		t.giveBack(s, now, u)
	}
	t.lost = lostError(u.ID, r.Found, now)
}

// countAmbiguous counts what an update has charged, and what it has still to write, as units that
// may or may not be part of the lease.
func (t *leaseUpdate) countAmbiguous(s *Store, left []pieceDelta) {
	for _, d := range slices.Concat(left, t.charged()) {
		s.buckets.Counts.AmbiguousRecord(max(d.milli, -d.milli))
	}
}

// keepUntil returns the Unix millisecond up to which the table must keep the record of a lease.
func keepUntil(u *driver.Update, slot *schema.Lease) int64 {
	return max(slot.EndedMS, slot.ExpiresMS, u.Lease.Expires.UnixMilli(), u.ID.UnixMilli()) +
		u.Memory.Milliseconds()
}

// lostError returns the answer to an update that found something else in the slot; found is nil if
// the slot is empty.
func lostError(id weir.LeaseID, found *schema.Lease, now time.Time) error {
	if found == nil {
		return weir.NewError(weir.UnknownLease, "lease_id", id, "is not in the table")
	}
	return &driver.StaleError{Lease: leaseRecord(id, found, now)}
}

// endSlot ends the phase of the slot with an error or nil.
func (t *leaseUpdate) endSlot(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		t.err = err
	}
	t.ended()
}

// giveBack returns what the update has charged, because the lease was changed by another process.
func (t *leaseUpdate) giveBack(s *Store, now time.Time, u *driver.Update) {
	t.settle(s, now, u, t.charged())
}

// charged returns the deltas that give back what the update has charged.
func (t *leaseUpdate) charged() []pieceDelta {
	var deltas []pieceDelta
	for i := range t.pieces {
		for k, p := range t.pieces[i] {
			if charged := p.milli - t.base[i][k].milli; charged > 0 {
				deltas = append(deltas, pieceDelta{i, k, -charged, p.shard})
			}
		}
	}
	return deltas
}

// settle makes refunds that no later update makes again. If a refund fails for the moment, it is
// repeated in the background.
func (t *leaseUpdate) settle(s *Store, now time.Time, u *driver.Update, deltas []pieceDelta) {
	_ = t.enqueueUntil(s, now, u, deltas, func(d *itemDeltas, err error) { // refunds do not overflow
		if err != nil {
			d.queue.Enqueue(&bucketitem.Update{Now: d.update.Now, Deltas: d.update.Deltas})
		}
		t.finish(d, nil)
	})
}

// after returns pieces after deltas were made.
func after(pieces [][]shardPiece, deltas []pieceDelta) [][]shardPiece {
	out := make([][]shardPiece, len(pieces))
	for i := range pieces {
		out[i] = slices.Clone(pieces[i])
	}
	for _, d := range deltas {
		out[d.holding][d.piece].milli += d.milli
	}
	return out
}
