package server

import (
	"context"
	"errors"
	"maps"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
)

// observers passes events on to several observers, in order.
type observers []limiter.Observer

// Observe passes on an event.
func (o observers) Observe(ctx context.Context, e limiter.Event) {
	for _, one := range o {
		one.Observe(ctx, e)
	}
}

// resultLabel returns how a call of the limiter ended, as a label: "admitted" for a reservation and
// "done" for other verbs, "replay", "degraded", "denied", or the code of the error.
func resultLabel(e *limiter.Event) string {
	switch {
	case e.Err != nil:
		if _, ok := errors.AsType[*weir.DeniedError](e.Err); ok {
			return "denied"
		}
		if fault, ok := errors.AsType[*weir.Error](e.Err); ok {
			return strings.ReplaceAll(string(fault.Code), " ", "_")
		}
		return "error"
	case e.Replay:
		return "replay"
	case e.Degraded:
		return "degraded"
	case e.Verb == weir.VerbReserve:
		return "admitted"
	}
	return "done"
}

// Observe counts a call of the limiter. It implements [limiter.Observer].
func (m *metrics) Observe(_ context.Context, e limiter.Event) {
	out := resultLabel(&e)
	told := m.decided.of(decisionLabels{e.Verb, out})
	told.count.Inc()
	told.took.Observe(e.Took.Seconds())
	if e.Verb == weir.VerbComplete {
		for i := range e.Used { // a cancelled lease has used nothing, and an adjusted one is still live
			u := &e.Used[i]
			m.used.of(unitsLabels{m.limits.label(u.Limit), u.Kind}).Add(float64(u.Total))
		}
	}
	if out != "admitted" && out != "denied" {
		return // a replay was counted the first time
	}
	for i := range e.Limits {
		l := &e.Limits[i]
		name := m.limits.label(l.Limit)
		m.judged.of(judgedLabels{name, l.Kind, limitResultLabel(l)}).Inc()
		if out == "admitted" {
			m.reserved.of(unitsLabels{name, l.Kind}).Add(float64(l.Requested))
		}
	}
}

// limitResultLabel returns what one limit decided, which is not always what the reservation became.
func limitResultLabel(l *weir.LimitStatus) string {
	switch {
	case l.Exceeded && l.Shadow:
		return "shadow_exceeded"
	case l.Exceeded:
		return "denied"
	}
	return "admitted"
}

// maxLimitLabels bounds the names of limits that have series of their own.
const maxLimitLabels = 100

// otherLabel stands for all other values of a label.
const otherLabel = "other"

// limitLabels bounds the names of limits in labels, because requests may bring limits with any
// name. The first names have labels of their own.
type limitLabels struct {
	mu    sync.RWMutex
	names map[string]string // each to a copy of itself
}

// label returns the name, or "other" if there are too many.
func (l *limitLabels) label(name string) string {
	l.mu.RLock()
	kept, known := l.names[name]
	full := len(l.names) >= maxLimitLabels
	l.mu.RUnlock()
	switch {
	case known:
		return kept
	case full:
		return otherLabel
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.names == nil {
		l.names = make(map[string]string)
	}
	if kept, known := l.names[name]; known {
		return kept
	}
	if len(l.names) >= maxLimitLabels {
		return otherLabel
	}
	name = strings.Clone(name) // the caller's may hold a whole request in memory
	l.names[name] = name
	return name
}

// requestLabels are the labels of an HTTP request. The status is 0 if it got no answer.
type requestLabels struct {
	method, route string
	status        int
}

// code returns the status as a label.
func (l requestLabels) code() string {
	if l.status == 0 {
		return "none"
	}
	return strconv.Itoa(l.status)
}

// decisionLabels are the labels of a call of the limiter.
type decisionLabels struct {
	verb    weir.Verb
	outcome string
}

// judgedLabels are the labels of a limit that judged a reservation.
type judgedLabels struct {
	limit   string
	kind    weir.Kind
	outcome string
}

// unitsLabels are the labels of units that were reserved or used.
type unitsLabels struct {
	limit string
	kind  weir.Kind
}

// countAndTime counts something and how long it took.
type countAndTime struct {
	count prometheus.Counter
	took  prometheus.Observer
}

// alertedOutcomes are outcomes of a reserve that alerts compare. Their counts begin at zero when the
// server starts, because a count that begins at one has not risen for Prometheus.
func alertedOutcomes() []string {
	return []string{"admitted", "denied", "unavailable", "degraded", "superseded"}
}

// makeSeries registers what every request counts, with caches of its series. A series begins when
// it is first used, except for those of alertedOutcomes.
func (m *metrics) makeSeries() {
	requests := m.counters("weir_requests_total",
		"HTTP requests, by route and status code.", "method", "route", "code")
	durations := m.seconds("weir_request_duration_seconds",
		"How long HTTP requests took.", "method", "route", "code")
	m.answered = newSeriesCache(func(l requestLabels) countAndTime {
		return countAndTime{
			requests.WithLabelValues(l.method, l.route, l.code()),
			durations.WithLabelValues(l.method, l.route, l.code()),
		}
	})
	decisions := m.counters("weir_decisions_total",
		"Calls of the limiter, by verb and outcome.", "verb", "outcome")
	decisionTimes := m.seconds("weir_decision_duration_seconds",
		"How long calls of the limiter took, including the store.", "verb")
	m.decided = newSeriesCache(func(l decisionLabels) countAndTime {
		verb := string(l.verb)
		return countAndTime{decisions.WithLabelValues(verb, l.outcome), decisionTimes.WithLabelValues(verb)}
	})
	for _, outcome := range alertedOutcomes() {
		m.decided.of(decisionLabels{weir.VerbReserve, outcome})
	}
	judged := m.counters("weir_limit_decisions_total",
		"Reservations by the limits that judged them; a reservation counts as denied on the limits that were exceeded.",
		"limit", "kind", "outcome")
	m.judged = newSeriesCache(func(l judgedLabels) prometheus.Counter {
		return judged.WithLabelValues(l.limit, string(l.kind), l.outcome)
	})
	reserved := m.counters("weir_units_reserved_total",
		"Units that were reserved on limits, counted for each entity charged.", "limit", "kind")
	m.reserved = newSeriesCache(func(l unitsLabels) prometheus.Counter {
		return reserved.WithLabelValues(l.limit, string(l.kind))
	})
	used := m.counters("weir_units_used_total",
		"Units that leases stood for when they were completed, counted for each entity charged.", "limit", "kind")
	m.used = newSeriesCache(func(l unitsLabels) prometheus.Counter {
		return used.WithLabelValues(l.limit, string(l.kind))
	})
}

// seriesCache keeps the series of label sets, because looking one up in a vector takes long
// compared with a decision in memory. There are few label sets, and none is ever removed, so
// reading takes no lock. All methods may be called concurrently.
type seriesCache[L comparable, M any] struct {
	find  func(L) M // called once for each label set
	known atomic.Pointer[map[L]M]
	mu    sync.Mutex // for replacing the map, which is never changed
}

func newSeriesCache[L comparable, M any](find func(L) M) *seriesCache[L, M] {
	s := &seriesCache[L, M]{find: find}
	s.known.Store(&map[L]M{})
	return s
}

// of returns the series of a label set.
func (s *seriesCache[L, M]) of(labels L) M {
	if m, ok := (*s.known.Load())[labels]; ok {
		return m
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known := *s.known.Load()
	if m, ok := known[labels]; ok {
		return m
	}
	next := maps.Clone(known)
	m := s.find(labels)
	next[labels] = m
	s.known.Store(&next)
	return m
}
