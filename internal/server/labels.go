package server

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-limiter/weir"
)

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
