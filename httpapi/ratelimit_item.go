package httpapi

import (
	"strings"
	"time"

	"github.com/weir-limiter/weir"
)

// rateItem is one limit in the RateLimit headers.
type rateItem struct {
	status *weir.LimitStatus
	limit  *weir.Limit // nil where the definition is not known
	// shared is whether another limit has the same name.
	shared bool
}

// fewItems is how many items are compared with each other.
const fewItems = 16

// rateItems appends an item for each limit, without those that never deny.
func rateItems(items []rateItem, limits []weir.LimitStatus) []rateItem {
	for i := range limits {
		if !limits[i].Shadow {
			items = append(items, rateItem{status: &limits[i]})
		}
	}
	if len(items) <= fewItems {
		for i := range items {
			for j := range items[:i] {
				if items[j].status.Limit == items[i].status.Limit {
					items[i].shared, items[j].shared = true, true
				}
			}
		}
		return items
	}
	times := make(map[string]int, len(items))
	for i := range items {
		times[items[i].status.Limit]++
	}
	for i := range items {
		items[i].shared = times[items[i].status.Limit] > 1
	}
	return items
}

// name calls a limit by its name where only one has it, by entity, resource and name otherwise.
// These may have slashes themselves, which are escaped: no two limits share a name.
func (t *rateItem) name() string {
	s := t.status
	if !t.shared {
		return s.Limit
	}
	return escapeSlash(s.Entity) + "/" + escapeSlash(s.Resource) + "/" + escapeSlash(s.Limit)
}

// escapeSlash escapes slashes as in a path, and what they are escaped with.
func escapeSlash(s string) string {
	if strings.IndexByte(s, '%') < 0 && strings.IndexByte(s, '/') < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ReplaceAll(s, "%", "%25"), "/", "%2F")
}

// violatedPolicies names the limits that were exceeded.
func violatedPolicies(limits []weir.LimitStatus) []string {
	var room [8]rateItem
	items := rateItems(room[:0], limits)
	var violated []string
	for i := range items {
		if items[i].status.Exceeded {
			violated = append(violated, items[i].name())
		}
	}
	return violated
}

// ratePart is what is said of a limit.
type ratePart int

const (
	policyPart    ratePart = iota // how much there is in how many seconds
	admittedState                 // how much is left, and after how many seconds there is more
	deniedState                   // the same, without the wait for a limit that was not exceeded
)

// append appends what is said of the limit.
func (t *rateItem) append(text []byte, part ratePart, now time.Time) []byte {
	text = appendQuoted(text, t.name())
	switch {
	case part == policyPart:
		return appendPolicy(text, t.status, t.limit, now)
	case part == deniedState && !t.status.Exceeded:
		return appendState(text, t.status, nil, now)
	}
	return appendState(text, t.status, t.limit, now)
}

// appendPolicy says how much there is in how many seconds.
func appendPolicy(text []byte, s *weir.LimitStatus, l *weir.Limit, now time.Time) []byte {
	text = appendParameter(text, ";q=", s.Capacity)
	switch {
	case s.Kind == weir.Concurrency:
		return append(text, `;qu="concurrent-requests"`...)
	case l == nil:
	case s.Kind == weir.Bucket:
		return appendParameter(text, ";w=", fullSeconds(s.Capacity, l))
	case s.Kind == weir.Window:
		return appendParameter(text, ";w=", ceilUnits(l.Window, time.Second))
	case s.Kind == weir.Budget:
		start, end := l.Period(now)
		return appendParameter(text, ";w=", ceilUnits(end.Sub(start), time.Second))
	}
	return text
}

// appendState says how much is left, and after how many seconds there is more.
func appendState(text []byte, s *weir.LimitStatus, l *weir.Limit, now time.Time) []byte {
	text = appendParameter(text, ";r=", max(0, s.Available))
	var wait time.Duration
	switch {
	case s.Exceeded:
		wait = s.RetryAfter
	case l == nil || s.Available >= s.Capacity:
	case s.Kind == weir.Bucket:
		// The part of a unit that is there already is not known: the wait may be shorter.
		if milli, ok := milliUnits(s.Available); ok {
			wait = l.RefillWait(milli, max(0, milli)+1000, now.UnixMilli())
		}
	case s.Kind == weir.Budget:
		_, end := l.Period(now)
		wait = end.Sub(now)
	}
	if wait > 0 {
		text = appendParameter(text, ";t=", ceilUnits(wait, time.Second))
	}
	return text
}
