package replay

import (
	"context"
	"errors"

	"github.com/weir-limiter/weir"
)

const (
	// maxSized bounds how many limits are sized.
	maxSized = 1_000
	// commonSteps is in how many steps the share that each limit may deny by itself is lowered
	// until all of them together deny few enough.
	commonSteps = 64
	// tellEvery is after how many calls of a replay progress is told.
	tellEvery = 1024
)

// SuggestOptions say how calls behave while capacities are looked for.
type SuggestOptions struct {
	// Estimate says how many tokens a call is taken to generate when it reserves. Default: what it
	// did generate.
	Estimate Estimate
	// Retry makes denied calls come back; they count as denied. Default: they do not come back.
	Retry *RetryOptions
	// Progress is told how far the search is, by one goroutine at a time. Default: nobody is.
	Progress func(SuggestProgress)
}

// SuggestProgress says how far a search for capacities is.
type SuggestProgress struct {
	// Sized limits, of so many, have a capacity that denies few enough calls by itself.
	Sized, Limits int
	// Replays were run, with so many calls.
	Replays, Calls int64
}

// Suggest looks for capacities of the enforced limits that would have denied at most a share of a
// workload's calls when they came. Each limit, where the definitions have it, gets one capacity
// with at most two significant digits; a bucket keeps the ratio of its refill to it, and periods
// stay.
//
// Each limit is sized by itself first, by replays in which nothing else denies: the smallest
// capacity that a search finds to deny at most the share of the calls that it judges. If all of
// them together deny more than the share of all calls, each must do with less of it. What is
// returned was replayed as a whole. The same arguments have the same outcome.
//
// Errors are those of [Run], and an [UnfitError] where no capacity is enough.
func Suggest(
	ctx context.Context, d *weir.Definitions, w *Workload, share Share, o *SuggestOptions,
) (*Suggestions, error) {
	if o == nil {
		o = &SuggestOptions{}
	}
	s, err := newSizer(ctx, d, w, share, o)
	if err != nil {
		return nil, err
	}
	part, sizes, err := s.together(ctx)
	if err != nil {
		return nil, err
	}
	return s.suggestions(ctx, part, sizes)
}

// together searches for the largest part of the share with which all limits together deny few
// enough calls.
func (s *sizer) together(ctx context.Context) (part int64, sizes []int64, err error) {
	most := s.share.of(int64(len(s.calls)))
	fits := func(part int64) (bool, error) {
		tried, err := s.sizesFor(ctx, part)
		if err != nil {
			return false, err
		}
		f := s.firstTries(most)
		if err := s.replay(ctx, s.plan, s.with(tried), f); err != nil || f.denied > most {
			return false, err
		}
		sizes = tried
		return true, nil
	}
	ok, err := fits(commonSteps)
	if ok || err != nil {
		return commonSteps, sizes, err
	}
	above := int64(commonSteps)
	for above-part > 1 {
		middle := part + (above-part)/2
		switch ok, err := fits(middle); {
		case err != nil:
			return 0, nil, err
		case ok:
			part = middle
		default:
			above = middle
		}
	}
	if part == 0 { // where each denies nothing by itself, all together deny nothing
		if ok, err := fits(0); err != nil {
			return 0, nil, err
		} else if !ok {
			return 0, nil, errNotTogether
		}
	}
	return part, sizes, nil
}

var errNotTogether = errors.New("suggest: limits that deny nothing alone deny calls together")

// with returns the definitions with other capacities, by declared limit.
func (s *sizer) with(sizes []int64) *weir.Definitions {
	by := map[string]*declared{}
	for _, d := range s.sized {
		by[d.field()] = d
	}
	return mapLists(s.definitions, func(place string, limits []weir.Limit) []weir.Limit {
		out := append([]weir.Limit(nil), limits...)
		for i := range out {
			if d := by[place+".limits."+out[i].Name]; d != nil {
				out[i] = d.sized(sizes[d.index])
			}
		}
		return out
	})
}
