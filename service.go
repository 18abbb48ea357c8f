package weir

import (
	"context"
	"maps"
	"sync/atomic"
	"time"
)

// Service is what callers speak, in process or over a wire. [*limiter.Limiter] is the one in
// process.
//
// Atomicity: Reserve takes every cost of a request or none. Idempotency: every verb may be
// repeated with the same lease ID and content; the answer is the same and nothing is charged
// twice. Concurrency: all methods may be called at once; two calls with one lease ID wait for one
// another. Errors: a denial is a [*DeniedError], everything else an [*Error]; after an error with
// code [Unavailable] the outcome is unknown and the call may be repeated as it was.
type Service interface {
	// Reserve takes what the request asks, or is denied. It never waits for capacity.
	Reserve(ctx context.Context, r *Request) (*Lease, error)
	// Adjust sets what a live lease stands for on each limit named. It is never denied, and may
	// create debt or exceed a capacity. A seq that was applied before is a replay, a lower one is
	// ignored, a gap is fine; seq is above zero. Totals are one Costs for all charges, or one for
	// each of them in the request's order.
	Adjust(ctx context.Context, id LeaseID, seq int64, totals []Costs) (*Receipt, error)
	// Complete replaces what was reserved by what was used and ends the lease. A limit not named
	// keeps what it stands for: unknown is not zero.
	Complete(ctx context.Context, id LeaseID, actuals []Costs) (*Receipt, error)
	// Cancel gives everything back to where it was taken from and ends the lease.
	Cancel(ctx context.Context, id LeaseID) (*Receipt, error)
	// Extend renews the lease and those of its holds that have not timed out.
	Extend(ctx context.Context, id LeaseID) (*Receipt, error)
	// Status reports an entity's limits on a resource; on every resource that has limits of the
	// entity's own or something in use, where resource is empty.
	Status(ctx context.Context, entity, resource string) ([]LimitStatus, error)
	// Explain says which limits apply to an (entity, resource), where they come from and which
	// ones they hide.
	Explain(ctx context.Context, entity, resource string) (*Explanation, error)
}

// Receipt answers a verb on a lease.
type Receipt struct {
	LeaseID LeaseID
	// At is when the verb took effect, to the millisecond. A replay says when it first did.
	At time.Time
	// Expires is when the lease ends by itself; zero once it has been settled.
	Expires time.Time
	// HoldsUntil is when the first of the lease's slots returns by itself; zero without slots.
	HoldsUntil time.Time
	// Degraded is true where the store was not asked, because the lease was never in it.
	Degraded bool
	// RefundInDoubt is true if units that the lease gave back, in this call or an earlier one,
	// may still be charged: the store did not answer the write that returns them, and does not
	// repeat it, because a write that is applied twice would return them twice. Repeating the
	// call does not change that.
	RefundInDoubt bool
}

// Lease is the caller's handle on one live reservation. Settle it: until then, what it reserved
// stays charged and its slots stay occupied. Its methods may be called at once.
type Lease struct {
	// ID is what every verb carries.
	ID LeaseID
	// ReservedAt is when it was reserved, to the millisecond.
	ReservedAt time.Time
	// Expires is when the lease ends by itself unless it is extended.
	Expires time.Time
	// HoldsUntil is when the first of its slots returns by itself; zero if it has none.
	HoldsUntil time.Time
	// Degraded is true where the store did not answer and the policy is [Allow]: nothing was
	// charged, and the lease's verbs do nothing.
	Degraded bool
	// Replay is true where the reservation had been answered before.
	Replay bool
	// Seq is the number of the last adjust that was applied; 0 for a new lease.
	Seq int64
	// Limits has the status of every limit judged. It is shared: do not change it.
	Limits []LimitStatus

	service Service
	seq     atomic.Int64
	sent    atomic.Bool
	report  atomic.Pointer[[]Costs]
}

// Bind makes the lease's methods go to a service. Only a [Service] needs it, for the leases that it
// returns.
func (l *Lease) Bind(s Service) *Lease {
	l.service = s
	l.seq.Store(l.Seq)
	return l
}

// Adjust sets what the lease stands for on each limit named; see [Service.Adjust]. The lease counts
// the sequence numbers itself.
func (l *Lease) Adjust(ctx context.Context, totals ...Costs) (*Receipt, error) {
	return l.service.Adjust(ctx, l.ID, l.seq.Add(1), totals)
}

// Complete settles the lease with what was used; see [Service.Complete].
func (l *Lease) Complete(ctx context.Context, actuals ...Costs) (*Receipt, error) {
	return l.service.Complete(ctx, l.ID, actuals)
}

// Cancel gives everything back; see [Service.Cancel].
func (l *Lease) Cancel(ctx context.Context) (*Receipt, error) {
	return l.service.Cancel(ctx, l.ID)
}

// Extend renews the lease and its holds; see [Service.Extend].
func (l *Lease) Extend(ctx context.Context) (*Receipt, error) {
	return l.service.Extend(ctx, l.ID)
}

// Sent says, inside [Do], that the call has left: from now on an error or a panic does not give
// back what was reserved.
func (l *Lease) Sent() { l.sent.Store(true) }

// Report says, inside [Do], what was used. The last report counts. The costs are copied.
func (l *Lease) Report(actuals ...Costs) {
	report := make([]Costs, len(actuals))
	for i, c := range actuals {
		report[i] = maps.Clone(c)
	}
	l.report.Store(&report)
}

// Verb names what is done to a lease.
type Verb string

// The verbs, in the words of the wire.
const (
	VerbReserve  Verb = "reserve"
	VerbAdjust   Verb = "adjust"
	VerbComplete Verb = "complete"
	VerbCancel   Verb = "cancel"
	VerbExtend   Verb = "extend"
)

// callerKey finds the *callerContext in a context.
type callerKey struct{}

// callerContext is a context that names a caller. It takes one allocation, where
// [context.WithValue] takes a second one for the string.
type callerContext struct {
	context.Context //nolint:containedctx // It is a context itself.

	caller string
}

// Value returns the context itself for callerKey.
func (c *callerContext) Value(key any) any {
	if key == (callerKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// ContextWithCaller names the caller on whose behalf a [Service] is called with the context. Each
// caller has a share of the live leases and of the memory of ended ones, so that none can use them
// up for the others; lease IDs that one caller has made the service forget are refused to it alone.
// A context without a name, or with an empty one, is the program's own: only the bounds on all
// leases hold for it.
func ContextWithCaller(ctx context.Context, caller string) context.Context {
	return &callerContext{ctx, caller}
}

// CallerFromContext returns the caller that [ContextWithCaller] has named, and "" if there is none.
func CallerFromContext(ctx context.Context) string {
	if c, ok := ctx.Value(callerKey{}).(*callerContext); ok {
		return c.caller
	}
	return ""
}
