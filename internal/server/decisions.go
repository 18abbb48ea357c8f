package server

import (
	"context"
	"errors"
	"strings"
	"sync"

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
