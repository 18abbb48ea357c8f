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

// verbRoutes are what callers do with leases.
func verbRoutes() []route {
	return []route{
		{method: "POST", path: "/v1/reserve", role: RoleCall, serve: (*Handler).reserve},
		{method: "POST", path: "/v1/adjust", role: RoleCall, serve: (*Handler).adjust},
		{method: "POST", path: "/v1/complete", role: RoleCall, serve: (*Handler).complete},
		{method: "POST", path: "/v1/cancel", role: RoleCall, serve: (*Handler).cancel},
		{method: "POST", path: "/v1/extend", role: RoleCall, serve: (*Handler).extend},
	}
}

func (h *Handler) reserve(ctx context.Context, c *incoming) (*answer, error) {
	r, err := apijson.ReadReserve(c.in)
	if r != nil && r.Brings && c.identity.Role < RoleAdmin {
		return nil, apijson.Refusal(http.StatusForbidden, &weir.Error{
			Code: weir.PermissionDenied, Field: "limits", Reason: "only an admin may bring limits",
		})
	}
	if err != nil {
		return nil, err
	}
	lease, err := h.take(ctx, r)
	if err != nil {
		return nil, err
	}
	if r.LeaseID.IsZero() && !lease.Degraded {
		c.made = lease.ID
	}
	if err := h.gone(ctx, c); err != nil {
		return nil, err
	}
	left := lease.Limits
	if lease.Replay {
		left = h.leftNow(ctx, lease.Limits, r.Limits)
	}
	return c.say(apijson.LeaseText{Lease: lease}, left), nil
}

// take reserves.
func (h *Handler) take(ctx context.Context, r *apijson.Reserve) (*weir.Lease, error) {
	lease, err := h.service.Reserve(ctx, &r.Request)
	if err != nil {
		return nil, r.Reword(err)
	}
	return lease, nil
}

func (h *Handler) adjust(ctx context.Context, c *incoming) (*answer, error) {
	return h.settle(ctx, c, apijson.NewAdjust(), adjustLease)
}

func (h *Handler) complete(ctx context.Context, c *incoming) (*answer, error) {
	return h.settle(ctx, c, apijson.NewComplete(), completeLease)
}

func (h *Handler) cancel(ctx context.Context, c *incoming) (*answer, error) {
	return h.settle(ctx, c, apijson.Update{}, cancelLease)
}

func (h *Handler) extend(ctx context.Context, c *incoming) (*answer, error) {
	return h.settle(ctx, c, apijson.Update{}, extendLease)
}

// settlement gives a verb on a lease to the service.
type settlement func(context.Context, weir.Service, *apijson.Update) (*weir.Receipt, error)

func adjustLease(ctx context.Context, to weir.Service, s *apijson.Update) (*weir.Receipt, error) {
	return to.Adjust(ctx, s.LeaseID, s.Seq, s.Totals)
}

func completeLease(ctx context.Context, to weir.Service, s *apijson.Update) (*weir.Receipt, error) {
	return to.Complete(ctx, s.LeaseID, s.Totals)
}

func cancelLease(ctx context.Context, to weir.Service, s *apijson.Update) (*weir.Receipt, error) {
	return to.Cancel(ctx, s.LeaseID)
}

func extendLease(ctx context.Context, to weir.Service, s *apijson.Update) (*weir.Receipt, error) {
	return to.Extend(ctx, s.LeaseID)
}

// settle reads a verb on a lease and gives it to the service.
func (h *Handler) settle(
	ctx context.Context, c *incoming, empty apijson.Update, do settlement,
) (*answer, error) {
	s := &c.verb
	*s = empty
	if err := apijson.ReadUpdate(c.in, s); err != nil {
		return nil, err
	}
	receipt, err := do(ctx, h.service, s)
	if err != nil {
		return nil, s.Reword(err)
	}
	return c.say(apijson.ReceiptText{Receipt: receipt}, nil), nil
}

// giveBackTime is how long the handler tries to cancel the lease of a caller that has gone.
const giveBackTime = 10 * time.Second

// gone gives back a lease whose caller has hung up before the answer was written, and returns an
// error then. A caller that brought the lease's ID can repeat the call, so its lease stays.
func (h *Handler) gone(ctx context.Context, c *incoming) error {
	if c.made.IsZero() || ctx.Err() == nil && !h.options.HungUp(ctx) {
		return nil
	}
	h.giveBack(ctx, c)
	return &weir.Error{
		Code: weir.Unavailable, Reason: "the caller has gone; what was reserved is given back",
	}
}

// giveBack cancels a lease that nobody will settle, because the handler made its ID and its caller
// does not hear of it.
func (h *Handler) giveBack(ctx context.Context, c *incoming) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackTime)
	defer cancel()
	id := c.made
	c.made = weir.LeaseID{}
	if _, err := h.service.Cancel(ctx, id); err != nil {
		h.notGivenBack.Add(1)
		h.options.Logger.WarnContext(ctx, "the lease of a caller that has gone could not be cancelled",
			slog.String("lease_id", id.String()), slog.Any("error", err))
		return
	}
	h.givenBack.Add(1)
}

// Abandoned counts the leases whose caller hung up before the answer to the reserve was written,
// and whose ID the server made: those that were cancelled, and those that could not be and stay
// charged until they end.
func (h *Handler) Abandoned() (cancelled, failed int64) {
	return h.givenBack.Load(), h.notGivenBack.Load()
}

// leftNow returns the limits that a repeated reservation was judged by, as they are now: what its
// answer repeats was left when it was first given. A limit that is gone by now is left out, and all
// are where the service cannot tell. The request brought some of them lowered.
func (h *Handler) leftNow(ctx context.Context, judged []weir.LimitStatus, brought []weir.Limit) []weir.LimitStatus {
	known := map[weir.Subject][]weir.LimitStatus{}
	left := make([]weir.LimitStatus, 0, len(judged))
	for i := range judged {
		then := &judged[i]
		of := weir.Subject{Entity: then.Entity, Resource: then.Resource}
		limits, ok := known[of]
		if !ok {
			var err error
			limits, err = h.service.Status(ctx, of.Entity, of.Resource)
			if err != nil && !errors.Is(err, weir.NoLimits) {
				h.logHidden(ctx, err)
				return nil
			}
			known[of] = limits
		}
		at := slices.IndexFunc(limits, func(s weir.LimitStatus) bool {
			return s.Limit == then.Limit && s.Kind == then.Kind
		})
		if at < 0 {
			continue
		}
		now := limits[at]
		if lowered := slices.ContainsFunc(brought, func(l weir.Limit) bool {
			return l.Name == then.Limit && l.Capacity == then.Capacity
		}); lowered && then.Capacity < now.Capacity {
			now.Available -= now.Capacity - then.Capacity
			now.Capacity = then.Capacity
		}
		left = append(left, now)
	}
	return left
}
