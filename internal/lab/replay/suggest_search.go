package replay

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/lab/trace"
	"github.com/weir-limiter/weir/internal/text"
)

// sizer looks for capacities. Its methods may run at the same time for different declared limits.
type sizer struct {
	*boundWorkload // of the whole workload against the whole definitions

	definitions *weir.Definitions // normalized
	share       Fraction
	options     *SuggestOptions
	sized       []*sizedLimit // in the order of the definitions
	of          map[subjectLimit]*sizedLimit
	leftOut     []LimitLeftOut

	mu   sync.Mutex
	told SuggestProgress
}

// newSizer finds the limits that are to be sized, and what the calls cost on them.
func newSizer(
	ctx context.Context, d *weir.Definitions, w *Workload, share Fraction, o *SuggestOptions,
) (*sizer, error) {
	d, err := d.Normalize()
	if err != nil {
		return nil, err
	}
	s := &sizer{definitions: d, share: share, options: o, of: map[subjectLimit]*sizedLimit{}}
	if err := s.plans(ctx, w); err != nil {
		return nil, err
	}
	s.find()
	s.told.Limits = len(s.sized)
	if len(s.sized) > maxSized {
		return nil, UnfitError("--suggest: the calls have " + text.FormatInt(int64(len(s.sized))) +
			" limits to size, and " + text.FormatInt(maxSized) + " are the most")
	}
	n := &costCounter{of: s.of, total: map[subjectLimit]int64{}}
	if err := s.replay(ctx, s.boundWorkload, nil, s.firstTries(unbounded), n); err != nil {
		return nil, err
	}
	return s, nil
}

// plans asks a limiter which limits apply to whom.
func (s *sizer) plans(ctx context.Context, w *Workload) (err error) {
	limiter, err := open(s.definitions, &virtualClock{w.calls[0].AtMS})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, limiter.Close()) }()
	s.boundWorkload, err = bindWorkload(ctx, limiter, w)
	return err
}

// find finds the limits that judge calls and deny.
func (s *sizer) find() {
	type listed struct{ place, name string }
	subjects := map[listed][]*subject{}
	for _, at := range s.subjects {
		place := listPlace(s.definitions, weir.Subject{Entity: at.entity, Resource: at.resource})
		for i := range at.limits {
			key := listed{place, at.limits[i].Name}
			subjects[key] = append(subjects[key], at)
		}
	}
	eachList(s.definitions, func(place string, limits []weir.Limit) {
		for _, l := range limits {
			d := &sizedLimit{
				place: place, limit: l, index: len(s.sized),
				over: map[int]int64{}, denied: map[int]denialCount{},
			}
			judged := subjects[listed{place, l.Name}]
			switch {
			case l.Shadow:
				s.exclude(d, "a shadow limit denies nothing")
			case len(judged) == 0:
				s.exclude(d, "it judges no call of the trace")
			default:
				s.sized = append(s.sized, d)
			}
			for _, at := range judged {
				if !l.Shadow {
					s.of[subjectLimit{at.entity, at.resource, l.Name}] = d
				}
			}
		}
	})
}

func (s *sizer) exclude(d *sizedLimit, why string) {
	s.leftOut = append(s.leftOut, LimitLeftOut{Field: d.field(), Why: why})
}

// firstTries counts denied calls until they are more than most.
func (s *sizer) firstTries(most int64) *firstAttempts {
	f := &firstAttempts{most: most}
	f.tick = func() {
		if f.calls%tellEvery == 0 {
			s.reportProgress(func(p *SuggestProgress) { p.Calls += tellEvery })
		}
	}
	return f
}

// reportProgress tells of a change in how far the search is.
func (s *sizer) reportProgress(change func(*SuggestProgress)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.told)
	if s.options.Progress != nil {
		s.options.Progress(s.told)
	}
}

// replay replays a plan against definitions, or without limits if there are none, until it ends or
// has denied enough.
func (s *sizer) replay(
	ctx context.Context, p *boundWorkload, d *weir.Definitions, f *firstAttempts, others ...Watcher,
) error {
	clock := &virtualClock{p.calls[0].AtMS}
	e := &simulator{
		boundWorkload: p, service: admitAll{}, ids: newLeaseIDs(p.seed), until: clock.until,
		retry: s.options.Retry, watchers: append([]Watcher{f}, others...),
	}
	var err error
	if e.estimates, err = newEstimates(s.options.Estimate, len(p.payers)); err != nil {
		return err
	}
	if e.estimates != nil {
		e.watchers = append(e.watchers, e.estimates)
	}
	if d != nil {
		limiter, err := open(d, clock)
		if err != nil {
			return err
		}
		e.service = limiter
		defer func() { _ = limiter.Close() }() // it has nothing that could be lost
	}
	if err = e.run(ctx); errors.Is(err, errEnough) {
		err = nil
	}
	s.reportProgress(func(p *SuggestProgress) { p.Replays++ })
	return err
}

// search looks for the smallest round capacity that denies at most allowed calls by itself. What
// it learns it keeps for the next search.
//
// The number of denied calls may rise with the capacity here and there, since a call that is
// denied leaves room for others. So this is a search for a capacity that denies few enough while
// the next smaller one denies too many; no smaller one can be ruled out without trying all.
func (s *sizer) search(ctx context.Context, d *sizedLimit, allowed int64) (count int, err error) {
	largest := d.largest()
	var a *singleLimit // made when it is needed
	fits := func(i int) (bool, error) {
		if known, ok := d.denied[i]; ok && (known.whole || known.calls > allowed) {
			return known.calls <= allowed, nil
		}
		if a == nil {
			a = s.isolate(d)
		}
		tried, err := s.countDenials(ctx, a, roundNumber(i), allowed)
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
func (d *sizedLimit) bracket(s *sizer, allowed int64) (below, top int) {
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
	next := make(chan *sizedLimit)
	var workers sync.WaitGroup
	for range min(len(s.sized), runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			for d := range next {
				i, err := s.search(ctx, d, s.share.apply(d.calls*part)/commonSteps)
				if err != nil {
					cancel(err)
					return
				}
				sizes[d.index] = roundNumber(i)
				s.reportProgress(func(p *SuggestProgress) { p.Sized = min(p.Sized+1, p.Limits) })
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

// singleLimit is how one declared limit is tried by itself: the calls that it judges, and the
// entities that have it, while nothing else denies.
type singleLimit struct {
	*boundWorkload

	of       *sizedLimit
	entities map[string]bool // that are charged
}

// isolate leaves out every call that the limit does not judge, as they change nothing for it:
// unless estimates are learned from all of them.
func (s *sizer) isolate(d *sizedLimit) *singleLimit {
	a := &singleLimit{of: d, entities: map[string]bool{}}
	wanted := make([]bool, len(s.payers))
	payers := make([]*pricedCaller, len(s.payers))
	all := true
	for i, by := range s.payers {
		payers[i] = &pricedCaller{EntityModel: by.EntityModel, chain: by.chain}
		if wanted[i] = s.judges(d, by); wanted[i] {
			payers[i].costs = by.only(d)
		}
		wanted[i] = wanted[i] || s.options.Estimate.share > 0
		all = all && wanted[i]
		if !wanted[i] {
			continue
		}
		for _, at := range by.chain {
			a.entities[at.entity] = true
		}
	}
	w := *s.Workload
	if !all {
		w.calls = make([]trace.Call, 0, d.calls)
		for i := range s.calls {
			if c := &s.calls[i]; wanted[c.Caller] {
				w.calls = append(w.calls, *c)
			}
		}
	}
	a.boundWorkload = &boundWorkload{Workload: &w, payers: payers}
	return a
}

// judges reports whether the limit judges the calls of a caller.
func (s *sizer) judges(d *sizedLimit, by *pricedCaller) bool {
	for _, at := range by.chain {
		if s.of[subjectLimit{at.entity, at.resource, d.limit.Name}] == d {
			return true
		}
	}
	return false
}

// only returns the costs on limits of one name.
func (p *pricedCaller) only(d *sizedLimit) []namedCost {
	return slices.DeleteFunc(slices.Clone(p.costs), func(c namedCost) bool {
		return c.limit != d.limit.Name
	})
}

// definitions has the one limit, with a capacity. In the place of all others stand limits that
// no call asks for: a list without any limit would give way to another level's.
func (a *singleLimit) definitions(whole *weir.Definitions, capacity int64) *weir.Definitions {
	other := "a"
	if a.of.limit.Name == other {
		other = "b"
	}
	charged := *whole
	charged.Entities = make(map[string]weir.EntityDefinition, len(a.entities))
	for name := range a.entities {
		if e, known := whole.Entities[name]; known {
			if !e.Cascade {
				e.Parent = ""
			}
			charged.Entities[name] = e
		}
	}
	return mapLists(&charged, func(place string, _ []weir.Limit) []weir.Limit {
		if place == a.of.place {
			return []weir.Limit{a.of.sized(capacity)}
		}
		return []weir.Limit{{Name: other, Capacity: 1, Shadow: true}}
	})
}

// countDenials replays against one capacity by itself, until more calls are denied than most.
func (s *sizer) countDenials(ctx context.Context, a *singleLimit, capacity, most int64) (denialCount, error) {
	f := s.firstTries(most)
	if err := s.replay(ctx, a.boundWorkload, a.definitions(s.definitions, capacity), f); err != nil {
		return denialCount{}, err
	}
	return denialCount{calls: f.denied, whole: f.denied <= most}, nil
}

const (
	// maxSized bounds how many limits are sized.
	maxSized = 1_000
	// commonSteps is in how many steps the share that each limit may deny by itself is lowered
	// until all of them together deny few enough.
	commonSteps = 64
	// tellEvery is after how many calls of a replay progress is told.
	tellEvery = 1024
)
