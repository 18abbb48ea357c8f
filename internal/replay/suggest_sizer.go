package replay

import (
	"context"
	"errors"
	"sync"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/text"
)

// sizer looks for capacities. Its methods may run at the same time for different declared limits.
type sizer struct {
	*plan // of the whole workload against the whole definitions

	definitions *weir.Definitions // normalized
	share       Share
	options     *SuggestOptions
	sized       []*declared // in the order of the definitions
	of          map[limitKey]*declared
	leftOut     []LimitLeftOut

	mu   sync.Mutex
	told SuggestProgress
}

// newSizer finds the limits that are to be sized, and what the calls cost on them.
func newSizer(
	ctx context.Context, d *weir.Definitions, w *Workload, share Share, o *SuggestOptions,
) (*sizer, error) {
	d, err := d.Normalize()
	if err != nil {
		return nil, err
	}
	s := &sizer{definitions: d, share: share, options: o, of: map[limitKey]*declared{}}
	if err := s.plans(ctx, w); err != nil {
		return nil, err
	}
	s.find()
	s.told.Limits = len(s.sized)
	if len(s.sized) > maxSized {
		return nil, UnfitError("--suggest: the calls have " + text.FormatInt(int64(len(s.sized))) +
			" limits to size, and " + text.FormatInt(maxSized) + " are the most")
	}
	n := &needs{of: s.of, total: map[limitKey]int64{}}
	if err := s.replay(ctx, s.plan, nil, s.firstTries(unbounded), n); err != nil {
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
	s.plan, err = newPlan(ctx, limiter, w)
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
			d := &declared{
				place: place, limit: l, index: len(s.sized),
				over: map[int]int64{}, denied: map[int]denial{},
			}
			judged := subjects[listed{place, l.Name}]
			switch {
			case l.Shadow:
				s.leave(d, "a shadow limit denies nothing")
			case len(judged) == 0:
				s.leave(d, "it judges no call of the trace")
			default:
				s.sized = append(s.sized, d)
			}
			for _, at := range judged {
				if !l.Shadow {
					s.of[limitKey{at.entity, at.resource, l.Name}] = d
				}
			}
		}
	})
}

func (s *sizer) leave(d *declared, why string) {
	s.leftOut = append(s.leftOut, LimitLeftOut{Field: d.field(), Why: why})
}

// firstTries counts denied calls until they are more than most.
func (s *sizer) firstTries(most int64) *firstTries {
	f := &firstTries{most: most}
	f.tick = func() {
		if f.calls%tellEvery == 0 {
			s.tell(func(p *SuggestProgress) { p.Calls += tellEvery })
		}
	}
	return f
}

// tell tells of a change in how far the search is.
func (s *sizer) tell(change func(*SuggestProgress)) {
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
	ctx context.Context, p *plan, d *weir.Definitions, f *firstTries, others ...Watcher,
) error {
	clock := &virtualClock{p.calls[0].AtMS}
	e := &engine{
		plan: p, service: admitAll{}, ids: newLeaseIDs(p.seed), until: clock.until,
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
	s.tell(func(p *SuggestProgress) { p.Replays++ })
	return err
}
