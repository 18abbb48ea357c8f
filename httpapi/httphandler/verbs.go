package httphandler

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/apijson"
)

func (h *Handler) reserve(ctx context.Context, c *incoming) (any, error) {
	r, err := c.reader.reserve(c.in)
	if r != nil && r.brings && c.identity.Role < RoleAdmin {
		return nil, apijson.Refusal(http.StatusForbidden, &weir.Error{
			Code: weir.PermissionDenied, Field: "limits",
			Reason: "only the role admin may set limits in a request",
		})
	}
	if err != nil {
		return nil, err
	}
	lease, err := h.service.Reserve(ctx, &r.Request)
	c.details.reserved(&r.Request, lease, err)
	if err != nil {
		return nil, r.reword(err)
	}
	if r.LeaseID.IsZero() && !lease.Degraded {
		c.made = lease.ID
	}
	if err := h.gone(ctx, c); err != nil {
		return nil, err
	}
	c.limits = lease.Limits
	if lease.Replay {
		c.limits = h.statusNow(ctx, lease.Limits, r.Limits)
	}
	return apijson.LeaseText{Lease: lease}, nil
}

// update returns the endpoint of an update. The endpoint reads the body into a copy of empty, and
// calls do.
func update(
	empty updateBody, do func(context.Context, weir.Service, *updateBody) (*weir.Receipt, error),
) endpoint {
	return func(h *Handler, ctx context.Context, c *incoming) (any, error) {
		u := &c.update
		*u = empty
		if err := c.reader.update(c.in, u); err != nil {
			return nil, err
		}
		if c.details != nil {
			c.details.LeaseID = u.leaseID
		}
		receipt, err := do(ctx, h.service, u)
		if err != nil {
			return nil, u.reword(err)
		}
		return apijson.ReceiptText{Receipt: receipt}, nil
	}
}

func adjust(ctx context.Context, s weir.Service, u *updateBody) (*weir.Receipt, error) {
	return s.Adjust(ctx, u.leaseID, u.seq, u.totals)
}

func complete(ctx context.Context, s weir.Service, u *updateBody) (*weir.Receipt, error) {
	return s.Complete(ctx, u.leaseID, u.totals)
}

func cancel(ctx context.Context, s weir.Service, u *updateBody) (*weir.Receipt, error) {
	return s.Cancel(ctx, u.leaseID)
}

func extend(ctx context.Context, s weir.Service, u *updateBody) (*weir.Receipt, error) {
	return s.Extend(ctx, u.leaseID)
}

// giveBackTime bounds the cancel of a lease whose caller has hung up.
const giveBackTime = 10 * time.Second

// gone cancels the lease and returns an error if the caller hung up before the answer was written.
// A caller that brought the lease ID can repeat the call, so its lease stays.
func (h *Handler) gone(ctx context.Context, c *incoming) error {
	if c.made.IsZero() || ctx.Err() == nil && !h.options.HungUp(ctx) {
		return nil
	}
	h.giveBack(ctx, c)
	return &weir.Error{
		Code: weir.Unavailable, Reason: "the caller disconnected; what was reserved is given back",
	}
}

// giveBack cancels a lease that cannot be settled: the server made its ID, and the caller did not
// get the answer with it.
func (h *Handler) giveBack(ctx context.Context, c *incoming) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackTime)
	defer cancel()
	id := c.made
	c.made = weir.LeaseID{}
	if _, err := h.service.Cancel(ctx, id); err != nil {
		h.notGivenBack.Add(1)
		h.options.Logger.WarnContext(ctx,
			"the lease of a caller that disconnected could not be cancelled",
			slog.String("lease_id", id.String()), slog.Any("error", err))
		return
	}
	h.givenBack.Add(1)
}

// Abandoned counts the leases whose ID the server made and whose caller hung up before the answer
// was written. The first result counts the leases that were cancelled, the second those whose
// cancel failed; these stay charged until they end.
func (h *Handler) Abandoned() (cancelled, failed int64) {
	return h.givenBack.Load(), h.notGivenBack.Load()
}

// statusNow returns the current status of the limits that judged a replayed reservation, for the
// RateLimit headers; the body of the answer repeats the first status. It leaves out limits that
// were removed, and returns nil if the service fails. If the request brought a lower capacity,
// statusNow lowers the current one to it.
func (h *Handler) statusNow(
	ctx context.Context, judged []weir.LimitStatus, brought []weir.Limit,
) []weir.LimitStatus {
	var known []weir.LimitStatus
	asked := map[weir.Subject]bool{}
	present := make([]weir.LimitStatus, 0, len(judged))
	for i := range judged {
		then := &judged[i]
		same := func(s weir.LimitStatus) bool {
			return s.Entity == then.Entity && s.Resource == then.Resource &&
				s.Limit == then.Limit && s.Kind == then.Kind
		}
		at, of := slices.IndexFunc(known, same), weir.Subject{Entity: then.Entity, Resource: then.Resource}
		if at < 0 && !asked[of] { // the answer has the limits of its ancestors too
			asked[of] = true
			all, err := h.service.Status(ctx, of.Entity, of.Resource)
			if err != nil && !errors.Is(err, weir.NoLimits) {
				h.logHidden(ctx, err)
				return nil
			}
			known = append(known, all...)
			at = slices.IndexFunc(known, same)
		}
		if at < 0 {
			continue
		}
		now := known[at]
		if lowered := slices.ContainsFunc(brought, func(l weir.Limit) bool {
			return l.Name == then.Limit && l.Capacity == then.Capacity
		}); lowered && then.Capacity < now.Capacity {
			now.Available -= now.Capacity - then.Capacity
			now.Capacity = then.Capacity
		}
		present = append(present, now)
	}
	return present
}
