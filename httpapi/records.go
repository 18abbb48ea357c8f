package httpapi

import (
	"context"
	"strconv"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/apijson"
)

// Records reads what a store has recorded. [*limiter.Limiter] and [*Client] implement it, with the
// rules of the limiter's methods. If the store does not keep these records, the errors have code
// [weir.Unsupported].
type Records interface {
	// Usage returns a page of the units used in windows of time.
	Usage(ctx context.Context, q *weir.UsageQuery) (*weir.UsagePage, error)
	// Audit returns a page of the changes of the configuration, the newest first.
	Audit(ctx context.Context, q *weir.AuditQuery) (*weir.AuditPage, error)
}

// Usage returns a page of the units used in windows of time; see [Records]. The role read is
// enough.
func (c *Client) Usage(ctx context.Context, q *weir.UsageQuery) (*weir.UsagePage, error) {
	if q == nil {
		q = &weir.UsageQuery{}
	}
	path := "/v1/usage" + query("", "entity", q.Entity, "resource", q.Resource, "limit", q.Limit,
		"window", string(q.Window), "from", apijson.Bound(q.From), "to", apijson.Bound(q.To),
		"after", q.After, "size", sizeText(q.Size))
	return ask(ctx, c, path, func(body []byte) (*weir.UsagePage, error) {
		return apijson.ReadUsageList(body, q)
	})
}

// Audit returns a page of the changes of the configuration, the newest first; see [Records]. The
// role read is enough.
func (c *Client) Audit(ctx context.Context, q *weir.AuditQuery) (*weir.AuditPage, error) {
	if q == nil {
		q = &weir.AuditQuery{}
	}
	path := "/v1/audit" + query("", "entity", q.At.Entity, "resource", q.At.Resource,
		"from", apijson.Bound(q.From), "to", apijson.Bound(q.To), "after", q.After,
		"size", sizeText(q.Size))
	return ask(ctx, c, path, func(body []byte) (*weir.AuditPage, error) {
		return apijson.ReadAuditList(body, q)
	})
}

// sizeText returns the parameter size of a query: empty for the default.
func sizeText(size int) string {
	if size == 0 {
		return ""
	}
	return strconv.Itoa(size)
}
