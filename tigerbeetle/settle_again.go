//go:build cgo

package tigerbeetle

import (
	"context"

	"github.com/weir-limiter/weir"
)

// stale reads a lease that somebody else has changed, or that this update has changed before, and tells
// the limiter. A lease that is to be withdrawn is left to whoever has changed it.
func (c *settling) stale(ctx context.Context) error {
	if c.withdraws {
		c.taken = true
		return nil
	}
	h, err := c.s.recover(ctx, c.u.ID)
	if err != nil {
		return err
	}
	if h == nil {
		return unknown(c.u.ID)
	}
	if h.record.State == weir.LeaseLive && len(h.record.Holdings) != len(c.changes) {
		return unexpected("query_transfers", "other holdings of the lease")
	}
	return &weir.StaleError{Lease: &h.record}
}

func unknown(id weir.LeaseID) error {
	return &weir.Error{Code: weir.UnknownLease, Field: "lease_id", Value: id.String()}
}
