package httpapi

import (
	"context"
	"net/http"

	"github.com/weir-limiter/weir"
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
	r, err := h.readReserve(c)
	if r != nil && r.brings && c.identity.Role < RoleAdmin {
		return nil, refusal(http.StatusForbidden, &weir.Error{
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
	return c.say(leaseText{lease}, left), nil
}

// readReserve reads the body; the request is nil where it could not be.
func (h *Handler) readReserve(c *incoming) (*reserveRequest, error) {
	if r := scanReserve(c.in); r != nil {
		return r, nil
	}
	v, err := parseDocument(c.in)
	if err != nil {
		return nil, err
	}
	return readReserve(v)
}

// take reserves.
func (h *Handler) take(ctx context.Context, r *reserveRequest) (*weir.Lease, error) {
	lease, err := h.service.Reserve(ctx, &r.Request)
	if err != nil && r.order != nil {
		err = reword(err, r.word)
	}
	return lease, err
}

func (h *Handler) adjust(ctx context.Context, c *incoming) (*answer, error) {
	return h.settle(ctx, c, adjustRequest(), adjustLease)
}

func (h *Handler) complete(ctx context.Context, c *incoming) (*answer, error) {
	return h.settle(ctx, c, completeRequest(), completeLease)
}

func (h *Handler) cancel(ctx context.Context, c *incoming) (*answer, error) {
	return h.settle(ctx, c, leaseRefRequest(), cancelLease)
}

func (h *Handler) extend(ctx context.Context, c *incoming) (*answer, error) {
	return h.settle(ctx, c, leaseRefRequest(), extendLease)
}

// settlement gives a verb on a lease to the service.
type settlement func(context.Context, weir.Service, *settleRequest) (*weir.Receipt, error)

func adjustLease(ctx context.Context, to weir.Service, s *settleRequest) (*weir.Receipt, error) {
	return to.Adjust(ctx, s.id, s.seq, s.totals)
}

func completeLease(ctx context.Context, to weir.Service, s *settleRequest) (*weir.Receipt, error) {
	return to.Complete(ctx, s.id, s.totals)
}

func cancelLease(ctx context.Context, to weir.Service, s *settleRequest) (*weir.Receipt, error) {
	return to.Cancel(ctx, s.id)
}

func extendLease(ctx context.Context, to weir.Service, s *settleRequest) (*weir.Receipt, error) {
	return to.Extend(ctx, s.id)
}

// settle reads a verb on a lease and gives it to the service.
func (h *Handler) settle(
	ctx context.Context, c *incoming, empty settleRequest, do settlement,
) (*answer, error) {
	s := &c.verb
	*s = empty
	if err := h.readSettle(c, s); err != nil {
		return nil, err
	}
	receipt, err := do(ctx, h.service, s)
	if err != nil {
		return nil, s.reword(err)
	}
	return c.say(receiptText{receipt}, nil), nil
}

// readSettle reads the body into s.
func (h *Handler) readSettle(c *incoming, s *settleRequest) error {
	if scanSettle(c.in, s) {
		return nil
	}
	v, err := parseDocument(c.in)
	if err != nil {
		return err
	}
	return readSettle(v, s)
}
