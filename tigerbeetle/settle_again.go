//go:build cgo

package tigerbeetle

import (
	"context"

	"github.com/weir-limiter/weir"
)

// reload reads the lease again, which somebody else has settled. It answers where that was an
// adjust with a later number.
func (c *settling) reload(ctx context.Context) (*weir.Outcome, error) {
	if c.withdraws {
		c.taken = true
		return nil, nil // There is nothing to withdraw any more.
	}
	h, err := c.s.recover(ctx, c.st.ID)
	if err != nil {
		return nil, err
	}
	if h == nil {
		return nil, &weir.Error{Code: weir.UnknownLease, Field: "lease_id", Value: c.st.ID.String()}
	}
	record := &h.record
	if record.State != weir.LeaseLive {
		return c.over(record)
	}
	if len(record.Holdings) != len(c.st.Holdings) {
		return nil, unexpected("query_transfers", "other holdings of the lease")
	}
	c.rename(record.Holdings)
	if c.st.Verb == weir.VerbAdjust && record.Seq >= c.st.Seq {
		return c.stands(h), nil
	}
	st := *c.st
	if st.Totals, err = st.Restated(record.Holdings); err != nil {
		return nil, err
	}
	c.st = &st
	if err := c.begin(record.Holdings); err != nil {
		return nil, err
	}
	c.token, c.seq = h.token(), record.Seq // also where no holding can tell
	c.extended = h.extended
	return nil, nil // It is to be sent anew.
}

// rename gives holdings that were recovered the names that are known here.
func (c *settling) rename(holdings []weir.Holding) {
	for i := range min(len(holdings), len(c.st.Holdings)) {
		h, known := &holdings[i], &c.st.Holdings[i]
		h.Subject, h.Limit, h.Level = known.Subject, known.Limit, known.Level
	}
}

// over answers where the lease has ended: the same settlement again is no mistake.
func (c *settling) over(r *weir.LeaseRecord) (*weir.Outcome, error) {
	verb, code := c.st.Verb, weir.Ended
	switch {
	case verb == weir.VerbCancel && r.State == weir.LeaseCancelled,
		verb == weir.VerbComplete && r.State == weir.LeaseCompleted && r.EndFingerprint == c.st.Fingerprint:
		return c.st.Outcome(r.EndedAt), nil
	case !c.lives():
		code = weir.Conflict
	}
	return nil, &weir.Error{
		Code: code, Field: "lease_id", Value: c.st.ID.String(), Reason: "was " + string(r.State),
	}
}

// stands answers an adjust with what the lease stands for.
func (c *settling) stands(h *history) *weir.Outcome {
	out := c.st.Outcome(h.record.SeqAt)
	out.Expires = h.record.Expires
	out.Holdings = h.record.Holdings
	return out
}

// replay answers where the cluster has carried this step out before.
func (c *settling) replay(ctx context.Context) (*weir.Outcome, error) {
	h, err := c.s.recover(ctx, c.st.ID)
	if err != nil {
		return nil, err
	}
	if h == nil {
		return nil, unexpected("query_transfers", "a lease that exists was not found")
	}
	if !c.lives() || h.record.State != weir.LeaseLive {
		return c.over(&h.record)
	}
	c.rename(h.record.Holdings)
	return c.stands(h), nil
}
