package httpapi

import (
	"math"
	"math/bits"
	"net/http"
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
	r.write(h, limits, admittedState)
}

// denied adds both headers for the limits of a denial. Of a limit that was not exceeded it is not
// said when there is more: that could be later than Retry-After, which the draft asks not to be
// earlier than any t.
func (r *rateLimits) denied(h http.Header, limits []weir.LimitStatus) {
	r.write(h, limits, deniedState)
}

// write adds both headers for the limits that were judged. What does not fit is left out, limits
// that are not exceeded first.
func (r *rateLimits) write(h http.Header, limits []weir.LimitStatus, state ratePart) {
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
	// The names are as net/http spells them, and the values stand in one piece of memory.
	values := [...]string{both[:cut], both[cut:]}
	h[policyHeader] = values[0:1:1]
	h[stateHeader] = values[1:2:2]
}

// define finds the definitions behind the items; none where it is not known, or is of another kind
// by now. The limits of one subject stand beside one another.
func (r *rateLimits) define(items []rateItem) {
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
