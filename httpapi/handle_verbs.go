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
	v, err := h.body(c)
	if err != nil {
		return nil, err
	}
	r, err := readReserve(v)
	if r.brings && c.identity.Role < RoleAdmin {
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
	left := lease.Limits
	if lease.Replay {
		left = h.leftNow(ctx, lease.Limits, r.Limits)
	}
	return &answer{
		body:   leaseBodyOf(lease),
		limits: func(header http.Header) { h.rateLimits.set(header, left) },
	}, nil
}

// take reserves, and remembers the flat keys. Nothing is reserved that could not be settled.
func (h *Handler) take(ctx context.Context, r *reserveRequest) (lease *weir.Lease, err error) {
	keys := r.keys()
	if keys == nil {
		return h.service.Reserve(ctx, &r.Request)
	}
	claimed, ok := h.flat.claim(r.LeaseID, keys)
	if !ok {
		return nil, refusal(http.StatusServiceUnavailable, &weir.Error{
			Code:   weir.Unavailable,
			Reason: "no room for another lease with flat keys; nothing was reserved",
		}, "Retry-After", "1")
	}
	defer func() { h.flat.reserved(lease, keys, claimed) }() // also while the service panics
	if lease, err = h.service.Reserve(ctx, &r.Request); err != nil {
		return nil, reword(err, r.word)
	}
	return lease, nil
}

func (h *Handler) adjust(ctx context.Context, c *incoming) (*answer, error) {
	return h.settle(c, readAdjust, func(s *settleRequest) (*weir.Receipt, error) {
		return h.service.Adjust(ctx, s.id, s.seq, s.totals)
	})
}

func (h *Handler) complete(ctx context.Context, c *incoming) (*answer, error) {
	return h.settle(c, readComplete, func(s *settleRequest) (*weir.Receipt, error) {
		return h.service.Complete(ctx, s.id, s.totals)
	})
}

func (h *Handler) cancel(ctx context.Context, c *incoming) (*answer, error) {
	return h.settle(c, readLeaseRef, func(s *settleRequest) (*weir.Receipt, error) {
		return h.service.Cancel(ctx, s.id)
	})
}

func (h *Handler) extend(ctx context.Context, c *incoming) (*answer, error) {
	return h.settle(c, readLeaseRef, func(s *settleRequest) (*weir.Receipt, error) {
		return h.service.Extend(ctx, s.id)
	})
}

// settle reads a verb on a lease, translates flat keys and gives it to the service.
func (h *Handler) settle(
	c *incoming,
	read func(*value) (*settleRequest, error),
	do func(*settleRequest) (*weir.Receipt, error),
) (*answer, error) {
	v, err := h.body(c)
	if err != nil {
		return nil, err
	}
	s, err := read(v)
	if err != nil {
		return nil, err
	}
	keys := h.flat.keys(s.id)
	if err := s.translate(keys); err != nil {
		return nil, err
	}
	receipt, err := do(s)
	if err != nil {
		if s.flat != nil {
			err = reword(err, func(f *weir.Error) string { return s.word(f, keys) })
		}
		return nil, err
	}
	h.flat.settled(receipt)
	return &answer{body: receiptBodyOf(receipt)}, nil
}
