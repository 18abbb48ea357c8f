package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/lab/trace"
)

// SuggestOptions say how calls behave while [Suggest] searches.
type SuggestOptions struct {
	// Estimate says how many output tokens a call reserves. Default: the number that it generated.
	Estimate Estimate
	// Retry makes denied calls come back; they count as denied. Default: they do not come back.
	Retry *RetryOptions
	// Progress is told how far the search is, by one goroutine at a time. Default: none.
	Progress func(SuggestProgress)
}

// SuggestProgress is the progress of a search for capacities.
type SuggestProgress struct {
	// Limits is the number of limits, and Sized of how many a capacity is known that denies few enough
	// calls by itself.
	Sized, Limits int
	// Replays is the number of replays that were run, and Calls that of the calls in all of them.
	Replays, Calls int64
}

// Suggestions are capacities that would have denied at most a share of the calls.
type Suggestions struct {
	// Share is the part of the calls that may be denied, in per cent, and MayDeny the number of
	// calls.
	Share   string `json:"share_percent"`
	MayDeny int64  `json:"may_deny"`
	Calls   int64  `json:"calls"`
	// DeniedNow counts the calls that the present limits denied on arrival, and Denied those that the
	// suggested limits deny.
	DeniedNow        int64  `json:"denied_now"`
	DeniedNowPercent string `json:"denied_now_percent"`
	Denied           int64  `json:"denied"`
	DeniedPercent    string `json:"denied_percent"`
	// EachMayDeny is the share, in per cent, that each limit may deny by itself of the calls that it
	// judges, so that all together deny few enough.
	EachMayDeny string            `json:"each_may_deny_percent"`
	Limits      []*LimitSuggested `json:"limits"`
	LeftOut     []LimitLeftOut    `json:"left_out"`
	// Replays is the number of replays that the search ran.
	Replays int64 `json:"replays"`

	// Definitions are the definitions with the suggested capacities.
	Definitions *weir.Definitions `json:"-"`
}

// LimitSuggested is a capacity for a declared limit. It is the same for all entities that the limit
// applies to.
type LimitSuggested struct {
	// Field is the limit's path in a limits file, and Place the path of what it belongs to.
	Field string    `json:"field"`
	Place string    `json:"place"`
	Limit string    `json:"limit"`
	Kind  weir.Kind `json:"kind"`
	// Calls counts the calls that it judges.
	Calls int64 `json:"calls"`
	// Capacities are in units. The refill amount of a bucket keeps its ratio to the capacity.
	Capacity              int64 `json:"capacity"`
	RefillAmount          int64 `json:"refill_amount,omitempty"`
	SuggestedCapacity     int64 `json:"suggested_capacity"`
	SuggestedRefillAmount int64 `json:"suggested_refill_amount,omitempty"`
	// ChangePercent is the change of the capacity, rounded towards zero.
	ChangePercent string `json:"change_percent"`
	// Denials are calls that exceeded the limit on arrival, or cost more than it holds: with all
	// limits as they are, with the suggested capacity and no other limit, and with all suggested
	// capacities.
	DeniedNow      int64 `json:"denied_now"`
	DeniedAlone    int64 `json:"denied_alone"`
	DeniedTogether int64 `json:"denied_together"`
}

// LimitLeftOut is a limit that keeps its capacity.
type LimitLeftOut struct {
	Field string `json:"field"`
	Why   string `json:"why"`
}

// Suggest searches for capacities of the enforced limits that would have denied at most a share of
// a workload's calls on arrival. Each declared limit gets one capacity with at most two significant
// digits. A bucket keeps the ratio of its refill to its capacity, and periods stay.
//
// Each limit is sized alone first, by replays in which nothing else denies: the search finds a
// small capacity that denies at most the share of the calls that the limit judges. If all of them
// together deny more than the share of all calls, each is sized again with less of the share. The
// result was replayed as a whole. The same arguments have the same result.
//
// Errors are those of [Run], and an [UnfitError] if no capacity is enough.
func Suggest(
	ctx context.Context, d *weir.Definitions, w *Workload, share Fraction, o *SuggestOptions,
) (*Suggestions, error) {
	if o == nil {
		o = &SuggestOptions{}
	}
	s, err := newSizer(ctx, d, w, share, o)
	if err != nil {
		return nil, err
	}
	part, sizes, err := s.searchTogether(ctx)
	if err != nil {
		return nil, err
	}
	return s.suggestions(ctx, part, sizes)
}

// searchTogether searches for the largest part of the share, in steps, with which all limits
// together deny few enough calls. It returns that and the capacities, by declared limit.
func (s *sizer) searchTogether(ctx context.Context) (part int64, sizes []int64, err error) {
	most := s.share.apply(int64(len(s.calls)))
	fits := func(part int64) (bool, error) {
		tried, err := s.sizesFor(ctx, part)
		if err != nil {
			return false, err
		}
		f := s.firstAttempts(most)
		if err := s.replay(ctx, s.boundWorkload, s.with(tried), f); err != nil || f.denied > most {
			return false, err
		}
		sizes = tried
		return true, nil
	}
	if ok, err := fits(shareSteps); ok || err != nil {
		return shareSteps, sizes, err
	}
	above := int64(shareSteps)
	for above-part > 1 {
		middle := (part + above) / 2
		ok, err := fits(middle)
		switch {
		case err != nil:
			return 0, nil, err
		case ok:
			part = middle
		default:
			above = middle
		}
	}
	if part == 0 { // not tried yet; limits that deny nothing alone deny nothing together
		if ok, err := fits(0); !ok {
			return 0, nil, cmp.Or(err, errNotTogether)
		}
	}
	return part, sizes, nil
}

var errNotTogether = errors.New("suggest: limits deny calls together, although each alone denies none")

// suggestions replays the limits as they are and with the capacities that were found, and reports
// what became of both.
func (s *sizer) suggestions(ctx context.Context, part int64, sizes []int64) (*Suggestions, error) {
	now := make([]int64, len(s.sized))
	for i, d := range s.sized {
		now[i] = d.limit.Capacity
	}
	calls, found := int64(len(s.calls)), s.with(sizes)
	before, deniedBefore, err := s.verify(ctx, s.definitions, now)
	if err != nil {
		return nil, err
	}
	after, deniedAfter, err := s.verify(ctx, found, sizes)
	if err != nil {
		return nil, err
	}
	out := &Suggestions{
		Share: shareText(s.share.thousandths), MayDeny: s.share.apply(calls), Calls: calls,
		DeniedNow: before, DeniedNowPercent: shareOf(before, calls),
		Denied: after, DeniedPercent: shareOf(after, calls),
		EachMayDeny: shareText(s.share.thousandths * part / shareSteps),
		Limits:      []*LimitSuggested{}, LeftOut: append([]LimitLeftOut{}, s.leftOut...),
		Replays: s.told.Replays, Definitions: found,
	}
	if after > out.MayDeny {
		return nil, fmt.Errorf("suggest: a second replay denies %d calls, more than %d",
			after, out.MayDeny)
	}
	for i, d := range s.sized {
		l := d.sized(sizes[i])
		out.Limits = append(out.Limits, &LimitSuggested{
			Field: d.field(), Place: d.place, Limit: l.Name, Kind: l.Kind, Calls: d.calls,
			Capacity: d.limit.Capacity, RefillAmount: d.limit.RefillAmount,
			SuggestedCapacity: l.Capacity, SuggestedRefillAmount: l.RefillAmount,
			ChangePercent: changeText(d.limit.Capacity, l.Capacity),
			DeniedNow:     deniedBefore[i], DeniedTogether: deniedAfter[i],
			DeniedAlone: d.denied[roundUp(sizes[i])].calls,
		})
	}
	return out, nil
}

// verify replays everything against some definitions, in which the declared limits have the given
// capacities. It counts the calls that are denied on arrival: all, and those of each declared
// limit.
func (s *sizer) verify(
	ctx context.Context, d *weir.Definitions, sizes []int64,
) (denied int64, by []int64, err error) {
	f := s.firstAttempts(unbounded)
	b := &denialsByLimit{s.of, sizes, make([]int64, len(sizes)), make([]int, len(sizes))}
	err = s.replay(ctx, s.boundWorkload, d, f, b)
	return f.denied, b.denied, err
}

// changeText is the change of a number in per cent, with a sign and one decimal, rounded towards
// zero.
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

// wholeShare is all calls, in thousandths of a per cent.
const wholeShare = 100_000

// Fraction is a share of calls, less than all of them, in thousandths of a per cent. It is the
// value of a flag.
type Fraction struct {
	thousandths int64
}

// Set reads the flag's text: 1% or 0.125%.
func (s *Fraction) Set(text string) error {
	number, signed := strings.CutSuffix(text, "%")
	whole, decimals, _ := strings.Cut(number, ".")
	if !signed || !trace.IsNumber(number) || len(decimals) > 3 || len(whole) > 2 {
		return errors.New("must be a share of the calls, from 0% to less than 100%, " +
			"like 1% or 0.25%, with at most three decimals")
	}
	s.thousandths, _ = strconv.ParseInt(whole+(decimals + "000")[:3], 10, 64) // five digits at most
	return nil
}

// String returns the flag's text.
func (s *Fraction) String() string { return shareText(s.thousandths) + "%" }

// Type names the values in the help.
func (s *Fraction) Type() string { return "SHARE" }

// apply returns the largest whole number of calls that is at most the fraction of n.
func (s Fraction) apply(calls int64) int64 { return s.thousandths * calls / wholeShare }

// shareText formats thousandths of a per cent without trailing zeros.
func shareText(thousandths int64) string {
	text := strconv.FormatInt(thousandths/1000, 10)
	if rest := thousandths % 1000; rest > 0 {
		text += "." + strings.TrimRight(strconv.FormatInt(1000+rest, 10)[1:], "0")
	}
	return text
}

// shareOf is a part of some calls in per cent. It rounds up, so that only no calls are 0 %.
func shareOf(part, calls int64) string {
	if calls == 0 {
		return "0"
	}
	return shareText((part*wholeShare + calls - 1) / calls)
}
