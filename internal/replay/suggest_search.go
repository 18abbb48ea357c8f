package replay

import (
	"context"
	"runtime"
	"sync"
)

// search looks for the smallest round capacity that denies at most so many calls by itself. What
// it learns it keeps for the next search.
//
// The number of denied calls may rise with the capacity here and there, since a call that is
// denied leaves room for others. So this is a search for a capacity that denies few enough while
// the next smaller one denies too many; no smaller one can be ruled out without trying all.
func (s *sizer) search(ctx context.Context, d *declared, allowed int64) (count int, err error) {
	largest := d.largest()
	var a *alone // made when it is needed
	fits := func(i int) (bool, error) {
		if known, ok := d.denied[i]; ok && (known.whole || known.calls > allowed) {
			return known.calls <= allowed, nil
		}
		if a == nil {
			a = s.alone(d)
		}
		tried, err := s.try(ctx, a, roundNumber(i), allowed)
		d.denied[i] = tried
		return tried.whole, err
	}
	for below, top := d.bracket(s, allowed); ; below, top = top, min(2*top, largest) {
		for top-below > 1 {
			middle := below + (top-below)/2
			ok, err := fits(middle)
			switch {
			case err != nil:
				return 0, err
			case ok:
				top = middle
			default:
				below = middle
			}
		}
		// The upper end may never have been tried. It is enough for all calls, unless none can be.
		ok, err := fits(top)
		switch {
		case err != nil || ok:
			return top, err
		case top == largest:
			return 0, UnfitError("--suggest: no capacity of " + d.field() +
				" denies so few calls: they cost more than such a limit can hold")
		}
	}
}

// bracket returns a capacity that denies too many calls, or none, and one that denies few enough,
// closer to one another with each search.
func (d *declared) bracket(s *sizer, allowed int64) (below, top int) {
	top = min(roundUp(d.most), d.largest())
	if s.options.Estimate.share == 0 { // what is learned depends on what is denied
		below = d.tooSmall(allowed)
	}
	for i, known := range d.denied {
		if known.whole && known.calls <= allowed {
			top = min(top, i)
		}
	}
	for i, known := range d.denied {
		if known.calls > allowed && i < top {
			below = max(below, i)
		}
	}
	return min(below, top-1), top
}

// sizesFor searches, for every limit, for a capacity that denies at most a part of the share of
// the calls that the limit judges, by itself. The part counts as steps of commonSteps.
func (s *sizer) sizesFor(ctx context.Context, part int64) ([]int64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	sizes := make([]int64, len(s.sized))
	next := make(chan *declared)
	var workers sync.WaitGroup
	for range min(len(s.sized), runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			for d := range next {
				i, err := s.search(ctx, d, s.share.of(d.calls*part)/commonSteps)
				if err != nil {
					cancel(err)
					return
				}
				sizes[d.index] = roundNumber(i)
				s.tell(func(p *SuggestProgress) { p.Sized = min(p.Sized+1, p.Limits) })
			}
		})
	}
	for _, d := range s.sized {
		select {
		case next <- d:
		case <-ctx.Done():
		}
	}
	close(next)
	workers.Wait()
	return sizes, context.Cause(ctx)
}
