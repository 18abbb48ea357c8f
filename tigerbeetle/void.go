//go:build cgo

package tigerbeetle

import (
	"context"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
)

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
