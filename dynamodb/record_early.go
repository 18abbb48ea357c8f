package dynamodb

import (
	"cmp"
	"context"
	"errors"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/leaserecord"
	"github.com/weir-limiter/weir/internal/schema"
)

// earlyRecord is the write of a slot at the same time as the charges. It saves a round trip, and is
// made only for an ID that the limiter has made for this call: until the call answers, no other
// caller can use the ID, so the slot may exist before the charges.
type earlyRecord struct {
	write *leaserecord.Write
	sent  <-chan leaserecord.Result
}

// recordEarly begins to write the slot of a reservation with a new ID, if this process knows the
// items and they have enough. Otherwise the slot is written after the charges, so that a denial
// usually writes none.
func (s *Store) recordEarly(op *reserveOp) {
	if s.leases == nil || !op.plan.New || !op.likely() {
		return
	}
	w := s.slotWrite(op)
	op.early = &earlyRecord{w, s.leases.Send(w)}
}

// likely reports whether the charges will most likely be taken from the first shard of each bucket.
func (op *reserveOp) likely() bool {
	for _, ic := range op.charges {
		m := ic.state.Queue(0).ExpectedImage()
		if m == nil || m.Shards > 1 || ic.state.ShardCount() > 1 {
			return false
		}
		for k := range ic.takes {
			a := &ic.takes[k]
			if c := m.Limit(a.Name); c == nil || c.Incomplete || !c.Matches(a.Limit) || m.Available(a, op.now) < a.Needs(1) {
				return false
			}
		}
	}
	return true
}

// rightFor returns the early write, unless there is none or it does not say where the units were
// taken. In the second case another write must replace it.
func (e *earlyRecord) rightFor(op *reserveOp) (*leaserecord.Write, <-chan leaserecord.Result) {
	if e == nil {
		return nil, nil
	}
	for i := range op.out.Taken {
		if len(op.out.Taken[i].Pieces) > 0 {
			return nil, nil
		}
	}
	return e.write, e.sent
}

// withdrawEarly ends the early write for a reservation that is not admitted, before the caller learns
// the ID: the slot would answer a repeat of the reservation as admitted. If that is in doubt, the
// error does not name the ID. again reports that the reservation will be planned again with the ID.
func (s *Store) withdrawEarly(ctx context.Context, op *reserveOp, again bool) error {
	e := op.early
	if e == nil {
		return nil
	}
	op.early = nil
	done := make(chan error, 1)
	s.running.Run(func() { done <- s.withdraw(e, op.now, again) })
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err == nil {
		return nil
	}
	return &weir.Error{
		Code: weir.Unavailable, Field: "store", Err: err,
		Reason: "the table did not answer: reserve again, with a new lease ID",
	}
}

// withdraw empties the slot of an early write. If an attempt of that write had no answer, it may
// still arrive, and an empty slot would let it in. So the slot gets a tombstone instead, under which
// the reservation cannot be planned again.
func (s *Store) withdraw(e *earlyRecord, now int64, again bool) error {
	written := <-e.sent
	if written.Err != nil && !written.Unknown {
		return nil
	}
	w := &leaserecord.Write{
		ID: e.write.ID, Replaces: e.write.Lease.Version, KeepUntil: e.write.KeepUntil,
	}
	if e.write.Doubtful {
		w.Lease = &schema.Lease{Version: newVersion(), State: schema.LeaseVoided, EndedMS: now}
	}
	r := <-s.leases.Send(w)
	if err := cmp.Or(written.Err, r.Err); err != nil || !e.write.Doubtful || !again {
		return err // a write in doubt may still arrive
	}
	return errors.New("an earlier attempt of the write had no answer")
}
