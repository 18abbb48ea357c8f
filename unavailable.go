package weir

import (
	"context"
	"errors"
	"time"
)

// storeContext bounds a call to the store: the store's own timeout, or what is left of the caller's
// deadline less a tenth, so that the caller still hears what happened.
func (l *Limiter) storeContext(ctx context.Context) (context.Context, context.CancelFunc) {
	if l.traits.Local {
		return ctx, func() {}
	}
	timeout := l.options.StoreTimeout
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline)
		timeout = min(timeout, left-left/10)
	}
	return context.WithTimeout(ctx, timeout)
}

// acquire waits for a lease no longer than for the store, which is what the call that holds it waits
// for.
func (l *Limiter) acquire(ctx context.Context, id LeaseID, now int64, create bool) (*leaseEntry, error) {
	if e, busy := l.leases.try(id, now, create); busy == nil {
		return e, nil // as nearly always: no timer is needed
	}
	storeCtx, cancel := l.storeContext(ctx)
	defer cancel()
	return l.leases.acquire(storeCtx, id, now, create)
}

// classify makes every failure of a store an [*Error]. One that says nothing of itself means that
// the store did not answer.
func classify(err error) error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Code: Unavailable, Reason: "the store did not answer", Err: err}
}

// degrades reports whether a failed reservation becomes a degraded lease: the store was at fault, the
// policy allows it, and the caller is still there.
func (l *Limiter) degrades(ctx context.Context, err error) bool {
	if !errors.Is(err, Unavailable) || ctx.Err() != nil {
		return false
	}
	policy := l.options.OnUnavailable
	if policy == "" {
		policy = l.policy.last()
	}
	return policy == Allow
}

// degrade makes a lease that the store knows nothing of.
func (l *Limiter) degrade(now time.Time, e *leaseEntry, r *Reservation) *Lease {
	at := wholeMS(now)
	e.bear(LeaseRecord{
		ID: r.ID, State: LeaseLive, Fingerprint: r.Fingerprint, At: at,
		Expires: r.Expires(at, nil), Charges: len(r.Charges),
	})
	e.degraded = true
	return l.handle(e, now, &Lease{})
}
