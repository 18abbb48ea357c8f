package dynamodb

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/dynamodb/internal/leaserecord"
	"github.com/weir-limiter/weir/internal/schema"
)

// wrongProtocol is a protocol with one mistake, and the case that must find it.
type wrongProtocol struct {
	name    string
	in      interleavedCase
	wrap    func(s *Store) driver.Store
	rewrite func(q *heldRequest)
}

func wrongProtocols() []wrongProtocol {
	call := interleavedCalls(1)
	reserve, other, more, less := call[0], call[1], call[2], call[3]
	complete, completeLess, cancel := call[5], call[6], call[7]
	live := func(crashes bool, calls ...modelCall) interleavedCase {
		return interleavedCase{start: startLive, charges: 1, calls: calls, crashes: crashes}
	}
	unknown := func(crashes bool, calls ...modelCall) interleavedCase {
		return interleavedCase{start: startUnknown, charges: 1, calls: calls, crashes: crashes}
	}
	phases := func(p updatePhases) func(s *Store) driver.Store {
		return func(s *Store) driver.Store { return wrongUpdates{s, p} }
	}
	return []wrongProtocol{
		{name: "refunds before the slot: two refund", in: live(false, completeLess, cancel), wrap: phases(refundsFirst)},
		{name: "refunds before the slot: a crash", in: live(true, less, cancel), wrap: phases(refundsFirst)},
		{name: "an update writes the slot before its charges", in: live(true, more, cancel), wrap: phases(slotFirst)},
		{name: "a lost update does not give back", in: live(false, more, complete), wrap: phases(keepCharges)},
		{name: "a second completion refunds again", in: live(false, completeLess, completeLess), wrap: phases(refundTwice)},
		{name: "a completion does not refund", in: live(false, completeLess, more), wrap: phases(noRefunds)},
		{name: "a reserve writes the slot before its charges", in: unknown(true, reserve, cancel),
			wrap: func(s *Store) driver.Store { return slotBeforeCharges{s} }},
		{name: "a reserve that finds the slot taken does not give back", in: unknown(false, reserve, reserve),
			wrap: func(s *Store) driver.Store { return keepsReserved{s} }},
		{name: "a cancel of an unknown ID leaves no tombstone", in: unknown(false, reserve, cancel),
			wrap: func(s *Store) driver.Store { return noTombstones{s} }},
		{name: "a reserve overwrites the slot", in: unknown(false, reserve, other), rewrite: withoutCondition},
		{name: "an update overwrites the slot", in: live(false, completeLess, complete), rewrite: withoutCondition},
		{name: "an extend overwrites the slot", in: live(false, less, call[4]), rewrite: withoutCondition},
	}
}

// TestWrongProtocolsAreCaught checks that the exploration finds each mistake, and that it finds
// nothing in the same case without it.
func TestWrongProtocolsAreCaught(t *testing.T) {
	t.Parallel()
	right := newInterleavings(t)
	for _, x := range wrongProtocols() {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			wrong := *right
			wrong.wrap, wrong.rewrite = x.wrap, x.rewrite
			done, failure := wrong.explore(t, &x.in, &exploration{})
			if failure == "" {
				t.Errorf("not found in %d schedules of %v", done, &x.in)
			}
			t.Logf("found in schedule %d:\n%s", done, failure)
		})
	}
}

// wrongUpdates makes updates in phases of its own.
type wrongUpdates struct {
	*Store
	phases updatePhases
}

// updateWork is an update under way.
type updateWork struct {
	*leaseUpdate
	s   *Store
	now time.Time
	u   *driver.Update
}

// updatePhases makes the writes of an update with the changes deltas.
type updatePhases func(ctx context.Context, w *updateWork, deltas []pieceDelta) error

// Update makes the writes of an update.
func (s wrongUpdates) Update(ctx context.Context, now time.Time, u *driver.Update, out *driver.Outcome) error {
	out.At = now.Truncate(time.Millisecond)
	w := &updateWork{leaseUpdate: newLeaseUpdate(u), s: s.Store, now: now, u: u}
	deltas, err := w.pieceDeltas(u)
	if err != nil {
		return err
	}
	if err := s.phases(ctx, w, deltas); err != nil {
		return err
	}
	out.Version = w.slot.Version
	return nil
}

// change makes changes of the bucket items.
func (w *updateWork) change(ctx context.Context, deltas []pieceDelta) error {
	return errors.Join(w.enqueue(w.s, w.now, w.u, deltas), w.wait(ctx))
}

// changeSlot writes the slot as it is after the changes deltas, and makes no refunds.
func (w *updateWork) changeSlot(ctx context.Context, deltas []pieceDelta) error {
	slot := updatedSlot(w.now, w.u, after(w.pieces, deltas))
	r, err := w.s.sendSlot(ctx, &leaserecord.Write{
		ID: w.u.ID, Replaces: w.u.Lease.Version, Lease: slot, KeepUntil: keepUntil(w.u, slot),
	})
	if err == nil && r.Lost {
		return lostError(w.u.ID, r.Found, w.now)
	}
	w.slot = slot
	return errors.Join(err, r.Err)
}

// giveBackLost gives back the charges of an update that has failed with err.
func (w *updateWork) giveBackLost(ctx context.Context, err error) error {
	if err != nil {
		w.giveBack(w.s, w.now, w.u)
		_ = w.wait(ctx)
	}
	return err
}

func refundsFirst(ctx context.Context, w *updateWork, deltas []pieceDelta) error {
	if err := w.change(ctx, deltas); err != nil {
		return err
	}
	return w.giveBackLost(ctx, w.changeSlot(ctx, nil))
}

func slotFirst(ctx context.Context, w *updateWork, deltas []pieceDelta) error {
	if err := w.changeSlot(ctx, deltas); err != nil {
		return err
	}
	return w.change(ctx, deltas)
}

func keepCharges(ctx context.Context, w *updateWork, deltas []pieceDelta) error {
	if err := w.change(ctx, charges(deltas)); err != nil {
		return err
	}
	if err := w.changeSlot(ctx, refunds(deltas)); err != nil {
		return err
	}
	return w.change(ctx, refunds(deltas))
}

func refundTwice(ctx context.Context, w *updateWork, deltas []pieceDelta) error {
	if err := w.change(ctx, charges(deltas)); err != nil {
		return err
	}
	err := w.giveBackLost(ctx, w.changeSlot(ctx, refunds(deltas)))
	return errors.Join(err, w.change(ctx, refunds(deltas)))
}

func noRefunds(ctx context.Context, w *updateWork, deltas []pieceDelta) error {
	if err := w.change(ctx, charges(deltas)); err != nil {
		return err
	}
	return w.giveBackLost(ctx, w.changeSlot(ctx, refunds(deltas)))
}

// slotBeforeCharges writes the slot of a caller's ID as that of a new ID, at the same time as the
// charges.
type slotBeforeCharges struct{ *Store }

// Reserve makes a reservation.
func (s slotBeforeCharges) Reserve(ctx context.Context, now time.Time, p *driver.Plan, out *driver.Outcome) error {
	early := *p
	early.New = true
	return s.Store.Reserve(ctx, now, &early, out)
}

// keepsReserved charges once more what a reserve gives back because the slot is taken.
type keepsReserved struct{ *Store }

// Reserve makes a reservation.
func (s keepsReserved) Reserve(ctx context.Context, now time.Time, p *driver.Plan, out *driver.Outcome) error {
	err := s.Store.Reserve(ctx, now, p, out)
	if err == nil && !out.Replay {
		return nil
	}
	again := p.Outcome()
	op, failed := s.planned(now, p, again)
	if failed != nil {
		return failed
	}
	defer op.release()
	op.markVerified()
	s.executeParallel(ctx, op)
	return err
}

// noTombstones writes no tombstones.
type noTombstones struct{ *Store }

// VoidLease reports whether the lease exists.
func (s noTombstones) VoidLease(ctx context.Context, _ time.Time, id weir.LeaseID) (exists bool, err error) {
	l, err := s.leases.Read(ctx, id)
	return l != nil && l.State != schema.LeaseVoided, err
}

// withoutCondition makes the write of a slot apply whatever the slot holds.
func withoutCondition(q *heldRequest) {
	if q.item != recordItem || !q.write {
		return
	}
	var in map[string]any
	if json.Unmarshal(q.body, &in) != nil {
		return
	}
	if c, ok := in["ConditionExpression"].(string); ok { // every name and value must be in use
		in["ConditionExpression"] = "(" + c + ") OR attribute_exists(PK) OR attribute_not_exists(PK)"
	}
	if body, err := json.Marshal(in); err == nil {
		q.body = body
	}
}
