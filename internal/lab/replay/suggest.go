package replay

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-limiter/weir"
)

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

// searchTogether searches for the largest part of the share with which all limits together deny few
// enough calls.
func (s *sizer) searchTogether(ctx context.Context) (part int64, sizes []int64, err error) {
	most := s.share.apply(int64(len(s.calls)))
	fits := func(part int64) (bool, error) {
		tried, err := s.sizesFor(ctx, part)
		if err != nil {
			return false, err
		}
		f := s.firstTries(most)
		if err := s.replay(ctx, s.boundWorkload, s.with(tried), f); err != nil || f.denied > most {
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
	by := map[string]*sizedLimit{}
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
		Share: shareText(s.share.thousandths), MayDeny: s.share.apply(calls), Calls: calls,
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
	f, b := s.firstTries(unbounded), newDenialsByLimit(s.of, sizes)
	_, err = Run(ctx, d, s.Workload, &Options{
		Estimate: s.options.Estimate, Retry: s.options.Retry, Watchers: []Watcher{f, b},
	})
	s.reportProgress(func(p *SuggestProgress) { p.Replays++ })
	return f.denied, b.denied, err
}
