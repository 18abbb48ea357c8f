package statuspage

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
)

// activityShards is how many parts an [Activity] has. Calls are spread over them by the random part
// of their lease IDs, so that callers seldom wait for one another, be they one entity or many.
const activityShards = 8

// Activity is a [weir.Observer] that keeps figures of what was decided lately: counts since it was
// made and for each of the last two minutes' seconds, the last denials, and who was seen last. What
// it keeps is bounded, whatever callers send. All methods may be called at once.
type Activity struct {
	since  time.Time
	names  limitNames
	clock  activityClock
	order  atomic.Uint64 // numbers the reservations, since a clock may step back
	shards [activityShards]activityShard
}

var _ weir.Observer = (*Activity)(nil)

// NewActivity begins counting at a time. Each event brings its own.
func NewActivity(since time.Time) *Activity { return &Activity{since: since} }

// Observe counts one call. It fulfils [weir.Observer].
func (a *Activity) Observe(_ context.Context, e weir.Event) {
	s := &a.shards[e.LeaseID[len(e.LeaseID)-1]%activityShards]
	switch denied, ok := errors.AsType[*weir.DeniedError](e.Err); {
	case ok && e.Verb == weir.VerbReserve:
		a.deny(s, &e, denied)
	case e.Err != nil:
		s.fail(e.Err)
	case e.Verb == weir.VerbReserve:
		a.admit(s, &e)
	}
}

func (a *Activity) admit(s *activityShard, e *weir.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.Replay {
		s.replayed++
		return
	}
	s.admitted++
	if e.Degraded {
		s.degraded++
	}
	s.seconds.at(a.clock.stamp(e.At.Add(e.Took))).admitted++
	order := a.order.Add(1)
	for i := range e.Limits {
		l := &e.Limits[i]
		a.see(s, e, i, order)
		c := s.limit(a.names.place(l.Limit, l.Kind).index)
		c.admitted++
		addUp(&c.reserved, l.Requested)
		if l.Exceeded { // a shadow limit, or it would not have been admitted
			c.shadow++
		}
	}
}

func (a *Activity) deny(s *activityShard, e *weir.Event, denied *weir.DeniedError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.denied++
	s.seconds.at(a.clock.stamp(e.At.Add(e.Took))).denied++
	order := a.order.Add(1)
	d := s.denials.next()
	d.begin(order, e.At, denied)
	for i := range e.Limits {
		l := &e.Limits[i]
		entity := a.see(s, e, i, order)
		if i == 0 {
			d.Entity, d.Resource = entity, keep(l.Resource)
		}
		if !l.Exceeded {
			continue
		}
		place := a.names.place(l.Limit, l.Kind)
		c := s.limit(place.index)
		if l.Shadow {
			c.shadow++
			continue
		}
		c.denied++
		if place.index == 0 {
			place.key = limitKey{keep(l.Limit), weir.Kind(keep(string(l.Kind)))}
		}
		d.exceed(entity, place.key, l)
	}
}

// see remembers the entity of a limit that was judged and returns its name, in memory of its own.
func (a *Activity) see(s *activityShard, e *weir.Event, i int, order uint64) string {
	return s.entities.touch(e.Limits[i].Entity, e.At.UnixMilli(), order)
}

// activityShard is what one part has counted.
type activityShard struct {
	mu                                   sync.Mutex
	admitted, denied, replayed, degraded int64
	errors                               [len(activityCodes) + 1]int64 // the last one: no code of these
	limits                               []limitCounts                 // by their places in limitNames
	seconds                              secondRing
	denials                              denialRing
	entities                             recentEntities
}

type limitCounts struct{ admitted, denied, shadow, reserved int64 }

// activityCodes are the codes that are counted by name, in order.
var activityCodes = [...]weir.Code{
	weir.Conflict, weir.Ended, weir.Invalid, weir.NeverSatisfiable, weir.NoLimits, weir.NotFound,
	weir.Overloaded, weir.PermissionDenied, weir.Superseded, weir.Unavailable, weir.UnknownLease, weir.UnknownLimit,
	weir.Unsupported,
}

// fail counts an error, of any verb.
func (s *activityShard) fail(err error) {
	i := len(activityCodes)
	if e, ok := errors.AsType[*weir.Error](err); ok {
		for j, code := range activityCodes {
			if e.Code == code {
				i = j
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errors[i]++
}

// limit returns the counts of the limit with a place.
func (s *activityShard) limit(i int) *limitCounts {
	for len(s.limits) <= i {
		s.limits = append(s.limits, limitCounts{})
	}
	return &s.limits[i]
}

// Report returns what has been counted up to now. Its lists are the caller's own.
func (a *Activity) Report(now time.Time) *httpapi.ActivityReport {
	end := a.clock.end(now)
	m := merge{end: end, report: httpapi.ActivityReport{
		SinceMS: a.since.UnixMilli(), NowMS: now.UnixMilli(),
		Errors: []httpapi.ActivityErrors{}, Limits: []httpapi.ActivityLimit{},
		Seconds: httpapi.ActivitySeconds{
			From:     int64(end&secondMask) - activityWindow + 1,
			Admitted: make([]int64, activityWindow), Denied: make([]int64, activityWindow),
		},
	}}
	for i := range a.shards {
		m.add(&a.shards[i])
	}
	m.countErrors()
	m.countLimits(a.names.all())
	m.listDenials()
	m.listEntities()
	return &m.report
}

// merge puts the shards together.
type merge struct {
	end      uint64
	report   httpapi.ActivityReport
	errors   [len(activityCodes) + 1]int64
	limits   []limitCounts
	denials  []recentDenial
	entities []recentEntity
}

// add copies what the report needs from a shard, and no more, since callers wait for its lock.
func (m *merge) add(s *activityShard) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &m.report
	addUp(&r.Admitted, s.admitted)
	addUp(&r.Denied, s.denied)
	addUp(&r.Replayed, s.replayed)
	addUp(&r.Degraded, s.degraded)
	for i, n := range s.errors {
		addUp(&m.errors[i], n)
	}
	for i, c := range s.limits {
		if i == len(m.limits) {
			m.limits = append(m.limits, limitCounts{})
		}
		sum := &m.limits[i]
		addUp(&sum.admitted, c.admitted)
		addUp(&sum.denied, c.denied)
		addUp(&sum.shadow, c.shadow)
		addUp(&sum.reserved, c.reserved)
	}
	s.seconds.addTo(&r.Seconds, m.end)
	for _, d := range s.denials.slots {
		d.Exceeded = append([]httpapi.ActivityExceeded{}, d.Exceeded...) // the slot uses its own again
		m.denials = append(m.denials, d)
	}
	if len(s.entities.entries) > 0 {
		m.entities = append(m.entities, s.entities.entries[1:]...)
	}
}

func (m *merge) countErrors() {
	for i, n := range m.errors {
		code := weir.Code("other")
		if i < len(activityCodes) {
			code = activityCodes[i]
		}
		if n > 0 {
			m.report.Errors = append(m.report.Errors, httpapi.ActivityErrors{Code: code, Count: n})
		}
	}
}

func (m *merge) countLimits(known map[limitKey]limitPlace) {
	keys := make([]limitKey, len(known)+1)
	for key, p := range known {
		keys[p.index] = key
	}
	for i, c := range m.limits {
		if c == (limitCounts{}) {
			continue
		}
		m.report.Limits = append(m.report.Limits, httpapi.ActivityLimit{
			Limit: keys[i].name, Kind: keys[i].kind,
			Admitted: c.admitted, Denied: c.denied, Shadow: c.shadow, Reserved: c.reserved,
		})
	}
	slices.SortFunc(m.report.Limits, func(a, b httpapi.ActivityLimit) int {
		return cmp.Or(strings.Compare(a.Limit, b.Limit), cmp.Compare(a.Kind, b.Kind))
	})
}

func (m *merge) listDenials() {
	slices.SortFunc(m.denials, func(a, b recentDenial) int { return cmp.Compare(b.order, a.order) })
	m.report.Denials = make([]httpapi.ActivityDenial, 0, min(len(m.denials), maxActivityDenials))
	for _, d := range m.denials[:cap(m.report.Denials)] {
		m.report.Denials = append(m.report.Denials, d.ActivityDenial)
	}
}

// listEntities keeps the newest of an entity's entries, since it has one in each shard that saw it.
// Those of one reservation stay in the order in which they were first seen.
func (m *merge) listEntities() {
	slices.SortStableFunc(m.entities, func(a, b recentEntity) int { return cmp.Compare(b.order, a.order) })
	m.report.Entities = []httpapi.ActivityEntity{}
	seen := map[string]bool{}
	for _, e := range m.entities {
		if len(m.report.Entities) == maxActivityEntities {
			return
		}
		if !seen[e.Entity] {
			seen[e.Entity] = true
			m.report.Entities = append(m.report.Entities, e.ActivityEntity)
		}
	}
}
