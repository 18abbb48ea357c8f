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
	c := &settling{s: s, st: cancelling(id, holdings), withdraws: true}
	if err := c.begin(holdings); err != nil {
		return false, err
	}
	out, err := c.run(ctx)
	return out != nil, err
}

// cancelling is the settlement that cancels a lease.
func cancelling(id weir.LeaseID, holdings []weir.Holding) *weir.Settlement {
	st := &weir.Settlement{ID: id, Verb: weir.VerbCancel, Holdings: holdings}
	for i := range holdings {
		h := &holdings[i]
		parts := make([]weir.Part, len(h.Parts))
		for k, p := range h.Parts {
			parts[k] = weir.Part{Charge: p.Charge}
		}
		st.Totals = append(st.Totals, parts)
		st.Limits = append(st.Limits, h.Limit)
	}
	return st
}
