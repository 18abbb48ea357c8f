//go:build cgo

package tigerbeetle

import (
	"context"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
)

var _ weir.LeaseVoider = (*Store)(nil)

// VoidLease records that a lease has ended without having been reserved, by a transfer with the
// ID of the lease's header: a chain that reserves it later fails at its first event, on every
// server and after a restart. It reports whether the lease has been reserved meanwhile; then
// nothing is recorded. The limiter asks for no ID that a reserve would refuse anyway.
func (s *Store) VoidLease(ctx context.Context, _ time.Time, id weir.LeaseID) (exists bool, err error) {
	if err := s.enter(false); err != nil {
		return false, err
	}
	defer s.leave()
	if s.options.ReadOnly {
		return false, readOnly()
	}
	return s.void(ctx, id)
}

// void records that a lease ID is used up, unless the lease exists. The same again changes nothing.
func (s *Store) void(ctx context.Context, id weir.LeaseID) (reserved bool, err error) {
	n := &s.namespace
	ch := s.newChain(id, 0, 1)
	ch.put(&tb.Transfer{
		ID: transferID(id, 0, 0), DebitAccountID: n.vault, CreditAccountID: n.register, Code: codeVoid,
		UserData128: ch.number,
	}, roleHeader, 0)
	ch.close()
	results, err := s.transfer(ctx, ch)
	if err != nil {
		return false, err
	}
	v := ch.judge(results)
	s.recycle(ch)
	switch {
	case v.created, v.status == tb.TransferExists:
		return false, nil
	case exists(v.status):
		return true, nil
	}
	return false, unexpected("create_transfers", v.status.String())
}
