package weir

import (
	"context"
	"time"
)

// Service is what callers speak, in process or over a wire. [*Limiter] is the one in process.
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
