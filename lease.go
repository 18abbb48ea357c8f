package weir

import (
	"context"
	"maps"
	"sync/atomic"
	"time"
)

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
