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
)

// observers tells each of them of a call, in order.
type observers []weir.Observer

// Observe tells each.
func (o observers) Observe(ctx context.Context, e weir.Event) {
	for _, one := range o {
		one.Observe(ctx, e)
	}
}

// outcome is how a call of the limiter ended, in one word for a label: "admitted" for a reservation
// and "done" for the other verbs, "replay", "degraded", "denied", or the code of the error.
func outcome(e *weir.Event) string {
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

// Observe counts a call of the limiter. It fulfils [weir.Observer].
func (m *metrics) Observe(_ context.Context, e weir.Event) {
	out := outcome(&e)
	told := m.decided.of(decisionLabels{e.Verb, out})
	told.count.Inc()
	told.took.Observe(e.Took.Seconds())
	if out != "admitted" && out != "denied" {
		return // a replay was counted when it was new
	}
	for i := range e.Limits {
		l := &e.Limits[i]
		name := m.limits.label(l.Limit)
		m.judged.of(judgedLabels{name, l.Kind, limitOutcome(l)}).Inc()
		if out == "admitted" {
			m.reserved.of(reservedLabels{name, l.Kind}).Add(float64(l.Requested))
		}
	}
}

// limitOutcome is what one limit said to a reservation: it may have held what another one denied.
func limitOutcome(l *weir.LimitStatus) string {
	switch {
	case l.Exceeded && l.Shadow:
		return "shadow_exceeded"
	case l.Exceeded:
		return "denied"
	}
	return "admitted"
}

// maxLimitLabels is how many names of limits have series of their own.
const maxLimitLabels = 100

// otherLabel stands for all that have none.
const otherLabel = "other"

// limitLabels bounds the names of limits in labels: the first ones met keep theirs. A request may
// bring limits with names of its own.
type limitLabels struct {
	mu    sync.RWMutex
	names map[string]string // to themselves, in memory of their own
}

// label returns the name as it is kept, or "other" where there are too many already.
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
	name = strings.Clone(name) // it may be a part of a whole request
	l.names[name] = name
	return name
}

// requestLabels are those of an HTTP request. A status of 0 is an answer that was given up.
type requestLabels struct {
	method, route string
	status        int
}

// code is the status as a label.
func (l requestLabels) code() string {
	if l.status == 0 {
		return "none"
	}
	return strconv.Itoa(l.status)
}

// decisionLabels are those of a call of the limiter.
type decisionLabels struct {
	verb    weir.Verb
	outcome string
}

// judgedLabels are those of a limit that judged a reservation.
type judgedLabels struct {
	limit   string
	kind    weir.Kind
	outcome string
}

// reservedLabels are those of units that a reservation took.
type reservedLabels struct {
	limit string
	kind  weir.Kind
}

// countAndTime counts something, and how long it took.
type countAndTime struct {
	count prometheus.Counter
	took  prometheus.Observer
}

// findSeries makes what remembers the series that each request asks for. A series begins when it is
// first asked for, as it would without.
func (m *metrics) findSeries() {
	m.answered = newSeries(func(l requestLabels) countAndTime {
		return countAndTime{
			m.requests.WithLabelValues(l.method, l.route, l.code()),
			m.durations.WithLabelValues(l.method, l.route, l.code()),
		}
	})
	m.decided = newSeries(func(l decisionLabels) countAndTime {
		verb := string(l.verb)
		return countAndTime{
			m.decisions.WithLabelValues(verb, l.outcome), m.decisionTimes.WithLabelValues(verb),
		}
	})
	m.judged = newSeries(func(l judgedLabels) prometheus.Counter {
		return m.limitDecisions.WithLabelValues(l.limit, string(l.kind), l.outcome)
	})
	m.reserved = newSeries(func(l reservedLabels) prometheus.Counter {
		return m.unitsReserved.WithLabelValues(l.limit, string(l.kind))
	})
}

// series remembers what was found for a set of labels, since a vector's own search is dear next to a
// decision in memory. Labels are few and stay: reading takes no lock. All methods may be called at
// once.
type series[L comparable, M any] struct {
	find  func(L) M // asks the vectors; called once for each set of labels
	known atomic.Pointer[map[L]M]
	mu    sync.Mutex // for who replaces the map, which is never changed
}

func newSeries[L comparable, M any](find func(L) M) *series[L, M] {
	s := &series[L, M]{find: find}
	s.known.Store(&map[L]M{})
	return s
}

// of returns what belongs to a set of labels.
func (s *series[L, M]) of(labels L) M {
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
