package httpapi

import (
	"context"
	"errors"
	"slices"

	"github.com/weir-limiter/weir"
)

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
