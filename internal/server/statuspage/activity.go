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
	"github.com/weir-limiter/weir/limiter"
)

// segmentCount is the number of segments of an [Activity], each with its own lock. The random part
// of a lease ID selects the segment, so that calls rarely wait for a lock, even calls of the same
// entity.
const segmentCount = 8

// Activity is a [limiter.Observer] that counts decisions: in total, in each second of the last two
// minutes, and by limit. It also keeps the last denials and entities. Its memory is bounded,
// whatever callers send. It is safe for concurrent use.
type Activity struct {
	since    time.Time
	names    limitNames
	clock    secondClock
	order    atomic.Uint64 // numbers the reservations, because a clock may step back
	segments [segmentCount]segment
}

var _ limiter.Observer = (*Activity)(nil)

// NewActivity returns an Activity that counts from since. Later times come from the events.
func NewActivity(since time.Time) *Activity { return &Activity{since: since} }

// Observe counts a call. It implements [limiter.Observer].
func (a *Activity) Observe(_ context.Context, e limiter.Event) {
	s := &a.segments[e.LeaseID[len(e.LeaseID)-1]%segmentCount]
	switch denied, ok := errors.AsType[*weir.DeniedError](e.Err); {
	case ok && e.Verb == weir.VerbReserve:
		a.deny(s, &e, denied)
	case e.Err != nil:
		s.fail(e.Err)
	case e.Verb == weir.VerbReserve:
		a.admit(s, &e)
	}
}

func (a *Activity) admit(s *segment, e *limiter.Event) {
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
	order, at := a.order.Add(1), e.At.UnixMilli()
	for i := range e.Charges {
		s.entities.touch(e.Charges[i].Entity, at, order)
		s.entities.asked(order)
	}
	for i := range e.Limits {
		l := &e.Limits[i]
		s.entities.touch(l.Entity, at, order)
		c := s.limit(a.names.find(l.Limit, l.Kind).index)
		c.admitted++
		addUp(&c.reserved, l.Requested)
		if l.Exceeded { // a shadow limit, because the reservation was admitted
			c.shadow++
		}
	}
}

func (a *Activity) deny(s *segment, e *limiter.Event, denied *weir.DeniedError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.denied++
	s.seconds.at(a.clock.stamp(e.At.Add(e.Took))).denied++
	order := a.order.Add(1)
	d := s.denials.next()
	d.begin(order, e.At, denied)
	for i, c := range denied.Charges {
		if entityAt(denied.Charges[:i], c.Entity) < 0 {
			s.askers.add(c.Entity)
		}
		d.charge(s.entities.touch(c.Entity, d.AtMS, order), c.Resource)
		s.entities.asked(order)
	}
	for i := range e.Limits {
		l := &e.Limits[i]
		entity := s.entities.touch(l.Entity, d.AtMS, order)
		if !l.Exceeded {
			continue
		}
		counted := a.names.find(l.Limit, l.Kind)
		c := s.limit(counted.index)
		if l.Shadow {
			c.shadow++
			continue
		}
		c.denied++
		if counted.index == 0 {
			counted.key = limitKey{keep(l.Limit), weir.Kind(keep(string(l.Kind)))}
		}
		if !hasDenied(e.Limits[:i], l.Entity) {
			s.owners.add(l.Entity)
		}
		d.exceed(entity, counted.key, l)
	}
}

// entityAt returns the index of the first charge of an entity, or -1.
func entityAt(charges []weir.Subject, entity string) int {
	return slices.IndexFunc(charges, func(c weir.Subject) bool { return c.Entity == entity })
}

// hasDenied reports whether one of some limits is the entity's and has denied.
func hasDenied(limits []weir.LimitStatus, entity string) bool {
	for i := range limits {
		if l := &limits[i]; l.Exceeded && !l.Shadow && l.Entity == entity {
			return true
		}
	}
	return false
}

// segment is one part of an [Activity], guarded by its lock.
type segment struct {
	mu                                   sync.Mutex
	admitted, denied, replayed, degraded int64
	errors                               [len(countedCodes) + 1]int64 // the last one is for other errors
	limits                               []limitCounts                // by the index of limitNames
	seconds                              secondRing
	denials                              denialRing
	askers, owners                       deniedCounts
	entities                             recentEntities
}

type limitCounts struct{ admitted, denied, shadow, reserved int64 }

// countedCodes has the codes that are counted by name, in the order of the report.
var countedCodes = [...]weir.Code{
	weir.Conflict, weir.Ended, weir.Invalid, weir.NeverSatisfiable, weir.NoLimits, weir.NotFound,
	weir.Overloaded, weir.PermissionDenied, weir.Superseded, weir.Unavailable, weir.UnknownLease, weir.UnknownLimit,
	weir.Unsupported,
}

// fail counts an error of any verb.
func (s *segment) fail(err error) {
	i := len(countedCodes)
	if e, ok := errors.AsType[*weir.Error](err); ok {
		for j, code := range countedCodes {
			if e.Code == code {
				i = j
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errors[i]++
}

// limit returns the counts of the limit with index i.
func (s *segment) limit(i int) *limitCounts {
	for len(s.limits) <= i {
		s.limits = append(s.limits, limitCounts{})
	}
	return &s.limits[i]
}

// Report returns the counts up to now. It shares no memory with the activity.
func (a *Activity) Report(now time.Time) *httpapi.ActivityReport {
	end := a.clock.end(now)
	m := merge{end: end, report: httpapi.ActivityReport{
		SinceMS: a.since.UnixMilli(), NowMS: now.UnixMilli(),
		Errors: []httpapi.ActivityErrors{}, Limits: []httpapi.ActivityLimit{},
		Seconds: httpapi.ActivitySeconds{
			From:     int64(end&secondMask) - reportSeconds + 1,
			Admitted: make([]int64, reportSeconds), Denied: make([]int64, reportSeconds),
		},
	}}
	for i := range a.segments {
		m.add(&a.segments[i])
	}
	m.countErrors()
	m.countLimits(a.names.all())
	m.report.Askers, m.report.Owners = m.askers.list(), m.owners.list()
	m.listDenials()
	m.listEntities()
	return &m.report
}

// merge is the sum of the segments.
type merge struct {
	end      uint64
	report   httpapi.ActivityReport
	errors   [len(countedCodes) + 1]int64
	limits   []limitCounts
	denials  []recentDenial
	entities []recentEntity
	askers   deniedCounts
	owners   deniedCounts
}

// add copies what the report needs from a segment, and nothing else, because calls wait for the
// segment's lock meanwhile.
func (m *merge) add(s *segment) {
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
	m.askers.addAll(&s.askers)
	m.owners.addAll(&s.owners)
	for _, d := range s.denials.cells {
		d.Exceeded = append([]httpapi.ActivityExceeded{}, d.Exceeded...) // the cell reuses its slices
		d.Charges = append([]httpapi.ActivitySubject{}, d.Charges...)
		m.denials = append(m.denials, d)
	}
	m.entities = s.entities.appendTo(m.entities)
}

func (m *merge) countErrors() {
	for i, n := range m.errors {
		code := weir.Code("other")
		if i < len(countedCodes) {
			code = countedCodes[i]
		}
		if n > 0 {
			m.report.Errors = append(m.report.Errors, httpapi.ActivityErrors{Code: code, Count: n})
		}
	}
}

func (m *merge) countLimits(known map[limitKey]countedLimit) {
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
	m.report.Denials = make([]httpapi.ActivityDenial, 0, min(len(m.denials), maxDenials))
	for _, d := range m.denials[:cap(m.report.Denials)] {
		m.report.Denials = append(m.report.Denials, d.ActivityDenial)
	}
}

// listEntities lists each entity once, by its newest entry. An entity has an entry in each segment
// that counted it.
func (m *merge) listEntities() {
	slices.SortStableFunc(m.entities, func(a, b recentEntity) int { return cmp.Compare(b.order, a.order) })
	m.report.Entities = []httpapi.ActivityEntity{}
	listed := map[string]int{}
	for _, e := range m.entities {
		if i, ok := listed[e.Entity]; ok {
			addUp(&m.report.Entities[i].Asked, e.Asked)
		} else if i = len(listed); i < maxEntities {
			listed[e.Entity] = i
			m.report.Entities = append(m.report.Entities, e.ActivityEntity)
		}
	}
}
