package limiter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
)

// Limiter is the [weir.Service] in the process. It resolves which limits apply to a request, lets a
// store judge the request, keeps the leases, answers repeated calls, and decides what a reservation
// becomes if the store does not answer. All methods may be called concurrently.
type Limiter struct {
	store     driver.Store
	traits    driver.Traits
	options   Options
	leases    *leaseTable
	cache     *resolutionCache
	reads     sharedReads
	policy    cachedPolicy
	reader    driver.ConfigReader      // nil if the store has no configuration
	declarer  driver.Declarer          // nil if the store cannot tell without I/O
	recoverer driver.LeaseRecoverer    // nil if the store keeps no leases
	voider    driver.LeaseVoider       // nil if the store does not record voided IDs
	unplanned driver.UnplannedReserver // nil if every reservation needs a plan
	refuser   driver.Refuser           // nil if the store never refuses
	calls     scratchPool
	returns   slotReturns

	configLock chan struct{} // holds one element while a change of the configuration is in progress
}

var _ weir.Service = (*Limiter)(nil)

// New returns a limiter over a store, or every mistake in the options, joined; each is an
// [*weir.Error]. The limiter owns the store from then on: [Limiter.Close] closes it.
func New(b driver.Store, o *Options) (*Limiter, error) {
	if b == nil {
		return nil, fmt.Errorf("weir: new: %w", invalid("Store", nil, "must be given"))
	}
	traits := b.Traits()
	options, err := o.withDefaults(traits)
	if err != nil {
		return nil, fmt.Errorf("weir: new: %w", err)
	}
	if c, ok := b.(driver.ClockCorrector); ok {
		now := options.Now
		options.Now = func() time.Time { return now().Add(c.ClockOffset()) }
	}
	l := &Limiter{
		store: b, traits: traits, options: options, configLock: make(chan struct{}, 1),
	}
	l.leases = newLeaseTable(&options, options.Now())
	l.declarer, _ = b.(driver.Declarer)
	l.leases.reuse = traits.Local
	l.refuser, _ = b.(driver.Refuser)
	l.reader, _ = b.(driver.ConfigReader)
	l.unplanned, _ = b.(driver.UnplannedReserver)
	if recoverer, ok := b.(driver.LeaseRecoverer); ok && !traits.NoLeases {
		l.recoverer = recoverer
		if early, ok := l.recoverer.Recovered(); ok {
			l.leases.horizon.Store(early.UnixMilli() + 1)
		}
		l.voider, _ = b.(driver.LeaseVoider)
	}
	l.cache = newResolutionCache(options.CacheTTL, options.CacheSize)
	return l, nil
}

// Close closes the store. Live leases stay charged.
func (l *Limiter) Close() error { return l.store.Close() }

// Traits returns what the store can do.
func (l *Limiter) Traits() driver.Traits { return l.traits }

// Reserve takes what the request asks of every limit that applies, or nothing; see [weir.Service].
// A denial is a [*weir.DeniedError].
func (l *Limiter) Reserve(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
	if r == nil {
		return nil, invalid("request", nil, "must be given")
	}
	now := l.options.Now()
	c := l.newScratch()
	defer l.releaseScratch(c)
	lease, replay, err := l.reserve(ctx, now, c, r)
	if l.options.Observer != nil {
		e := Event{
			Verb: weir.VerbReserve, LeaseID: r.LeaseID, Charges: c.charges, Replay: replay, Err: err,
		}
		if lease != nil {
			e.LeaseID, e.Limits, e.Degraded = lease.ID, lease.Limits, lease.Degraded
		} else if denied, ok := errors.AsType[*weir.DeniedError](err); ok {
			e.LeaseID, e.Limits = denied.LeaseID, denied.Limits
		}
		l.observe(ctx, now, e)
	}
	return lease, err
}

func (l *Limiter) observe(ctx context.Context, since time.Time, e Event) {
	e.At, e.Took = since, l.options.Now().Sub(since)
	l.options.Observer.Observe(ctx, e)
}

// reserve is like Reserve, but does not call the observer. The bool reports whether the lease
// existed before the call.
func (l *Limiter) reserve(
	ctx context.Context, now time.Time, c *scratch, r *weir.Request,
) (*weir.Lease, bool, error) {
	brought, err := c.normalize(r)
	if err != nil {
		return nil, false, err
	}
	for i := range brought {
		if err := checkSupported(&l.traits, "limits."+brought[i].Name, &brought[i]); err != nil {
			return nil, false, err
		}
	}
	c.lease = nil
	of := &c.reservation
	of.id, of.isNew, of.charges, of.brought = r.LeaseID, r.LeaseID.IsZero(), c.charges, brought
	of.fingerprint = fingerprintRequest(c.charges, c.costs.lists, brought)
	if r.LeaseID.IsZero() {
		return l.reserveFresh(ctx, now, c)
	}
	return l.reserveWithID(ctx, now, c)
}

// reserveFresh reserves under an ID that it makes. No other call can name the ID before this one
// returns, so the entry is not in the lease table while the store works; it is inserted when it has
// become a lease.
func (l *Limiter) reserveFresh(ctx context.Context, now time.Time, c *scratch) (*weir.Lease, bool, error) {
	leaseNow := l.leases.clock(now)
	r := &c.reservation
	caller := l.leases.caller(ctx, leaseNow)
	if l.traits.LeaseRows && !caller.severalNames {
		r.id = caller.ids.Next(now)
	} else {
		r.id = c.newLeaseID(now)
	}
	entry := l.leases.entry(r.id)
	entry.caller = caller
	took := false
	defer func() {
		if !took { // the store panicked: return the quota
			l.leases.countLive(entry)
		}
	}()
	lease, replay, err := l.reserveInStore(ctx, now, entry, c)
	took = true
	if entry.state == leasePending {
		l.leases.countLive(entry)
		l.leases.recycle(entry)
	} else {
		l.leases.insert(entry, leaseNow)
	}
	return lease, replay, err
}

// reserveWithID reserves under the caller's ID, or repeats the answer if the ID was reserved
// before. It holds the entry during the whole call, so that of two calls with one ID the second
// sees the outcome of the first.
func (l *Limiter) reserveWithID(
	ctx context.Context, now time.Time, c *scratch,
) (*weir.Lease, bool, error) {
	leaseNow, r := l.leases.clock(now), &c.reservation
	entry, err := l.acquire(ctx, r.id, leaseNow, true)
	if err != nil {
		return nil, false, err
	}
	defer func() { l.leases.release(entry) }()
	again, err := l.recheckEnded(ctx, now, leaseNow, entry)
	if err != nil {
		return nil, false, err
	}
	entry = again
	if entry.state != leasePending {
		if err := l.refresh(ctx, now, entry); err != nil {
			return nil, false, err
		}
		l.fillStatuses(ctx, now, entry, c)
		lease, err := l.answerKnown(entry, r.fingerprint, now)
		return lease, true, err
	}
	entry.caller = l.leases.caller(ctx, leaseNow)
	if err := l.leases.checkID(r.id, leaseNow, entry.caller); err != nil {
		return l.recoverTooOld(ctx, now, entry, c, err)
	}
	return l.reserveInStore(ctx, now, entry, c)
}

// fillStatuses gives the entry of a repeated reservation the present statuses of its limits, if it
// has none. The records of some stores have no statuses. A replay does not fail if they cannot be
// had.
func (l *Limiter) fillStatuses(ctx context.Context, now time.Time, e *leaseEntry, c *scratch) {
	if e.limits != nil || l.traits.Local || e.fingerprint != c.reservation.fingerprint || e.state.ended() {
		return
	}
	storeCtx, cancel := l.storeContext(ctx)
	defer cancel()
	p, err := c.plan(storeCtx, e, usual)
	if err != nil {
		return
	}
	statuses, err := l.store.Status(storeCtx, now, p.Subjects)
	if err != nil {
		return
	}
	for i := range p.Takes {
		t := p.Takes[i]
		for _, s := range statuses {
			if s.Entity == t.Entity && s.Resource == t.Resource && s.Limit == t.Limit.Name {
				s.Requested = t.Cost()
				e.limits = append(e.limits, s)
			}
		}
	}
}

// recoverTooOld answers a reservation whose ID this process refuses as too old to tell whether it
// was used. If the store knows the lease, for example from before a restart, the caller gets that
// lease; otherwise recoverTooOld returns the refusal.
func (l *Limiter) recoverTooOld(
	ctx context.Context, now time.Time, e *leaseEntry, c *scratch, refused error,
) (*weir.Lease, bool, error) {
	print := c.reservation.fingerprint
	storeCtx, cancel := l.storeContext(ctx)
	defer cancel()
	if err := l.adopt(storeCtx, now, e, print); errors.Is(err, weir.UnknownLease) || errors.Is(err, weir.Ended) {
		return nil, false, refused
	} else if err != nil {
		return nil, false, err
	}
	l.fillStatuses(ctx, now, e, c)
	lease, err := l.answerKnown(e, print, now)
	return lease, true, err
}

// answerKnown answers a reservation whose ID is already that of a lease.
func (l *Limiter) answerKnown(e *leaseEntry, print uint64, now time.Time) (*weir.Lease, error) {
	switch {
	case e.state.ended():
		return nil, endedError(e)
	case e.fingerprint != print:
		return nil, weir.NewError(weir.Conflict, "lease_id", e.id, "was used for another request")
	}
	lease := l.newLease(e, now, &weir.Lease{})
	lease.Replay = true
	return lease, nil
}

// newLease fills in lease, the caller's handle, from the entry of a live lease.
func (l *Limiter) newLease(e *leaseEntry, now time.Time, lease *weir.Lease) *weir.Lease {
	lease.ID, lease.ReservedAt, lease.Expires = e.id, timeLike(e.at, now), timeLike(e.expires, now)
	lease.HoldsUntil, lease.Degraded = holdsUntil(e.holdings, now), e.degraded
	lease.Seq, lease.Limits = e.seq, e.limits
	return lease.Bind(l)
}

// holdsUntil returns the instant at which the first slot that is still held returns by itself; zero
// if no slot is held.
func holdsUntil(holdings []driver.Holding, now time.Time) time.Time {
	var first int64
	for i := range holdings {
		if len(holdings[i].Pieces) == 0 || holdings[i].Limit.Kind != weir.Concurrency {
			continue
		}
		for _, p := range holdings[i].Pieces {
			if p.Units > 0 && p.Until > now.UnixMilli() && (first == 0 || p.Until < first) {
				first = p.Until
			}
		}
	}
	if first == 0 {
		return time.Time{}
	}
	return timeLike(first, now)
}

// timeLike returns the instant of a millisecond in the location of another time.
func timeLike(ms int64, like time.Time) time.Time { return time.UnixMilli(ms).In(like.Location()) }

// reserveInStore asks the store for a new lease, unless the caller has left while the call waited.
// It fills in the entry if the store admits the request.
func (l *Limiter) reserveInStore(
	ctx context.Context, now time.Time, e *leaseEntry, c *scratch,
) (*weir.Lease, bool, error) {
	if err := callerGone(ctx); err != nil {
		return nil, false, err
	}
	if err := l.leases.admit(e.caller, now); err != nil {
		return nil, false, err
	}
	e.counted = true
	storeCtx, cancel := l.storeContext(ctx)
	defer cancel()
	r := &c.reservation
	p, out, err := l.askStore(storeCtx, now, e, c)
	if err == nil && p != nil {
		err = checkTaken(out, len(p.Takes))
	}
	// The request cannot be planned now, for example because its limits were removed. If it repeats
	// a reservation that the store has carried out, the lease is the answer.
	if p == nil && !r.isNew && l.recoverer != nil {
		unknown := l.adopt(storeCtx, now, e, r.fingerprint)
		if unknown == nil {
			lease, err := l.answerKnown(e, r.fingerprint, now)
			return lease, true, err
		}
		// An ended lease is the answer, even though the request cannot be planned. On a superseded
		// server the store's answer about the lease replaces the error too, unless it does not know
		// the lease.
		if errors.Is(unknown, weir.Ended) || errors.Is(err, weir.Superseded) && !errors.Is(unknown, weir.UnknownLease) {
			err = unknown
		}
	}
	switch {
	case err != nil:
		err = classify(err)
		if l.degrades(ctx, err) {
			return l.degrade(now, e, r), false, nil
		}
		return nil, false, nameLease(err, r.id)
	case out.Replay:
		lease, err := l.recoverReplay(storeCtx, now, e, c)
		return lease, true, err
	case out.Denied:
		return nil, false, l.newDeniedError(now, r, out)
	}
	return l.keepLease(now, e, c, p, out), false, nil
}

// askStore plans a reservation and passes the plan to the store. The returned plan is nil if the
// request could not be planned.
func (l *Limiter) askStore(
	ctx context.Context, now time.Time, e *leaseEntry, c *scratch,
) (*driver.Plan, *driver.Outcome, error) {
	if l.unplanned != nil {
		return l.askUnplanned(ctx, now, e, c)
	}
	p, err := c.plan(ctx, e, usual)
	if err != nil {
		return nil, nil, l.planError(err)
	}
	return l.reservePlanned(ctx, now, e, c, p)
}

// planError returns the error for a request that could not be planned: the store's reason to refuse
// every reservation, if it has one, because that may be why the plan failed.
func (l *Limiter) planError(err error) error {
	if l.refuser != nil {
		return cmp.Or(l.refuser.RefusesReserve(), err)
	}
	return err
}

// maxReread bounds how often one reservation is planned again because the store found its plan
// stale. After that the reservation is denied as contended, so that a configuration that keeps
// changing cannot hold a call forever.
const maxReread = 3

// reservePlanned passes a plan to the store. As long as the store finds the plan stale, it reads
// the configuration again and passes a new plan, at most maxReread times.
func (l *Limiter) reservePlanned(
	ctx context.Context, now time.Time, e *leaseEntry, c *scratch, p *driver.Plan,
) (*driver.Plan, *driver.Outcome, error) {
	for n := 0; ; n++ {
		out := c.planOutcome(e)
		err := l.store.Reserve(ctx, now, p, out)
		if err == nil {
			return p, out, nil
		}
		if _, stale := errors.AsType[*driver.StaleError](err); !stale {
			return p, out, err
		}
		if n == maxReread {
			out.Denied, out.Contended = true, true
			return p, out, nil
		}
		if p, err = c.plan(ctx, e, reread); err != nil {
			return nil, nil, l.planError(err)
		}
		p.Again = true
	}
}

// plan resolves the reservation and sums its takes. It fails if the caller leaves meanwhile.
func (c *scratch) plan(ctx context.Context, e *leaseEntry, mode resolveMode) (*driver.Plan, error) {
	p := &c.planner
	p.reset()
	p.r, p.costs, p.resolve, p.mode = &c.reservation, c.costs.lists, c.resolver, mode
	local := c.limiter.traits.Local
	// A local store has returned before the entry is used again, so the plan may use the entry's
	// memory.
	if local {
		p.entry = e
	}
	plan, err := p.plan(ctx)
	if err != nil {
		return nil, err
	}
	if local {
		e.definitionsUntil, e.definitionsGeneration = p.validity()
	}
	return plan, callerGone(ctx)
}

// keepLease fills the entry with what the store has taken, and returns the caller's lease.
func (l *Limiter) keepLease(now time.Time, e *leaseEntry, c *scratch, p *driver.Plan, out *driver.Outcome) *weir.Lease {
	lease := c.lease
	if lease == nil { // the outcome is the store's own, not from planOutcome
		lease = &weir.Lease{}
	}
	holdings := e.holdings
	if cap(holdings) < len(p.Takes) {
		holdings = make([]driver.Holding, len(p.Takes))
	}
	holdings = holdings[:len(p.Takes)]
	for i := range holdings {
		holdings[i].Reserved(p.Takes[i], &out.Taken[i])
	}
	record := p.Record(out)
	record.Holdings = holdings
	e.activate(&record)
	return l.newLease(e, now, lease)
}

// recoverReplay answers a reservation that the store had carried out before, for another process or
// before a restart.
func (l *Limiter) recoverReplay(
	ctx context.Context, now time.Time, e *leaseEntry, c *scratch,
) (*weir.Lease, error) {
	if err := l.recoverLease(ctx, now, e); err != nil {
		return nil, err
	}
	l.fillStatuses(ctx, now, e, c)
	return l.answerKnown(e, e.fingerprint, now)
}

// adopt fills a pending entry for a reservation that is answered without [driver.Store.Reserve]. It
// tells the store first, so that a store that gives back the reservations of callers that have left
// keeps this one.
func (l *Limiter) adopt(ctx context.Context, now time.Time, e *leaseEntry, print uint64) error {
	if l.voider != nil {
		if err := l.voider.AdoptLease(ctx, now, e.id, print); err != nil {
			return classify(err)
		}
	}
	return l.recoverLease(ctx, now, e)
}

// leaseTime returns the instant by which to judge whether a lease has expired: the lease table's
// time, so that an expired lease does not come back to life if the clock steps back.
func (l *Limiter) leaseTime(now time.Time) time.Time { return timeLike(l.leases.clock(now), now) }

// recoverLease fills a pending entry from the store. It returns an error with code
// [weir.UnknownLease] if the store keeps no leases or does not know this one.
func (l *Limiter) recoverLease(ctx context.Context, now time.Time, e *leaseEntry) error {
	if l.recoverer != nil {
		record, err := l.recoverer.RecoverLease(ctx, l.leaseTime(now), e.id)
		if err != nil {
			return classify(err)
		}
		if record = l.withinMemory(now, record); record != nil {
			if err := checkRecord(record); err != nil {
				return err
			}
			e.definitionsUntil = 0 // the definitions are those of the reservation: look them up again
			e.activate(record)
			return nil
		}
	}
	return unknownLeaseError(e.id)
}
