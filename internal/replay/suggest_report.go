package replay

import (
	"context"
	"fmt"
	"math/big"
	"strings"

	"github.com/weir-limiter/weir"
)

// Suggestions are capacities that would have denied at most a share of the calls.
type Suggestions struct {
	// Share is what may be denied, in per cent, and MayDeny so many calls.
	Share   string `json:"share_percent"`
	MayDeny int64  `json:"may_deny"`
	Calls   int64  `json:"calls"`
	// DeniedNow is how many calls the limits as they are denied when they came, and Denied how
	// many the suggested ones do, as a whole replay of each counted them.
	DeniedNow        int64  `json:"denied_now"`
	DeniedNowPercent string `json:"denied_now_percent"`
	Denied           int64  `json:"denied"`
	DeniedPercent    string `json:"denied_percent"`
	// EachMayDeny is the share, in per cent, that each limit may deny by itself of the calls that
	// it judges, so that all together deny few enough.
	EachMayDeny string            `json:"each_may_deny_percent"`
	Limits      []*LimitSuggested `json:"limits"`
	LeftOut     []LimitLeftOut    `json:"left_out"`
	// Replays is how many replays it took.
	Replays int64 `json:"replays"`

	// Definitions are those that were replayed, with the suggested capacities.
	Definitions *weir.Definitions `json:"-"`
}

// LimitSuggested is a capacity for a limit where the definitions have it, for all entities alike.
type LimitSuggested struct {
	// Field is its path in a limits file, and Place that of what it belongs to.
	Field string    `json:"field"`
	Place string    `json:"place"`
	Limit string    `json:"limit"`
	Kind  weir.Kind `json:"kind"`
	// Calls is how many calls it judges.
	Calls int64 `json:"calls"`
	// Capacities are in units. Refill amounts, of a bucket, keep their ratio to them.
	Capacity              int64 `json:"capacity"`
	RefillAmount          int64 `json:"refill_amount,omitempty"`
	SuggestedCapacity     int64 `json:"suggested_capacity"`
	SuggestedRefillAmount int64 `json:"suggested_refill_amount,omitempty"`
	// ChangePercent is the change of the capacity, rounded towards zero.
	ChangePercent string `json:"change_percent"`
	// Denials are calls that exceeded the limit when they came, or cost more than it holds: with
	// all limits as they are, with the suggested capacity and nothing else, and with all that are
	// suggested.
	DeniedNow      int64 `json:"denied_now"`
	DeniedAlone    int64 `json:"denied_alone"`
	DeniedTogether int64 `json:"denied_together"`
}

// LimitLeftOut is a limit that keeps its capacity.
type LimitLeftOut struct {
	Field string `json:"field"`
	Why   string `json:"why"`
}

// suggestions replays the limits as they are, and those that were found, and says what became of
// both.
func (s *sizer) suggestions(ctx context.Context, part int64, sizes []int64) (*Suggestions, error) {
	now := make([]int64, len(s.sized))
	for i, d := range s.sized {
		now[i] = d.limit.Capacity
	}
	calls := int64(len(s.calls))
	found := s.with(sizes)
	before, blamed, err := s.verify(ctx, s.definitions, now)
	if err != nil {
		return nil, err
	}
	after, left, err := s.verify(ctx, found, sizes)
	if err != nil {
		return nil, err
	}
	out := &Suggestions{
		Share: shareText(s.share.thousandths), MayDeny: s.share.of(calls), Calls: calls,
		DeniedNow: before, DeniedNowPercent: shareOf(before, calls),
		Denied: after, DeniedPercent: shareOf(after, calls),
		EachMayDeny: shareText(s.share.thousandths * part / commonSteps),
		Limits:      []*LimitSuggested{}, LeftOut: append([]LimitLeftOut{}, s.leftOut...),
		Replays: s.told.Replays, Definitions: found,
	}
	if after > out.MayDeny {
		return nil, fmt.Errorf("suggest: a second replay denies %d calls, and %d are the most",
			after, out.MayDeny)
	}
	for i, d := range s.sized {
		l := d.sized(sizes[i])
		out.Limits = append(out.Limits, &LimitSuggested{
			Field: d.field(), Place: d.place, Limit: l.Name, Kind: l.Kind, Calls: d.calls,
			Capacity: d.limit.Capacity, RefillAmount: d.limit.RefillAmount,
			SuggestedCapacity: l.Capacity, SuggestedRefillAmount: l.RefillAmount,
			ChangePercent: changeText(d.limit.Capacity, l.Capacity),
			DeniedNow:     blamed[i], DeniedTogether: left[i],
			DeniedAlone: d.denied[roundUp(sizes[i])].calls,
		})
	}
	return out, nil
}

// verify counts by a whole replay what some definitions deny when it comes first: all calls, and
// those of each declared limit with these capacities.
func (s *sizer) verify(
	ctx context.Context, d *weir.Definitions, sizes []int64,
) (denied int64, by []int64, err error) {
	f, b := s.firstTries(unbounded), newBlame(s.of, sizes)
	_, err = Run(ctx, d, s.Workload, &Options{
		Estimate: s.options.Estimate, Retry: s.options.Retry, Watchers: []Watcher{f, b},
	})
	s.tell(func(p *SuggestProgress) { p.Replays++ })
	return f.denied, b.denied, err
}

// changeText is by how many per cent a number changes, with a sign and one decimal, rounded
// towards zero.
func changeText(from, to int64) string {
	n := new(big.Int).Sub(big.NewInt(to), big.NewInt(from))
	sign := "+"
	if n.Sign() < 0 {
		sign = "-"
	}
	text := string(percent(n.Abs(n), big.NewInt(from)))
	if strings.Trim(text, "0.") == "" {
		return "0.0"
	}
	return sign + text
}
