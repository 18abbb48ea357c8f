package apijson

import (
	"fmt"
	"math"
	"math/bits"
	"net/http"
	"strconv"
	"time"

	"github.com/weir-limiter/weir"
)

const (
	// maxStructured is the largest integer of a structured field (RFC 9651).
	maxStructured = 999_999_999_999_999
	// maxRateLimitHeader bounds each of the two headers, because proxies refuse large ones.
	maxRateLimitHeader = 4096
	// The canonical names of the headers.
	policyHeader = "Ratelimit-Policy"
	stateHeader  = "Ratelimit"
)

// RateLimits writes the headers RateLimit-Policy and RateLimit of
// draft-ietf-httpapi-ratelimit-headers-10.
type RateLimits struct {
	// applied returns the limits of a subject without I/O, or nil if they are not known.
	applied func(weir.Subject) []weir.Limit
	now     func() time.Time
}

// applier is a service that knows which limits it applied, such as [limiter.Limiter].
type applier interface {
	Applied(s weir.Subject) []weir.Limit
}

// NewRateLimits returns the writer of the headers for a service.
func NewRateLimits(s weir.Service, now func() time.Time) *RateLimits {
	r := &RateLimits{applied: func(weir.Subject) []weir.Limit { return nil }, now: now}
	if a, ok := s.(applier); ok {
		r.applied = a.Applied
	}
	return r
}

// Set adds both headers for the limits of an admitted reservation.
func (r *RateLimits) Set(h http.Header, limits []weir.LimitStatus) {
	r.write(h, limits, admittedState)
}

// denied adds both headers for the limits of a denial. A limit that was not exceeded has no t,
// because its t could be later than Retry-After, and no t may be later than that.
func (r *RateLimits) denied(h http.Header, limits []weir.LimitStatus) {
	r.write(h, limits, deniedState)
}

// write adds both headers for the limits that were judged. If not all fit, it first leaves out
// limits that are not exceeded.
func (r *RateLimits) write(h http.Header, limits []weir.LimitStatus, state ratePart) {
	var room [8]rateItem
	items := rateItems(room[:0], limits)
	if len(items) == 0 {
		return
	}
	r.define(items)
	now := r.now()
	var space [512]byte
	text := appendList(space[:0], items, policyPart, now)
	cut := len(text)
	both := string(appendList(text, items, state, now))
	// The array holds both values in one allocation.
	values := [...]string{both[:cut], both[cut:]}
	h[policyHeader] = values[0:1:1]
	h[stateHeader] = values[1:2:2]
}

// define sets the definitions of the items. It leaves out a definition that is unknown or that now
// has another kind. The limits of one subject are adjacent.
func (r *RateLimits) define(items []rateItem) {
	var limits []weir.Limit
	for i := range items {
		s := items[i].status
		if i == 0 || s.Entity != items[i-1].status.Entity || s.Resource != items[i-1].status.Resource {
			limits = r.applied(weir.Subject{Entity: s.Entity, Resource: s.Resource})
		}
		for j := range limits {
			if limits[j].Name == s.Limit && limits[j].Kind == s.Kind {
				items[i].limit = &limits[j]
				break
			}
		}
	}
}

// fullSeconds returns the number of seconds in which a bucket regains its capacity, rounded up.
func fullSeconds(capacity int64, l *weir.Limit) int64 {
	perSecond := uint64(time.Second / time.Millisecond)
	hi, lo := bits.Mul64(uint64(max(0, capacity)), uint64(l.RefillPeriod.Milliseconds()))
	divisor := uint64(max(1, l.RefillAmount))
	if hi >= divisor {
		return maxStructured
	}
	ms, rest := bits.Div64(hi, lo, divisor)
	if rest > 0 && ms < 1<<63 {
		ms++
	}
	seconds := ms / perSecond
	if ms%perSecond > 0 {
		seconds++
	}
	return int64(min(seconds, maxStructured))
}

// milliUnits returns n in milli-units, or false if n is more than a bucket can hold.
func milliUnits(n int64) (int64, bool) {
	const most = math.MaxInt64/1000 - 1
	return n * 1000, -most <= n && n <= most
}

// rateItem is one limit in the RateLimit headers.
type rateItem struct {
	status *weir.LimitStatus
	limit  *weir.Limit // the definition, or nil if it is not known
	// shared reports whether another limit has the same name.
	shared bool
}

// fewItems is the largest number of items that are compared pairwise.
const fewItems = 16

// rateItems appends an item for each limit that can deny.
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

// name returns the name of a limit, or its entity, resource and name if another limit has the same
// name. What these cannot have in a header is escaped, and so are slashes, so that no two limits
// have the same name.
func (t *rateItem) name() string {
	s := t.status
	if !t.shared {
		return s.Limit
	}
	return escapePart(s.Entity) + "/" + escapePart(s.Resource) + "/" + s.Limit
}

// escapePart percent-encodes slashes, percent signs, and what the string of a structured header
// cannot have as it is (RFC 9651, section 3.3.3): quotes, backslashes and everything beyond ASCII.
func escapePart(s string) string {
	var escaped []byte
	for i := range len(s) {
		switch c := s[i]; {
		case c == '/', c == '%', c == '"', c == '\\', c <= ' ', c >= 0x7f:
			if escaped == nil {
				escaped = append(make([]byte, 0, 3*len(s)), s[:i]...)
			}
			escaped = fmt.Appendf(escaped, "%%%02X", c)
		case escaped != nil:
			escaped = append(escaped, c)
		}
	}
	if escaped == nil {
		return s
	}
	return string(escaped)
}

// violatedPolicies returns the names of the limits that were exceeded.
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

// ratePart selects the part of the headers that an item is written to.
type ratePart int

const (
	policyPart    ratePart = iota // the capacity and the window in seconds
	admittedState                 // the available units, and the seconds until there are more
	deniedState                   // like admittedState, without the seconds if the limit was not exceeded
)

// append appends the item.
func (t *rateItem) append(text []byte, part ratePart, now time.Time) []byte {
	text = append(append(append(text, '"'), t.name()...), '"')
	switch {
	case part == policyPart:
		return appendPolicy(text, t.status, t.limit, now)
	case part == deniedState && !t.status.Exceeded:
		return appendState(text, t.status, nil, now)
	}
	return appendState(text, t.status, t.limit, now)
}

// appendPolicy appends the capacity and the window in seconds.
func appendPolicy(text []byte, s *weir.LimitStatus, l *weir.Limit, now time.Time) []byte {
	text = appendParameter(text, ";q=", s.Capacity)
	switch {
	case s.Kind == weir.Concurrency:
		return append(text, `;qu="concurrent-requests"`...)
	case l == nil:
	case s.Kind == weir.Bucket:
		return appendParameter(text, ";w=", fullSeconds(s.Capacity, l))
	case s.Kind == weir.Window:
		return appendParameter(text, ";w=", CeilUnits(l.Window, time.Second))
	case s.Kind == weir.Budget:
		start, end := l.Period(now)
		return appendParameter(text, ";w=", CeilUnits(end.Sub(start), time.Second))
	}
	return text
}

// appendState appends the available units, and the number of seconds until there are more.
func appendState(text []byte, s *weir.LimitStatus, l *weir.Limit, now time.Time) []byte {
	text = appendParameter(text, ";r=", max(0, s.Available))
	var wait time.Duration
	switch {
	case s.Exceeded:
		wait = s.ComeAgain()
	case l == nil || s.Available >= s.Capacity:
	case s.Kind == weir.Bucket:
		// A part of the next unit may have been regained already, so the wait may be shorter than a
		// whole unit takes.
		if milli, ok := milliUnits(s.Available); ok {
			wait = l.RefillWait(milli, max(0, milli)+1000, now.UnixMilli())
		}
	case s.Kind == weir.Budget:
		_, end := l.Period(now)
		wait = end.Sub(now)
	}
	if wait > 0 {
		text = appendParameter(text, ";t=", CeilUnits(wait, time.Second))
	}
	return text
}

// appendList appends a list of a structured field, as far as it fits, with exceeded limits first.
func appendList(text []byte, items []rateItem, part ratePart, now time.Time) []byte {
	from := len(text)
	for _, exceeded := range []bool{true, false} {
		for i := range items {
			if items[i].status.Exceeded != exceeded {
				continue
			}
			before := len(text)
			if before > from {
				text = append(text, ", "...)
			}
			start := len(text)
			text = items[i].append(text, part, now)
			if before-from+len(text)-start+2 > maxRateLimitHeader {
				text = text[:before]
			}
		}
	}
	return text
}

// appendParameter appends an integer, at most the largest that a structured field can hold.
func appendParameter(text []byte, name string, n int64) []byte {
	return strconv.AppendInt(append(text, name...), min(n, maxStructured), 10)
}
