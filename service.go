package weir

import (
	"context"
	"sync/atomic"
	"time"
)

// Service is the API of a limiter, in the process or over a network. [*limiter.Limiter] implements
// it in the process, the client of package httpapi over HTTP.
//
// Atomicity: Reserve takes every cost of a request or none.
//
// Idempotency: every call may be repeated with the same lease ID and content. The answer is the
// same, and nothing is charged twice.
//
// Concurrency: all methods may be called concurrently. Of two calls with one lease ID, one waits
// for the other.
//
// Errors: a denial is a [*DeniedError], any other error is an [*Error]. After an error with code
// [Unavailable] the outcome is unknown, and the call may be repeated as it was.
type Service interface {
	// Reserve takes what the request asks for, or returns a denial. It never waits for capacity.
	Reserve(ctx context.Context, r *Request) (*Lease, error)
	// Adjust sets what a live lease stands for on each limit that totals name. It is never denied,
	// and may create debt or exceed a capacity. seq is above zero; gaps are allowed. If seq is not
	// above that of the last adjust applied, nothing changes and the last answer is repeated.
	// totals are one Costs for all charges, or one for each charge in the request's order.
	Adjust(ctx context.Context, id LeaseID, seq int64, totals []Costs) (*Receipt, error)
	// Complete replaces what was reserved with what was used, and ends the lease. A limit that actuals
	// do not name keeps what it stands for: unknown is not zero.
	Complete(ctx context.Context, id LeaseID, actuals []Costs) (*Receipt, error)
	// Cancel gives back everything that the lease stands for, and ends it.
	Cancel(ctx context.Context, id LeaseID) (*Receipt, error)
	// Extend renews the lease and those of its slots that have not timed out.
	Extend(ctx context.Context, id LeaseID) (*Receipt, error)
	// Status returns the statuses of all limits that a request of an entity on a resource would be
	// charged on: the entity's, then those of each ancestor that it charges. If resource is empty,
	// it returns those on every resource on which one of them has limits of its own or something in
	// use. Those of one entity on one resource are of one instant.
	Status(ctx context.Context, entity, resource string) ([]LimitStatus, error)
	// Explain returns the limits that apply to an entity on a resource, the level that they come
	// from, the limits that they hide, and what a reservation becomes if the store does not answer.
	Explain(ctx context.Context, entity, resource string) (*Explanation, error)
}

// Receipt is the answer to an update of a lease: adjust, complete, cancel or extend.
type Receipt struct {
	LeaseID LeaseID
	// At is when the update was applied, to the millisecond. A replay has the time of the first
	// call.
	At time.Time
	// Expires is when the lease ends by itself; zero if it has ended.
	Expires time.Time
	// HoldsUntil is when the first of the lease's slots returns by itself; zero if it has none.
	HoldsUntil time.Time
	// Degraded reports that the lease is a degraded one, see [Lease]: the store was not called.
	Degraded bool
	// RefundInDoubt reports that units that the lease gave back, in this call or an earlier one,
	// may still be charged: the store did not answer the write that returns them. The write is not
	// repeated, because a write that is applied twice would return them twice. Repeating the call
	// does not change that.
	RefundInDoubt bool
}

// Lease is the caller's handle on one live reservation. The caller must settle it with Complete or
// Cancel: until then, what it reserved stays charged and its slots stay occupied. Its methods may
// be called concurrently.
type Lease struct {
	// ID identifies the lease in every call.
	ID LeaseID
	// ReservedAt is when the lease was reserved, to the millisecond.
	ReservedAt time.Time
	// Expires is when the lease ends by itself unless it is extended.
	Expires time.Time
	// HoldsUntil is when the first of the lease's slots returns by itself; zero if it has none.
	HoldsUntil time.Time
	// Degraded reports that the store did not answer and the policy is [Allow]: nothing was
	// charged, and the lease's methods do nothing.
	Degraded bool
	// Replay reports that an earlier call made this reservation.
	Replay bool
	// Seq is the sequence number of the last adjust that was applied; 0 for a new lease.
	Seq int64
	// Limits has the status of every limit that the request was judged by. It is shared: do not
	// change it.
	Limits []LimitStatus

	service   Service
	seq       atomic.Int64
	sent      atomic.Bool
	completed atomic.Pointer[Receipt] // of a Complete that succeeded
	notes     atomic.Pointer[leaseNotes]
}

// Bind sets the service that the lease's methods call. Only implementations of [Service] need it,
// for the leases that they return.
func (l *Lease) Bind(s Service) *Lease {
	l.service = s
	l.seq.Store(l.Seq)
	return l
}

// Adjust sets what the lease stands for on each limit that totals name; see [Service.Adjust]. The
// lease numbers its adjusts itself. [Lease.Add] is for a caller that knows only what was added.
func (l *Lease) Adjust(ctx context.Context, totals ...Costs) (*Receipt, error) {
	n := l.remember()
	n.turn.Lock()
	defer n.turn.Unlock()
	receipt, err := l.adjust(ctx, totals)
	n.adjusted(totals, err)
	return receipt, err
}

// Complete ends the lease and charges what was used; see [Service.Complete]. Deltas of [Lease.Add]
// that were kept are sent first, if actuals do not name their limits.
func (l *Lease) Complete(ctx context.Context, actuals ...Costs) (*Receipt, error) {
	var receipt *Receipt
	err := l.sendUnnamed(ctx, actuals)
	if err == nil {
		receipt, err = l.service.Complete(ctx, l.ID, actuals)
	}
	switch {
	case err == nil:
		l.completed.Store(receipt)
	case mayRepeat(err):
		l.remember().setUnanswered(actuals)
	}
	return receipt, err
}

// Cancel ends the lease and gives everything back; see [Service.Cancel]. It can be deferred: what
// was completed through this lease stays so. After a Complete that succeeded, Cancel makes no call,
// and returns the receipt of that Complete. After a Complete that may be repeated, because its
// outcome is unknown or the service was overloaded, Cancel repeats it, and gives nothing back.
// After one that was refused, it cancels.
//
// If two goroutines complete and cancel at the same time, the service decides by the one that it
// gets first.
func (l *Lease) Cancel(ctx context.Context) (*Receipt, error) {
	if done := l.completed.Load(); done != nil {
		receipt := *done
		return &receipt, nil
	}
	if actuals, unanswered := l.notes.Load().completion(); unanswered {
		return l.Complete(ctx, actuals...)
	}
	return l.service.Cancel(ctx, l.ID)
}

// Extend renews the lease and its slots; see [Service.Extend].
func (l *Lease) Extend(ctx context.Context) (*Receipt, error) {
	return l.service.Extend(ctx, l.ID)
}

// Sent tells [Do] that the request has been sent to the model: from then on an error or a panic
// does not give back what was reserved.
func (l *Lease) Sent() { l.sent.Store(true) }

// Report tells [Do] what was used. A later report replaces an earlier one. The costs are copied.
func (l *Lease) Report(actuals ...Costs) {
	l.remember().setReport(&leaseReport{actuals: cloneCosts(actuals)})
}

// GiveBack tells [Do] that nothing was used: Do cancels the lease when the function returns, even
// if the function succeeds or has called Sent. It is a report: it replaces an earlier one, and a
// later one replaces it. Without Do, [Lease.Cancel] gives everything back at once.
func (l *Lease) GiveBack() { l.remember().setReport(&leaseReport{nothing: true}) }

// Decided reports whether Sent, Report or GiveBack was called. It is for code around the function
// that [Do] runs, such as a middleware, that would decide otherwise.
func (l *Lease) Decided() bool { return l.sent.Load() || l.notes.Load().lastReport() != nil }

// Verb names what is done to a lease.
type Verb string

// The verbs, as the HTTP API spells them.
const (
	VerbReserve  Verb = "reserve"
	VerbAdjust   Verb = "adjust"
	VerbComplete Verb = "complete"
	VerbCancel   Verb = "cancel"
	VerbExtend   Verb = "extend"
)

// callerKey is the key of the *callerContext in a context.
type callerKey struct{}

// callerContext is a context that names a caller. It is one allocation; [context.WithValue] would
// need a second one for the string.
type callerContext struct {
	context.Context //nolint:containedctx // It is a context itself.

	caller string
}

// Value returns c for callerKey.
func (c *callerContext) Value(key any) any {
	if key == (callerKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// ContextWithCaller returns a context for calls of a [Service] on behalf of a caller. Each caller
// has a share of the live leases and of the memory of ended ones, so that no caller can use them
// up. If the service has to forget ended leases of a caller early, it refuses old lease IDs of that
// caller only. A context with no name or an empty one is for calls of the program itself, which
// only the bounds on all leases restrict.
func ContextWithCaller(ctx context.Context, caller string) context.Context {
	return &callerContext{ctx, caller}
}

// CallerFromContext returns the caller that [ContextWithCaller] has set, or "".
func CallerFromContext(ctx context.Context) string {
	if c, ok := ctx.Value(callerKey{}).(*callerContext); ok {
		return c.caller
	}
	return ""
}
