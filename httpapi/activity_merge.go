package httpapi

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/weir-limiter/weir"
)

// Report returns what has been counted up to now. Its lists are the caller's own.
func (a *Activity) Report(now time.Time) *ActivityReport {
	end := a.clock.end(now)
	m := merge{end: end, report: ActivityReport{
		SinceMS: a.since.UnixMilli(), NowMS: now.UnixMilli(),
		Errors: []ActivityErrors{}, Limits: []ActivityLimit{},
		Seconds: ActivitySeconds{
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
	report   ActivityReport
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
		d.Exceeded = append([]ActivityExceeded{}, d.Exceeded...) // the slot uses its own again
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
			m.report.Errors = append(m.report.Errors, ActivityErrors{code, n})
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
		m.report.Limits = append(m.report.Limits, ActivityLimit{
			Limit: keys[i].name, Kind: keys[i].kind,
			Admitted: c.admitted, Denied: c.denied, Shadow: c.shadow, Reserved: c.reserved,
		})
	}
	slices.SortFunc(m.report.Limits, func(a, b ActivityLimit) int {
		return cmp.Or(strings.Compare(a.Limit, b.Limit), cmp.Compare(a.Kind, b.Kind))
	})
}

func (m *merge) listDenials() {
	slices.SortFunc(m.denials, func(a, b recentDenial) int { return cmp.Compare(b.order, a.order) })
	m.report.Denials = make([]ActivityDenial, 0, min(len(m.denials), maxActivityDenials))
	for _, d := range m.denials[:cap(m.report.Denials)] {
		m.report.Denials = append(m.report.Denials, d.ActivityDenial)
	}
}

// listEntities keeps the newest of an entity's entries, since it has one in each shard that saw it.
// Those of one reservation stay in the order in which they were first seen.
func (m *merge) listEntities() {
	slices.SortStableFunc(m.entities, func(a, b recentEntity) int { return cmp.Compare(b.order, a.order) })
	m.report.Entities = []ActivityEntity{}
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
