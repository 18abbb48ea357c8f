package replay

import (
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"sync"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/lab/trace"
	"github.com/weir-limiter/weir/internal/text"
)

const (
	// maxSized bounds the number of limits that are sized.
	maxSized = 1_000
	// shareSteps is the number of steps in which the share that each limit may deny by itself is
	// lowered until all of them together deny few enough calls.
	shareSteps = 64
	// progressEvery is the number of calls of a replay between two reports of progress.
	progressEvery = 1024
	// unbounded is for replays that may deny any number of calls.
	unbounded = math.MaxInt64
)

// sizer searches for capacities. Its methods may run at the same time for different limits.
type sizer struct {
	*boundWorkload // all calls and all limits

	definitions *weir.Definitions // normalized
	share       Fraction
	options     *SuggestOptions
	sized       []*sizedLimit // in the order of the definitions
	of          map[subjectLimit]*sizedLimit
	leftOut     []LimitLeftOut

	mu   sync.Mutex
	told SuggestProgress
}

// newSizer finds the limits to size, and what the calls cost on them.
func newSizer(
	ctx context.Context, d *weir.Definitions, w *Workload, share Fraction, o *SuggestOptions,
) (*sizer, error) {
	d, err := d.Normalize()
	if err != nil {
		return nil, err
	}
	s := &sizer{definitions: d, share: share, options: o, of: map[subjectLimit]*sizedLimit{}}
	if s.boundWorkload, err = bindTo(ctx, d, w); err != nil {
		return nil, err
	}
	s.find()
	s.told.Limits = len(s.sized)
	if len(s.sized) > maxSized {
		return nil, UnfitError("--suggest: the calls have " + text.FormatInt(int64(len(s.sized))) +
			" limits to size: at most " + text.FormatInt(maxSized) + " are possible")
	}
	n := &costCounter{of: s.of, total: map[subjectLimit]int64{}}
	if err := s.replay(ctx, s.boundWorkload, nil, s.firstAttempts(unbounded), n); err != nil {
		return nil, err
	}
	return s, nil
}

// find finds the limits that judge calls and deny.
func (s *sizer) find() {
	type declared struct{ place, name string }
	judged := map[declared][]subjectLimit{}
	for _, at := range s.subjects {
		place := listPlace(s.definitions, weir.Subject{Entity: at.entity, Resource: at.resource})
		for i := range at.limits {
			key := declared{place, at.limits[i].Name}
			judged[key] = append(judged[key], subjectLimit{at.entity, at.resource, key.name})
		}
	}
	mapLists(s.definitions, func(place string, limits []weir.Limit) []weir.Limit {
		for _, l := range limits {
			d := &sizedLimit{
				place: place, limit: l, index: len(s.sized),
				over: map[int]int64{}, denied: map[int]denialCount{},
			}
			subjects := judged[declared{place, l.Name}]
			switch {
			case l.Shadow:
				s.leftOut = append(s.leftOut, LimitLeftOut{d.field(), "a shadow limit denies nothing"})
				continue
			case len(subjects) == 0:
				s.leftOut = append(s.leftOut, LimitLeftOut{d.field(), "it judges no call of the trace"})
				continue
			}
			s.sized = append(s.sized, d)
			for _, key := range subjects {
				s.of[key] = d
			}
		}
		return limits
	})
}

// progress adds to the progress of the search and reports it to the caller.
func (s *sizer) progress(sized int, replays, calls int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told.Sized = min(s.told.Sized+sized, s.told.Limits)
	s.told.Replays += replays
	s.told.Calls += calls
	if s.options.Progress != nil {
		s.options.Progress(s.told)
	}
}

// replay plays p against definitions, or without limits if there are none, until it ends or f has
// seen enough denials.
func (s *sizer) replay(
	ctx context.Context, p *boundWorkload, d *weir.Definitions, f *firstAttempts, others ...Watcher,
) error {
	_, err := simulate(ctx, p, d, &Options{
		Estimate: s.options.Estimate, Retry: s.options.Retry, Watchers: append([]Watcher{f}, others...),
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	s.progress(0, 1, 0)
	return err
}

// with returns the definitions with other capacities, by declared limit.
func (s *sizer) with(sizes []int64) *weir.Definitions {
	by := map[string]*sizedLimit{}
	for _, d := range s.sized {
		by[d.field()] = d
	}
	return mapLists(s.definitions, func(place string, limits []weir.Limit) []weir.Limit {
		out := slices.Clone(limits)
		for i := range out {
			if d := by[place+".limits."+out[i].Name]; d != nil {
				out[i] = d.sized(sizes[d.index])
			}
		}
		return out
	})
}

// sizesFor searches, for every limit, for a capacity that denies at most a part of the share of the
// calls that the limit judges, by itself. The part counts steps of shareSteps.
func (s *sizer) sizesFor(ctx context.Context, part int64) ([]int64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	sizes := make([]int64, len(s.sized))
	next := make(chan *sizedLimit)
	var workers sync.WaitGroup
	for range min(len(s.sized), runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			for d := range next {
				i, err := s.search(ctx, d, s.share.apply(d.calls*part)/shareSteps)
				if err != nil {
					cancel(err)
					return
				}
				sizes[d.index] = roundNumber(i)
				s.progress(1, 0, 0)
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

// search returns the index of the smallest round capacity that it finds to deny at most allowed
// calls by itself. It keeps its results for the next search.
//
// More capacity may deny more calls in places, because a denied call leaves room for others. So the
// result denies few enough calls and the next smaller capacity too many, but a much smaller one
// might deny few enough too; only a replay with every capacity would show it.
func (s *sizer) search(ctx context.Context, d *sizedLimit, allowed int64) (count int, err error) {
	var alone *isolated // made when it is needed
	fits := func(i int) (bool, error) {
		if known, ok := d.denied[i]; ok && (known.whole || known.calls > allowed) {
			return known.calls <= allowed, nil
		}
		if alone == nil {
			alone = s.isolate(d)
		}
		f := s.firstAttempts(allowed)
		err := s.replay(ctx, alone.boundWorkload, alone.definitions(s.definitions, roundNumber(i)), f)
		if err == nil {
			d.denied[i] = denialCount{calls: f.denied, whole: f.denied <= allowed}
		}
		return d.denied[i].whole, err
	}
	largest := d.largest()
	for below, top := s.bracket(d, allowed); ; below, top = top, min(2*top, largest) {
		for top-below > 1 {
			middle := (below + top) / 2
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
		// The upper end may not have been tried. It is enough for all calls, unless none can be.
		ok, err := fits(top)
		switch {
		case err != nil || ok:
			return top, err
		case top == largest:
			return 0, UnfitError("--suggest: even the largest capacity of " + d.field() +
				" denies too many calls, because they cost more than such a limit can hold")
		}
	}
}

// bracket returns a capacity that denies too many calls, or 0, and one that denies few enough. They
// are closer to each other with every search.
func (s *sizer) bracket(d *sizedLimit, allowed int64) (below, top int) {
	top = min(roundUp(d.most), d.largest())
	if s.options.Estimate.share == 0 { // learned costs depend on the denials
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

// isolated is a declared limit by itself: the calls that it judges and the entities that are
// charged, while nothing else denies.
type isolated struct {
	*boundWorkload

	of       *sizedLimit
	entities map[string]bool
}

// isolate leaves out the calls that the limit does not judge, because they change nothing for it.
// But estimates are learned from all calls.
func (s *sizer) isolate(d *sizedLimit) *isolated {
	a := &isolated{of: d, entities: map[string]bool{}}
	wanted, payers := make([]bool, len(s.payers)), make([]*pricedCaller, len(s.payers))
	for i, by := range s.payers {
		payers[i] = &pricedCaller{EntityModel: by.EntityModel, chain: by.chain}
		wanted[i] = s.options.Estimate.share > 0
		if slices.ContainsFunc(by.chain, func(at *subject) bool {
			return s.of[subjectLimit{at.entity, at.resource, d.limit.Name}] == d
		}) {
			wanted[i] = true
			payers[i].costs = slices.DeleteFunc(slices.Clone(by.costs), func(c namedCost) bool {
				return c.limit != d.limit.Name
			})
		}
		if wanted[i] {
			for _, at := range by.chain {
				a.entities[at.entity] = true
			}
		}
	}
	w := *s.Workload
	if slices.Contains(wanted, false) {
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

// definitions returns definitions with the one limit at a capacity. Other lists get a limit that no
// call asks for, because a list without limits would give way to the list of another level.
func (a *isolated) definitions(whole *weir.Definitions, capacity int64) *weir.Definitions {
	unused := []weir.Limit{{Name: "a", Capacity: 1, Shadow: true}}
	if a.of.limit.Name == "a" {
		unused[0].Name = "b"
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
		return unused
	})
}

// errEnough ends a replay that has denied more than it may.
var errEnough = errors.New("more is denied than may be")

// firstAttempts counts the calls that are not admitted on arrival, and ends the replay when there
// are more than most.
type firstAttempts struct {
	most, calls, denied int64
	progress            func(sized int, replays, calls int64)
}

func (s *sizer) firstAttempts(most int64) *firstAttempts {
	return &firstAttempts{most: most, progress: s.progress}
}

// Reserved counts a call on arrival.
func (f *firstAttempts) Reserved(a *Attempt, v *Decision) error {
	if a.Number > 1 {
		return nil
	}
	if f.calls++; f.calls%progressEvery == 0 {
		f.progress(0, 0, progressEvery)
	}
	if !v.Admitted() {
		if f.denied++; f.denied > f.most {
			return errEnough
		}
	}
	return nil
}

// denialsByLimit counts, for each declared limit, the calls that exceeded it on arrival for any
// entity, or that cost more than it can hold.
type denialsByLimit struct {
	of     map[subjectLimit]*sizedLimit
	sizes  []int64 // by declared limit, as are the others
	denied []int64
	latest []int // the latest call that was counted, plus one
}

// Reserved counts a call on arrival.
func (b *denialsByLimit) Reserved(a *Attempt, v *Decision) error {
	if a.Number > 1 || v.Admitted() {
		return nil
	}
	count := func(d *sizedLimit) {
		if d != nil && b.latest[d.index] != a.seq+1 {
			b.latest[d.index] = a.seq + 1
			b.denied[d.index]++
		}
	}
	for i := range v.Limits {
		if s := &v.Limits[i]; s.Exceeded {
			count(b.of[subjectLimit{s.Entity, s.Resource, s.Limit}])
		}
	}
	if v.Err == nil {
		return nil
	}
	for _, s := range a.payer.chain {
		for i := range s.limits {
			d := b.of[subjectLimit{s.entity, s.resource, s.limits[i].Name}]
			if d != nil && d.units(a.Costs) > b.sizes[d.index] {
				count(d)
			}
		}
	}
	return nil
}

// costCounter finds what calls cost on the declared limits if all are admitted.
type costCounter struct {
	of    map[subjectLimit]*sizedLimit
	total map[subjectLimit]int64 // units
}

// Reserved counts the cost of a call.
func (n *costCounter) Reserved(a *Attempt, _ *Decision) error {
	judged := make([]*sizedLimit, 0, 8)
	for _, s := range a.payer.chain {
		for i := range s.limits {
			key := subjectLimit{s.entity, s.resource, s.limits[i].Name}
			d := n.of[key]
			if d == nil {
				continue
			}
			// Both what a call reserves and what it uses in the end may keep others out.
			units := d.units(a.Costs)
			n.total[key] = addUp(n.total[key], max(units, d.units(a.Actuals)))
			d.most = max(d.most, n.total[key])
			if !slices.Contains(judged, d) {
				judged = append(judged, d)
				d.calls++
				d.over[roundUp(units)]++
			}
		}
	}
	return nil
}
