//go:build cgo

package tigerbeetle

import (
	"context"
	"slices"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/tigerbeetle/internal/client"
)

// answerConflict returns the error for a lease ID that was used for another request. The error says
// whether that lease has ended.
func (c *reserveOp) answerConflict(ctx context.Context) error {
	e := usedOtherwise(c.plan.ID)
	h, err := c.s.readHistory(ctx, c.plan.ID)
	if err != nil {
		return err
	}
	if h != nil && (h.record.State != driver.LeaseLive || h.record.Expires.UnixMilli() <= c.s.clock.nowMS()) {
		e.Code, e.Reason = weir.Ended, "was used for another request, and has ended"
	}
	return e
}

// replay answers a reservation whose lease ID the cluster knows: a repeat of the request, or a
// conflict.
func (c *reserveOp) replay(ctx context.Context) error {
	header, err := c.s.lookupHeader(ctx, c.plan.ID)
	if err != nil {
		return err
	}
	if header == nil {
		return unexpected("lookup_transfers", "a header that exists was not found")
	}
	if header.Code == codeVoid {
		return voided(c.plan.ID)
	}
	if header.UserData64 != c.plan.Fingerprint {
		return c.answerConflict(ctx)
	}
	if err := c.s.adoptLease(ctx, c.plan.ID, header); err != nil {
		return err
	}
	if err := c.s.readTakes(ctx, c.takesWhere(func(s *activeTake) bool { return !s.readInCall })); err != nil {
		return err
	}
	c.writeStatuses(c.s.clock.nowMS())
	for i := range c.out.Limits {
		c.out.Limits[i].Exceeded, c.out.Limits[i].RetryAfter, c.out.Limits[i].AtLeast = false, 0, false
	}
	c.s.replayLimits.Store(c.plan.ID, slices.Clone(c.out.Limits))
	c.out.Replay = true
	return nil
}

// voided returns the error for a lease ID that has ended without having been reserved.
func voided(id weir.LeaseID) *weir.Error {
	return &weir.Error{
		Code: weir.Ended, Field: "lease_id", Value: id.String(), Reason: "was cancelled before it was reserved",
	}
}

// lookupHeader returns the header of a lease's reservation, or nil.
func (s *Store) lookupHeader(ctx context.Context, id weir.LeaseID) (*tb.Transfer, error) {
	found, err := s.ledger.LookupTransfers(ctx, []tb.Uint128{transferID(id, 0, 0)})
	if err != nil {
		return nil, client.Unavailable(err)
	}
	if len(found) == 0 {
		return nil, nil // the lease has not been reserved
	}
	return &found[0], nil
}

// usedOtherwise returns the error for a lease ID that was used for another request.
func usedOtherwise(id weir.LeaseID) *weir.Error {
	return &weir.Error{
		Code: weir.Conflict, Field: "lease_id", Value: id.String(), Reason: "was used for another request",
	}
}

// AdoptLease prevents the server that carried a reservation out from withdrawing it.
func (s *Store) AdoptLease(ctx context.Context, _ time.Time, id weir.LeaseID, fingerprint uint64) error {
	if err := s.enter(false); err != nil {
		return err
	}
	defer s.exit()
	if s.options.ReadOnly {
		return nil
	}
	header, err := s.lookupHeader(ctx, id)
	switch {
	case err != nil || header == nil:
		return err
	case header.Code == codeVoid:
		return voided(id)
	case header.UserData64 != fingerprint:
		return nil
	}
	if err := s.adoptLease(ctx, id, header); err != nil {
		return err
	}
	s.abandoned.mu.Lock()
	a := s.abandoned.byLease[id]
	s.abandoned.mu.Unlock()
	if a != nil {
		s.keepStatuses(a)
	}
	return nil
}

// adoptLease renews the token of a lease that another server, or this one before a restart, has
// reserved and that was not updated since. The server that sent the reservation, whose caller may
// have left, then fails to withdraw it: the lease belongs to a caller of this server. If the token
// has been renewed before, nothing is left to do (docs/adr/0026-abandoned-reservations.md).
func (s *Store) adoptLease(ctx context.Context, id weir.LeaseID, header *tb.Transfer) error {
	step := stepExtend + 2*s.clock.nowMS()
	ch := s.newChain(id, step, 2)
	ch.addHeader(transferID(id, step, 0), headerData{
		code: codeExtended, fingerprint: uint64(step), amount: lowUint64(header.Amount),
	})
	ch.addVoidOrPost(transferID(id, 0, 0), flagVoid, 0, 0, 0)
	v, err := s.carryOut(ctx, ch)
	if err != nil {
		return err
	}
	switch {
	case v.created, exists(v.status), v.status == tb.TransferPendingTransferAlreadyVoided,
		v.status == tb.TransferPendingTransferAlreadyPosted:
		return nil
	}
	return unexpected("create_transfers", v.status.String())
}

// VoidLease records that a lease has ended without having been reserved, by a transfer with the ID
// of the lease's header: a chain that reserves the lease later fails at its first event, on every
// server and after a restart. It reports whether the lease exists; if it does, nothing is recorded.
// The engine does not ask for an ID that a reserve would refuse anyway.
func (s *Store) VoidLease(ctx context.Context, _ time.Time, id weir.LeaseID) (exists bool, err error) {
	if err := s.enter(true); err != nil {
		return false, err
	}
	defer s.exit()
	return s.void(ctx, id)
}

// void records that a lease ID is used up, unless the lease exists. Repeating it changes nothing.
func (s *Store) void(ctx context.Context, id weir.LeaseID) (reserved bool, err error) {
	n := &s.namespace
	ch := s.newChain(id, 0, 1)
	ch.addWithID(&tb.Transfer{
		ID: transferID(id, 0, 0), DebitAccountID: n.vault, CreditAccountID: n.register, Code: codeVoid,
		UserData128: ch.number,
	}, roleHeader, 0)
	v, err := s.carryOut(ctx, ch)
	if err != nil {
		return false, err
	}
	switch {
	case v.created, v.status == tb.TransferExists:
		return false, nil
	case exists(v.status):
		return true, nil
	}
	return false, unexpected("create_transfers", v.status.String())
}

var _ driver.LeaseVoider = (*Store)(nil)
