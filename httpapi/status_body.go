package httpapi

import (
	"math"
	"time"

	"github.com/weir-limiter/weir"
)

// statusBodies are statuses as the wire says them; never nil.
func statusBodies(limits []weir.LimitStatus) []statusBody {
	bodies := make([]statusBody, len(limits))
	for i := range limits {
		bodies[i] = statusBodyOf(&limits[i])
	}
	return bodies
}

func statusBodyOf(s *weir.LimitStatus) statusBody {
	return statusBody{
		Entity: s.Entity, Resource: s.Resource, Limit: s.Limit, Kind: s.Kind, Level: s.Level,
		Capacity: s.Capacity, Available: s.Available, Requested: s.Requested,
		Exceeded: s.Exceeded, Shadow: s.Shadow, Superseded: s.Superseded,
		RetryAfterMS: ceilUnits(s.RetryAfter, time.Millisecond), AtLeast: s.AtLeast,
	}
}

// leaseBodyOf is an admitted reservation as the wire says it.
func leaseBodyOf(l *weir.Lease) *leaseBody {
	return &leaseBody{
		Allowed: true, LeaseID: l.ID, ReservedAtMS: unixMS(l.ReservedAt),
		ExpiresMS: unixMS(l.Expires), HoldsUntilMS: unixMS(l.HoldsUntil),
		Replay: l.Replay, Seq: l.Seq, Degraded: l.Degraded, Limits: statusBodies(l.Limits),
	}
}

// receiptBodyOf is a receipt as the wire says it.
func receiptBodyOf(r *weir.Receipt) *receiptBody {
	return &receiptBody{
		LeaseID: r.LeaseID, AtMS: unixMS(r.At), ExpiresMS: unixMS(r.Expires),
		HoldsUntilMS: unixMS(r.HoldsUntil), Degraded: r.Degraded, RefundInDoubt: r.RefundInDoubt,
	}
}

// explanationBodyOf is an explanation as the wire says it, parents included.
func explanationBodyOf(e *weir.Explanation) *explanationBody {
	if e == nil {
		return nil
	}
	b := &explanationBody{
		Entity: e.Entity, Resource: e.Resource, Level: e.Level,
		Limits: limitBodies(e.Limits), Parent: explanationBodyOf(e.Parent),
	}
	for _, h := range e.Hidden {
		b.Hidden = append(b.Hidden, levelBody{h.Level, limitBodies(h.Limits)})
	}
	return b
}

// unixMS is an instant on the wire; 0 for none.
func unixMS(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// ceilUnits is how many whole units a wait takes, rounded up: who comes back then does not come too
// early.
func ceilUnits(d, unit time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	n := int64(d / unit)
	if d%unit != 0 && n < math.MaxInt64 {
		n++
	}
	return n
}
