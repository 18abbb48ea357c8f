package replay

import (
	"errors"
	"math/big"
	"strconv"
	"strings"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/lab/trace"
)

// SuggestOptions say how calls behave while capacities are looked for.
type SuggestOptions struct {
	// Estimate says how many tokens a call is taken to generate when it reserves. Default: what it
	// did generate.
	Estimate Estimate
	// Retry makes denied calls come back; they count as denied. Default: they do not come back.
	Retry *RetryOptions
	// Progress is told how far the search is, by one goroutine at a time. Default: none.
	Progress func(SuggestProgress)
}

// SuggestProgress says how far a search for capacities is.
type SuggestProgress struct {
	// Sized of the Limits have a capacity that denies few enough calls by itself.
	Sized, Limits int
	// Replays were run, with Calls calls in all.
	Replays, Calls int64
}

// Suggestions are capacities that would have denied at most a share of the calls.
type Suggestions struct {
	// Share is what may be denied, in per cent, and MayDeny the same in calls.
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

// LimitSuggested is a capacity for a limit where the definitions have it, the same for all
// entities.
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

// wholeShare is all calls, as a [Share].
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
	n, err := strconv.ParseInt(whole+(decimals + "000")[:3], 10, 64)
	if err != nil {
		return err // no number of five digits is too large
	}
	*s = Fraction{n}
	return nil
}

// String returns the flag's text.
func (s *Fraction) String() string { return shareText(s.thousandths) + "%" }

// Type names the values in the help.
func (s *Fraction) Type() string { return "SHARE" }

// apply returns the largest whole number of calls that is at most the fraction of n.
func (s Fraction) apply(calls int64) int64 { return s.thousandths * calls / wholeShare }

// shareText writes thousandths of a per cent without zeros at the end.
func shareText(thousandths int64) string {
	text := strconv.FormatInt(thousandths/1000, 10)
	if rest := thousandths % 1000; rest > 0 {
		text += "." + strings.TrimRight(strconv.FormatInt(1000+rest, 10)[1:], "0")
	}
	return text
}

// shareOf is a part of some calls, in thousandths of a per cent, rounded up: what is more than
// none does not look like none.
func shareOf(part, calls int64) string {
	if calls == 0 {
		return "0"
	}
	return shareText((part*wholeShare + calls - 1) / calls)
}
