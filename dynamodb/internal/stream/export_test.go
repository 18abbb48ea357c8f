package stream

import (
	"context"

	"github.com/weir-limiter/weir/aggregator"
)

// ConvertItem and PartsOf are exported for tests.
var (
	ConvertItem = convertItem
	PartsOf     = partsOf
)

// Refill writes the refills after records.
func (r *Reader) Refill(ctx context.Context, records []*aggregator.Record) {
	if r.namespaces == nil {
		r.namespaces = make(map[string]namespace)
	}
	r.refill(ctx, records)
}
