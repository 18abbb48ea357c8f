package httpapi

import (
	"context"
	"log/slog"
	"time"

	"github.com/weir-limiter/weir"
)

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
