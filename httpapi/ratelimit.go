package httpapi

import (
	"math"
	"math/bits"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-limiter/weir"
)

const (
	// maxStructured is the largest integer of a structured field (RFC 9651).
	maxStructured = 999_999_999_999_999
	// maxRateLimitHeader bounds each of the two headers: proxies refuse answers with large ones.
	maxRateLimitHeader = 4096
	// The headers' names, as net/http spells them.
	policyHeader = "Ratelimit-Policy"
	stateHeader  = "Ratelimit"
)

// rateLimits writes the headers RateLimit-Policy and RateLimit of
// draft-ietf-httpapi-ratelimit-headers-10.
type rateLimits struct {
	// applied returns the limits of a subject, without I/O; nil where they are not known.
	applied func(weir.Subject) []weir.Limit
	now     func() time.Time
}

// applier is a service that knows which limits it applied; [weir.Limiter] is one.
type applier interface {
	Applied(s weir.Subject) []weir.Limit
}

// rateLimitsOf makes the headers' writer for a service.
func rateLimitsOf(s weir.Service, now func() time.Time) *rateLimits {
	r := &rateLimits{applied: func(weir.Subject) []weir.Limit { return nil }, now: now}
	if a, ok := s.(applier); ok {
		r.applied = a.Applied
	}
	return r
}

// set adds both headers for the limits of a reservation.
func (r *rateLimits) set(h http.Header, limits []weir.LimitStatus) {
	r.write(h, limits, stateItem)
}

// denied adds both headers for the limits of a denial. Of a limit that was not exceeded it is not
// said when there is more: that could be later than Retry-After, which the draft asks not to be
// earlier than any t.
func (r *rateLimits) denied(h http.Header, limits []weir.LimitStatus) {
	r.write(h, limits, func(name string, s *weir.LimitStatus, l *weir.Limit, now time.Time) string {
		if !s.Exceeded {
			l = nil
		}
		return stateItem(name, s, l, now)
	})
}

// write adds both headers for the limits that were judged. What does not fit is left out, limits that
// are not exceeded first.
func (r *rateLimits) write(
	h http.Header, limits []weir.LimitStatus,
	state func(string, *weir.LimitStatus, *weir.Limit, time.Time) string,
) {
	judged := enforced(limits)
	if len(judged) == 0 {
		return
	}
	names := policyNames(judged)
	now := r.now()
	policies := &headerList{}
	states := &headerList{}
	for _, exceeded := range []bool{true, false} {
		for i, s := range judged {
			if s.Exceeded == exceeded {
				limit := r.limit(s)
				policies.add(policyItem(names[i], s, limit, now))
				states.add(state(names[i], s, limit, now))
			}
		}
	}
	h.Set(policyHeader, policies.text.String())
	h.Set(stateHeader, states.text.String())
}

// enforced leaves out the limits that never deny.
func enforced(limits []weir.LimitStatus) []*weir.LimitStatus {
	var judged []*weir.LimitStatus
	for i := range limits {
		if !limits[i].Shadow {
			judged = append(judged, &limits[i])
		}
	}
	return judged
}

// policyNames calls a limit by its name where only one has it, by entity, resource and name
// otherwise. These may have slashes themselves, which are escaped: no two limits share a name.
func policyNames(judged []*weir.LimitStatus) []string {
	times := make(map[string]int, len(judged))
	for _, s := range judged {
		times[s.Limit]++
	}
	names := make([]string, len(judged))
	for i, s := range judged {
		names[i] = s.Limit
		if times[s.Limit] > 1 {
			names[i] = escapeSlash(s.Entity) + "/" + escapeSlash(s.Resource) + "/" + escapeSlash(s.Limit)
		}
	}
	return names
}

// escapeSlash escapes slashes as in a path, and what they are escaped with.
func escapeSlash(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "%", "%25"), "/", "%2F")
}

// violatedPolicies names the limits that were exceeded.
func violatedPolicies(limits []weir.LimitStatus) []string {
	judged := enforced(limits)
	var violated []string
	for i, name := range policyNames(judged) {
		if judged[i].Exceeded {
			violated = append(violated, name)
		}
	}
	return violated
}

// limit returns the definition behind a status; nil where it is not known, or is of another kind by
// now.
func (r *rateLimits) limit(s *weir.LimitStatus) *weir.Limit {
	limits := r.applied(weir.Subject{Entity: s.Entity, Resource: s.Resource})
	at := slices.IndexFunc(limits, func(l weir.Limit) bool {
		return l.Name == s.Limit && l.Kind == s.Kind
	})
	if at < 0 {
		return nil
	}
	return &limits[at]
}

// policyItem says how much there is in how many seconds.
func policyItem(name string, s *weir.LimitStatus, l *weir.Limit, now time.Time) string {
	item := quoted(name) + ";q=" + structured(s.Capacity)
	switch {
	case s.Kind == weir.Concurrency:
		return item + `;qu="concurrent-requests"`
	case l == nil:
		return item
	case s.Kind == weir.Bucket:
		return item + ";w=" + structured(fullSeconds(s.Capacity, l))
	case s.Kind == weir.Window:
		return item + ";w=" + structured(ceilUnits(l.Window, time.Second))
	case s.Kind == weir.Budget:
		start, end := l.Period(now)
		return item + ";w=" + structured(ceilUnits(end.Sub(start), time.Second))
	}
	return item
}

// stateItem says how much is left, and after how many seconds there is more.
func stateItem(name string, s *weir.LimitStatus, l *weir.Limit, now time.Time) string {
	left := max(0, s.Available)
	item := quoted(name) + ";r=" + structured(left)
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
		item += ";t=" + structured(ceilUnits(wait, time.Second))
	}
	return item
}

// fullSeconds is how long a bucket takes to regain the whole of a capacity, rounded up.
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

// milliUnits is false for what no bucket can hold.
func milliUnits(n int64) (int64, bool) {
	const most = math.MaxInt64/1000 - 1
	return n * 1000, -most <= n && n <= most
}

func structured(n int64) string { return strconv.FormatInt(min(n, maxStructured), 10) }

// quoted is a string of a structured field, which has only printable ASCII.
func quoted(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c > '~':
			b.WriteByte('?')
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// headerList is a list of a structured field, as far as there is room.
type headerList struct{ text strings.Builder }

func (l *headerList) add(item string) {
	if l.text.Len()+len(item)+2 > maxRateLimitHeader {
		return
	}
	if l.text.Len() > 0 {
		l.text.WriteString(", ")
	}
	l.text.WriteString(item)
}
