package dynamodb

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
)

// mayBeBlind reports whether a reservation may be written without its configuration, since that is
// not at hand: then the items themselves say whether there is enough. Limits that a request brought
// need the configuration, several charges may meet on one limit, and what this process has changed
// itself it reads first.
func (s *Store) mayBeBlind(ctx context.Context, r *weir.Reservation) bool {
	if len(r.Charges) != 1 || len(r.Brought) > 0 || len(r.Charges[0].Costs) == 0 ||
		s.options.NoSpeculation || s.options.Transactional || s.uncached.Load() || s.gone.Load() {
		return false
	}
	for _, units := range r.Charges[0].Costs {
		if units > maxUnits {
			return false // an error, and the configuration says which
		}
	}
	of := weir.Subject{Entity: r.Charges[0].Entity, Resource: r.Charges[0].Resource}
	for { // the entity, then whom it cascades to
		resolved, err := r.Resolve(ctx, of, weir.Cached)
		switch {
		case err != nil || s.unread(of):
			return false
		case resolved == nil:
			return true
		case resolved.Parent == "" || resolved.Parent == of.Entity:
			return false // all is at hand
		}
		of.Entity = resolved.Parent
	}
}

// planBlind plans by what the items said last, if anything; nil where they do not have the limits.
func (s *Store) planBlind(now time.Time, r *weir.Reservation) *journey {
	at := wholeMS(now)
	j := &journey{
		now: now.UnixMilli(), at: at, blind: true, resolve: r.Resolve, charges: r.Charges,
		out: &weir.Outcome{At: at},
	}
	c := &r.Charges[0]
	child := j.errand(s, weir.Subject{Entity: c.Entity, Resource: c.Resource})
	known := j.ask(child)
	behind := false
	if parent, _ := child.spot.cascadesTo(); parent != "" {
		known = j.follow(s, child, parent) && known
	}
	named := make(map[string]bool)
	for _, e := range j.errands {
		of := e.spot.subject
		behind = behind || e.spot.behind() || s.unread(of)
		for k := range e.asks {
			named[e.asks[k].name] = true
		}
	}
	if behind || known && len(named) < len(c.Costs) || len(named) == 0 {
		j.release()
		return nil
	}
	return j
}

// ask adds the costs to an errand: those of the limits that its item has, or all where that is not
// known.
func (j *journey) ask(e *errand) (known bool) {
	m := e.spot.line(0).seen()
	costs := j.charges[0].Costs
	for _, name := range slices.Sorted(maps.Keys(costs)) {
		if m != nil && m.limit(name) == nil {
			continue
		}
		e.asks = append(e.asks, ask{name: name, milli: costs[name] * 1000, holding: len(j.out.Holdings)})
		j.out.Holdings = append(j.out.Holdings, weir.Holding{})
		j.out.Limits = append(j.out.Limits, weir.LimitStatus{})
	}
	return m != nil
}

// maxUnits is the most that a bucket can be asked for.
const maxUnits = 9_223_372_036_854_775

// follow adds the errand of a parent.
func (j *journey) follow(s *Store, child *errand, parent string) (known bool) {
	before := len(j.errands)
	e := j.errand(s, weir.Subject{Entity: parent, Resource: child.spot.subject.Resource})
	if len(j.errands) == before {
		return true // it is on its way
	}
	known = j.ask(e)
	if len(e.asks) == 0 { // nothing that it is charged for
		j.errands = j.errands[:before]
		e.spot.release()
	}
	return known
}

// unread is the take of an ask whose limit is only known from the item.
func (e *errand) unread(k int) weir.Take {
	l := limitOf(&e.found.found[k].BucketLimit)
	return weir.Take{
		Subject: e.spot.subject, Limit: &l, Level: weir.LevelUnread, Ceiling: l.Capacity,
		Parts: []weir.Part{{Units: e.asks[k].milli / 1000}},
	}
}

// readLater has the limiter read what a blind reservation went without, once for each subject and
// cache time, after the answer.
func (s *Store) readLater(ctx context.Context, j *journey) {
	for _, e := range j.errands {
		p := e.spot
		if !p.beginReading() {
			continue
		}
		p.hold()
		s.running.run(func() {
			defer p.release()
			defer p.endReading()
			ctx, cancel := s.aside(ctx)
			defer cancel()
			seq := s.changes.latest()
			r, err := j.resolve(ctx, p.subject, weir.Usual)
			if err != nil {
				s.report(err)
				return
			}
			p.verify(seq, r)
			if at, err := j.resolve(ctx, p.subject, weir.Cached); err == nil && at == nil {
				s.uncached.Store(true) // the limiter keeps nothing: then it is read each time
			}
		})
	}
}

func (p *spot) beginReading() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reading {
		return false
	}
	p.reading = true
	return true
}

func (p *spot) endReading() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reading = false
}
