package stream

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/aggregator"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
)

// Coverage says for which time the usage of a table is counted.
type Coverage struct {
	// Counted reports whether usage was ever counted.
	Counted bool
	// Until is the time up to which usage is known to be counted. Later usage may not be counted
	// yet. It does not move while the table is not used.
	Until time.Time
	// Gaps are the times whose usage is incomplete, in order.
	Gaps []weir.UsageGap
}

// ReadCoverage reads the coverage of a namespace, by its ID, with one query of a few items.
func ReadCoverage(ctx context.Context, c *client.Client, namespace string) (*Coverage, error) {
	s, err := readState(ctx, c)
	if err != nil {
		return nil, err
	}
	out := &Coverage{Counted: s.aggregator != nil}
	if a := s.aggregator; a != nil {
		out.Until = aggregator.ReadUntil(a, s.checkpoints)
	}
	for _, g := range s.gaps {
		if g.Namespace == "" || g.Namespace == namespace {
			out.Gaps = append(out.Gaps, weir.UsageGap{From: g.From, To: g.To, Reason: g.Reason})
		}
	}
	slices.SortFunc(out.Gaps, func(a, b weir.UsageGap) int {
		return cmp.Or(a.From.Compare(b.From), a.To.Compare(b.To))
	})
	return out, nil
}
