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
	keys := r.keys()
	lease, err := h.service.Reserve(ctx, &r.Request)
	if err != nil {
		if keys != nil {
			err = reword(err, r.word)
		}
		return nil, err
	}
	h.flat.reserved(lease, keys)
	return &answer{
		body:   leaseBodyOf(lease),
		limits: func(header http.Header) { h.rateLimits.set(header, lease.Limits) },
	}, nil
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
	var keys []string
	if s.flat != nil {
		if keys = h.flat.keys(s.id); keys == nil {
			return nil, &weir.Error{
				Code: weir.UnknownLease, Field: "lease_id", Value: s.id.String(),
				Reason: "is not known here as one with flat keys",
			}
		}
		if err := s.place(keys); err != nil {
			return nil, err
		}
	}
	receipt, err := do(s)
	if err != nil {
		if keys != nil {
			err = reword(err, func(f *weir.Error) string { return s.word(f, keys) })
		}
		return nil, err
	}
	h.flat.settled(receipt)
	return &answer{body: receiptBodyOf(receipt)}, nil
}
