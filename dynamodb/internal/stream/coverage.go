package stream

import (
	"cmp"
	"context"
	"slices"
	"time"

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
	// Days and Months are the starts of the first day and the first month without an item of their
	// own, whose usage is the sum of their parts.
	Days, Months time.Time
	// Gaps are the times whose usage is incomplete, in order.
	Gaps []Gap
}

// Gap is a time whose usage is incomplete.
type Gap struct {
	// From and To are the first instant and the first one after it. From is zero if all usage
	// before To is incomplete.
	From, To time.Time
	Reason   string
}

// ReadCoverage reads the coverage of a namespace, by its ID, with one query of a few items.
func ReadCoverage(ctx context.Context, c *client.Client, namespace string) (*Coverage, error) {
	s, err := readState(ctx, c)
	if err != nil {
		return nil, err
	}
	out := &Coverage{Counted: s.aggregator != nil}
	if a := s.aggregator; a != nil {
		out.Until, out.Days, out.Months = aggregator.ReadUntil(a, s.checkpoints), a.Days, a.Months
	}
	for _, g := range s.gaps {
		if g.Namespace == "" || g.Namespace == namespace {
			out.Gaps = append(out.Gaps, Gap{g.From, g.To, g.Reason})
		}
	}
	slices.SortFunc(out.Gaps, func(a, b Gap) int {
		return cmp.Or(a.From.Compare(b.From), a.To.Compare(b.To))
	})
	return out, nil
}

// Touches reports whether usage between two instants is incomplete because of a gap.
func (g *Gap) Touches(from, to time.Time) bool { return from.Before(g.To) && g.From.Before(to) }
