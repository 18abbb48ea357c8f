package limiter

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
)

// storeContext bounds a call to the store: the store's own timeout, or what is left of the caller's
// deadline less a tenth, so that the caller still hears what happened.
func (l *Limiter) storeContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return l.withTimeout(ctx, l.options.StoreTimeout, l.options.StoreTimeout)
}

// adminTimeout is how long the store gets for a call of an administrator who sets no deadline: it
// may concern thousands of items, and no request waits for it.
const adminTimeout = time.Minute

// administerContext bounds a call that is on no request's path: what is left of the caller's
// deadline less a tenth, however long, so that a large change has the time it needs.
func (l *Limiter) administerContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return l.withTimeout(ctx, math.MaxInt64, max(adminTimeout, l.options.StoreTimeout))
}

// withTimeout gives a call to the store nine tenths of what the caller has left, and no more than
// most; a caller without a deadline gets so much.
func (l *Limiter) withTimeout(
	ctx context.Context, most, without time.Duration,
) (context.Context, context.CancelFunc) {
	if l.traits.Local {
		return ctx, func() {}
	}
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithTimeout(ctx, without)
	}
	left := time.Until(deadline)
	return context.WithTimeout(ctx, min(most, left-left/10))
}

// acquire waits for a lease no longer than for the store, which is what the call that holds it
// waits for.
func (l *Limiter) acquire(ctx context.Context, id weir.LeaseID, now int64, create bool) (*leaseEntry, error) {
	if e, busy := l.leases.tryAcquire(id, now, create); busy == nil {
		return e, nil // as nearly always: no timer is needed
	}
	storeCtx, cancel := l.storeContext(ctx)
	defer cancel()
	return l.leases.acquire(storeCtx, id, now, create)
}

// degrades reports whether a failed reservation becomes a degraded lease: the store was at fault,
// the policy allows it, and the caller is still there.
func (l *Limiter) degrades(ctx context.Context, err error) bool {
	if !errors.Is(err, weir.Unavailable) || ctx.Err() != nil {
		return false
	}
	policy := l.options.OnUnavailable
	if policy == "" {
		policy = l.policy.last()
	}
	return policy == weir.Allow
}

// degrade makes a lease that the store knows nothing of.
func (l *Limiter) degrade(now time.Time, e *leaseEntry, r *reservation) *weir.Lease {
	at := now.Truncate(time.Millisecond)
	e.activate(&driver.LeaseRecord{
		ID: r.id, State: driver.LeaseLive, Fingerprint: r.fingerprint, At: at,
		Expires: at.Add(r.lifetime), Charges: len(r.charges),
	})
	e.degraded = true
	return l.newLease(e, now, &weir.Lease{})
}
