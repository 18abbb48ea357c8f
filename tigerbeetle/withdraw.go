//go:build cgo

package tigerbeetle

import (
	"context"

	"github.com/weir-limiter/weir"
)

// withdraw gives back what an attempt was charged, unless the lease has been adopted on another
// server or has ended. If it is unknown whether the attempt was carried out, the lease ID is
// voided first: then it cannot be any more.
func (s *Store) withdraw(ctx context.Context, a *attempt) (did bool, err error) {
	id := a.c.plan.ID
	var holdings []weir.Holding
	if a.c.unknown {
		reserved, err := s.void(ctx, id)
		if err != nil || !reserved {
			return false, err
		}
		h, err := s.recover(ctx, id)
		if err != nil {
			return false, err
		}
		if h == nil || h.record.State != weir.LeaseLive || h.token() != 0 {
			return false, nil
		}
		holdings = h.record.Holdings
	} else {
		holdings = a.c.plan.Holdings(a.c.out)
	}
	c := newSettling(s, cancelling(id, holdings))
	c.withdraws = true
	out, err := c.run(ctx)
	return out != nil, err
}

// cancelling is the update that cancels a lease.
func cancelling(id weir.LeaseID, holdings []weir.Holding) *weir.Update {
	u := &weir.Update{ID: id, Verb: weir.VerbCancel, Changes: make([]weir.Change, len(holdings))}
	for i := range holdings {
		h := &holdings[i]
		parts := make([]weir.Part, len(h.Parts))
		for k, p := range h.Parts {
			parts[k] = weir.Part{Charge: p.Charge}
		}
		u.Changes[i] = weir.Change{Holding: h, Limit: h.Limit, From: h.Cost(), Parts: parts}
	}
	return u
}
