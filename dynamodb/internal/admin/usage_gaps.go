package admin

import (
	"context"
	"errors"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/stream"
	"github.com/weir-limiter/weir/dynamodb/internal/tables"
)

// UsageGaps returns the times that the table's aggregator has marked as incomplete, and the time since
// the last record that it has counted. If the Python library's function counts the usage, no gap is
// known. Nor is one known to a caller who may not read the aggregator's records, which are the whole
// table's: then all of the time until now is a gap, with that reason.
func (a *Admin) UsageGaps(
	ctx context.Context, now time.Time, _ *weir.UsageQuery,
) ([]weir.UsageGap, error) {
	c, err := stream.ReadCoverage(ctx, a.Client, a.config.Namespace)
	if errors.Is(err, weir.PermissionDenied) {
		return []weir.UsageGap{{
			To: now, Reason: "the aggregator's records may not be read, so it is not known what it has counted",
		}}, nil
	}
	if err != nil {
		return nil, err
	}
	if c.Counted {
		return append(c.Gaps, weir.UsageGap{
			From: c.Until, To: now, Reason: "the aggregator may not have counted it yet",
		}), nil
	}
	v, err := (&tables.Table{Client: a.Client}).ReadVersion(ctx)
	if err == nil && (v == nil || v.Lambda == "") {
		c.Gaps = append(c.Gaps, weir.UsageGap{
			To: now, Reason: "no aggregator has run on the table: weir aggregate counts its usage",
		})
	}
	return c.Gaps, err
}
