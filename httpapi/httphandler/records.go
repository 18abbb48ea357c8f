package httphandler

import (
	"context"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/apijson"
)

func (h *Handler) usage(ctx context.Context, c *incoming) (any, error) {
	from, to, size, err := recordsRange(c.query)
	if err != nil {
		return nil, err
	}
	page, err := h.options.Records.Usage(ctx, &weir.UsageQuery{
		Entity: c.query["entity"], Resource: c.query["resource"], Limit: c.query["limit"],
		Window: weir.UsageWindow(c.query["window"]), From: from, To: to,
		After: c.query["after"], Size: size,
	})
	if err != nil {
		return nil, err
	}
	return apijson.UsageListOf(page), nil
}

func (h *Handler) audit(ctx context.Context, c *incoming) (any, error) {
	from, to, size, err := recordsRange(c.query)
	if err != nil {
		return nil, err
	}
	page, err := h.options.Records.Audit(ctx, &weir.AuditQuery{
		At:   weir.Subject{Entity: c.query["entity"], Resource: c.query["resource"]},
		From: from, To: to, After: c.query["after"], Size: size,
	})
	if err != nil {
		return nil, err
	}
	return apijson.AuditListOf(page), nil
}

// recordsRange reads the query parameters from, to and size. It reports every mistake.
func recordsRange(query map[string]string) (from, to time.Time, size int, err error) {
	var errs []error
	keep := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	from, err = apijson.ReadBound("from", query["from"])
	keep(err)
	to, err = apijson.ReadBound("to", query["to"])
	keep(err)
	size, err = pageSize(query)
	keep(err)
	return from, to, size, apijson.Join(errs)
}
