package limiter

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
)

// storeContext returns the context for a call to the store on behalf of a request. It ends after
// StoreTimeout, or when nine tenths of the time to the caller's deadline have passed. The last
// tenth is for the answer: without it the caller would give up without learning the outcome.
func (l *Limiter) storeContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return l.withTimeout(ctx, l.options.StoreTimeout, l.options.StoreTimeout)
}

// adminTimeout bounds an administrative call without a deadline. It is longer than StoreTimeout,
// because such a call may write thousands of items and no request waits for it.
const adminTimeout = time.Minute

// administerContext returns the context for a call to the store that no request waits for. It ends
// when nine tenths of the time to the caller's deadline have passed, or after adminTimeout if the
// caller has no deadline.
func (l *Limiter) administerContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return l.withTimeout(ctx, math.MaxInt64, max(adminTimeout, l.options.StoreTimeout))
}

// withTimeout bounds ctx by nine tenths of the time to its deadline and by most. If ctx has no
// deadline, it is bounded by without.
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

// acquire is like [leaseTable.acquire], but waits for the store's timeout at most: the call that
// holds the entry waits for the store at most that long.
func (l *Limiter) acquire(ctx context.Context, id weir.LeaseID, now int64, create bool) (*leaseEntry, error) {
	if e, busy := l.leases.tryAcquire(id, now, create); busy == nil {
		return e, nil // the usual case, which needs no timer
	}
	storeCtx, cancel := l.storeContext(ctx)
	defer cancel()
	return l.leases.acquire(storeCtx, id, now, create)
}

// degrades reports whether a failed reservation becomes a degraded lease: the store did not answer,
// the policy allows it, and the caller's context has not ended.
func (l *Limiter) degrades(ctx context.Context, err error) bool {
	if !errors.Is(err, weir.Unavailable) || ctx.Err() != nil {
		return false
	}
	policy, _ := l.onUnavailable()
	return policy == weir.Allow
}

// onUnavailable returns the policy that applies now, and where it comes from. The system's policy is
// the one that was last read with the configuration of any subject, or that this process has set.
func (l *Limiter) onUnavailable() (weir.Policy, weir.PolicySource) {
	if p := l.options.OnUnavailable; p != "" {
		return p, weir.PolicyFromLimiter
	}
	if p := l.policy.last(); p != "" {
		return p, weir.PolicyFromSystem
	}
	return weir.Block, weir.PolicyFromDefault
}

// degrade makes the entry a degraded lease, of which the store knows nothing.
func (l *Limiter) degrade(now time.Time, e *leaseEntry, r *reservation) *weir.Lease {
	at := now.Truncate(time.Millisecond)
	e.activate(&driver.LeaseRecord{
		ID: r.id, State: driver.LeaseLive, Fingerprint: r.fingerprint, At: at,
		Expires: at.Add(r.lifetime), Charges: len(r.charges),
	})
	e.degraded = true
	return l.newLease(e, now, &weir.Lease{})
}
