package limiter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
)

// Adjust sets what a live lease stands for; see [weir.Service].
func (l *Limiter) Adjust(ctx context.Context, id weir.LeaseID, seq int64, totals []weir.Costs) (*weir.Receipt, error) {
	if seq < 1 {
		return nil, invalid("seq", seq, "must be above zero")
	}
	return l.update(ctx, updateOp{verb: weir.VerbAdjust, id: id, seq: seq, totalsName: "totals", totals: totals})
}

// Complete replaces what was reserved with what was used and ends the lease; see [weir.Service].
func (l *Limiter) Complete(ctx context.Context, id weir.LeaseID, actuals []weir.Costs) (*weir.Receipt, error) {
	return l.update(ctx, updateOp{verb: weir.VerbComplete, id: id, totalsName: "actuals", totals: actuals})
}

// Cancel gives everything back and ends the lease; see [weir.Service].
func (l *Limiter) Cancel(ctx context.Context, id weir.LeaseID) (*weir.Receipt, error) {
	return l.update(ctx, updateOp{verb: weir.VerbCancel, id: id})
}

// Extend renews the lease and those of its holds that have not timed out; see [weir.Service].
func (l *Limiter) Extend(ctx context.Context, id weir.LeaseID) (*weir.Receipt, error) {
	return l.update(ctx, updateOp{verb: weir.VerbExtend, id: id})
}

// updateOp is one call of an update.
type updateOp struct {
	verb       weir.Verb
	id         weir.LeaseID
	seq        int64
	totalsName string // the name of totals in the field of an error
	totals     []weir.Costs

	lists       []costList // totals as lists
	now         time.Time
	fingerprint uint64
	charges     uint8    // of the lease
	keys        []uint64 // of the lease
	replay      bool
	degraded    bool
}

func (l *Limiter) update(ctx context.Context, of updateOp) (*weir.Receipt, error) {
	c := l.newScratch()
	defer l.releaseScratch(c)
	c.op = of
	s := &c.op
	s.now = l.options.Now()
	c.used = c.used[:0]
	receipt, err := l.updateLease(ctx, c)
	if l.options.Observer != nil {
		l.observe(ctx, s.now, Event{Verb: s.verb, LeaseID: s.id, Used: c.used, Replay: s.replay,
			Degraded: s.degraded, RefundInDoubt: receipt != nil && receipt.RefundInDoubt, Err: err})
	}
	return receipt, err
}

// updateLease finds the lease and answers the update: from what is known, if the lease has ended or
// the adjust was applied before, otherwise by the store.
func (l *Limiter) updateLease(ctx context.Context, c *scratch) (*weir.Receipt, error) {
	s := &c.op
	for i, costs := range s.totals {
		if err := c.namedTotals.add(costs, s.totalsName); err != nil {
			if len(s.totals) > 1 { // name the charge in the field
				err = c.namedTotals.lists[i].check(fmt.Sprintf("%s[%d]", s.totalsName, i), true, true)
			}
			return nil, err
		}
	}
	s.lists = c.namedTotals.lists
	s.fingerprint = fingerprintTotals(s.lists)
	leaseNow := l.leases.clock(s.now)
	entry, err := l.acquireKnown(ctx, s, leaseNow)
	if err != nil {
		return nil, err
	}
	defer l.leases.release(entry)
	s.degraded = entry.degraded
	if entry.state.ended() {
		return l.answerEnded(s, entry)
	}
	if s.replays(entry) {
		return l.answerReplayed(ctx, s, entry)
	}
	return l.applyUpdate(ctx, c, entry)
}

// answerReplayed answers an adjust that was applied before, or that came after a later one. Another
// server may have ended the lease or adjusted it again. If the store cannot tell, the answer is
// what this process remembers.
func (l *Limiter) answerReplayed(
	ctx context.Context, s *updateOp, e *leaseEntry,
) (*weir.Receipt, error) {
	if err := l.refresh(ctx, s.now, e); err == nil && e.state.ended() {
		return l.answerEnded(s, e)
	}
	return l.answerReplay(s, e), nil
}

// replays reports whether the update is an adjust that has been applied before, or that came after
// a later one.
func (s *updateOp) replays(e *leaseEntry) bool { return s.verb == weir.VerbAdjust && s.seq <= e.seq }

// answerReplay returns the answer to the last adjust.
func (l *Limiter) answerReplay(s *updateOp, e *leaseEntry) *weir.Receipt {
	s.replay = true
	return l.receipt(s, e, timeLike(e.seqAt, s.now))
}

// acquireKnown returns the entry of a lease that this process knows or that the store can recover.
// A cancel of any other lease voids its ID, so that a reserve with the ID that arrives later is
// refused.
func (l *Limiter) acquireKnown(ctx context.Context, s *updateOp, leaseNow int64) (*leaseEntry, error) {
	entry, err := l.acquire(ctx, s.id, leaseNow, l.recoverer != nil || s.verb == weir.VerbCancel)
	if err != nil {
		return nil, err
	}
	if entry == nil {
		return nil, unknownLeaseError(s.id)
	}
	known := false
	defer func() {
		if !known { // also if the store panics
			l.leases.release(entry)
		}
	}()
	if entry.state == leasePending {
		entry.caller = l.leases.caller(ctx, leaseNow)
		storeCtx, cancel := l.storeContext(ctx)
		defer cancel()
		err := l.recoverLease(storeCtx, s.now, entry)
		if s.verb == weir.VerbCancel && errors.Is(err, weir.UnknownLease) {
			err = l.void(storeCtx, s.now, leaseNow, entry)
		}
		if err != nil {
			return nil, err
		}
	}
	again, err := l.recheckEnded(ctx, s.now, leaseNow, entry)
	if err != nil {
		return nil, err
	}
	known = true
	return again, nil
}

// void ends the ID of a lease that neither the limiter nor the store knows, because its reserve may
// still arrive, and returns the answer to the cancel. If the store has reserved the lease
// meanwhile, void fills the entry instead, and the cancel goes on. An ID for which a reserve would
// be refused anyway is not remembered.
func (l *Limiter) void(ctx context.Context, now time.Time, leaseNow int64, e *leaseEntry) error {
	if l.leases.checkID(e.id, leaseNow, e.caller) != nil {
		return unknownLeaseError(e.id)
	}
	if l.voider != nil {
		exists, err := l.voider.VoidLease(ctx, now, e.id)
		if err != nil {
			return classify(err)
		}
		if exists {
			return l.recoverLease(ctx, now, e)
		}
	}
	e.end(leaseVoided, now.UnixMilli())
	return unknownLeaseError(e.id)
}

// answerEnded answers an update of a lease that has ended. The same complete or cancel again is a
// replay.
func (l *Limiter) answerEnded(s *updateOp, e *leaseEntry) (*weir.Receipt, error) {
	switch {
	case e.state == leaseVoided:
		return nil, unknownLeaseError(e.id)
	case s.verb == weir.VerbComplete && e.state == leaseCompleted && s.fingerprint == e.endedAs,
		s.verb == weir.VerbCancel && e.state == leaseCancelled:
		s.replay = true
		return l.receipt(s, e, timeLike(e.endedAt, s.now)), nil
	case s.verb == weir.VerbComplete && e.state == leaseCompleted:
		return nil, weir.NewError(weir.Conflict, "lease_id", e.id, "was completed with other actuals")
	case s.verb == weir.VerbComplete && e.state == leaseCancelled,
		s.verb == weir.VerbCancel && e.state == leaseCompleted:
		return nil, weir.NewError(weir.Conflict, "lease_id", e.id, "was "+string(e.state.state()))
	}
	return nil, endedError(e)
}

// maxStale bounds how often one update is computed again because the lease was changed elsewhere.
const maxStale = 16

// applyUpdate changes what a live lease stands for. The entry changes only after the store has
// applied the update, so that after a lost answer the caller can repeat the call.
func (l *Limiter) applyUpdate(ctx context.Context, c *scratch, e *leaseEntry) (*weir.Receipt, error) {
	s := &c.op
	s.charges, s.keys = e.charges, e.keys
	if e.degraded {
		c.update.Lifetime = l.options.LeaseLifetime
		return l.applied(c, e, &driver.Outcome{At: s.now.Truncate(time.Millisecond)}), nil
	}
	storeCtx, cancel := l.storeContext(ctx)
	defer cancel()
	for range maxStale {
		if err := c.makeUpdate(ctx, e); err != nil {
			return l.checkUpdate(ctx, s, e, err)
		}
		out := c.updateOutcome()
		err := l.store.Update(storeCtx, s.now, &c.update, out)
		if err == nil && !c.update.Ends() {
			err = checkTaken(out, len(c.update.Changes))
		}
		if err == nil {
			return l.applied(c, e, out), nil
		}
		stale, ok := errors.AsType[*driver.StaleError](err)
		if !ok && errors.Is(err, weir.Invalid) { // the store cannot count the totals
			return l.checkUpdate(ctx, s, e, classify(err))
		}
		if !ok {
			return nil, classify(err)
		}
		if stale.Lease == nil {
			return nil, wrongAnswer("the lease was changed elsewhere, and the answer does not say how")
		}
		if err := checkRecord(stale.Lease); err != nil {
			return nil, err
		}
		e.replace(stale.Lease)
		e.inDoubt = e.inDoubt || stale.RefundInDoubt
		if l.withinMemory(s.now, stale.Lease) == nil { // it ended elsewhere, too long ago
			return nil, unknownLeaseError(e.id)
		}
		if e.state.ended() {
			return l.answerEnded(s, e)
		}
		if s.replays(e) {
			return l.answerReplay(s, e), nil
		}
	}
	return nil, &weir.Error{Code: weir.Unavailable,
		Reason: "other processes changed the lease during every attempt"}
}

// replace fills the entry from what the store knows of the lease now. A store may not keep the
// subjects, definitions and statuses of a lease; those are kept from before if the holdings still
// correspond.
func (e *leaseEntry) replace(r *driver.LeaseRecord) {
	known, limits := e.holdings, e.limits
	e.definitionsUntil = 0 // the definitions are those of the reservation: look them up again
	e.activate(r)
	if len(known) != len(e.holdings) {
		return
	}
	for i := range known {
		h := &e.holdings[i]
		h.Subject, h.Limit, h.Level, h.Ceiling = known[i].Subject, known[i].Limit, known[i].Level, known[i].Ceiling
	}
	e.limits = limits
}

// makeUpdate computes the change of each holding.
func (c *scratch) makeUpdate(ctx context.Context, e *leaseEntry) error {
	s, u := &c.op, &c.update
	u.ID, u.Verb, u.Seq, u.Fingerprint = e.id, s.verb, max(s.seq, e.seq), s.fingerprint
	if c.limiter.recoverer != nil {
		c.record = e.record()
		u.Lease = &c.record
	}
	u.Lifetime = c.limiter.options.LeaseLifetime
	c.changes = slices.Grow(c.changes[:0], len(e.holdings))[:len(e.holdings)]
	u.Changes = c.changes
	for i := range u.Changes {
		h := &e.holdings[i]
		cost := h.Cost()
		u.Changes[i] = driver.Change{Holding: h, From: cost, To: cost, Used: cost, Parts: h.Parts}
	}
	if s.verb != weir.VerbExtend {
		if err := c.splitTotals(e); err != nil {
			return err
		}
	}
	c.inForce(ctx, e)
	for i := range u.Changes {
		u.Lifetime = max(u.Lifetime, u.Changes[i].Limit.Timeout)
	}
	return nil
}

// updateOutcome returns an empty outcome for the update that was made last.
func (c *scratch) updateOutcome() *driver.Outcome {
	n := len(c.update.Changes)
	out := &c.outcome
	*out = driver.Outcome{Taken: slices.Grow(c.taken[:0], n)[:n]}
	c.taken = out.Taken
	for i := range out.Taken {
		out.Taken[i] = driver.Taken{Units: c.update.Changes[i].To}
	}
	return out
}

// applied changes the entry as the store has changed the lease, and returns the receipt.
func (l *Limiter) applied(c *scratch, e *leaseEntry, out *driver.Outcome) *weir.Receipt {
	s := &c.op
	e.version = out.Version
	e.inDoubt = e.inDoubt || out.RefundInDoubt
	if l.options.Observer != nil && !e.degraded && s.verb != weir.VerbExtend {
		c.noteUse(out)
	}
	if c.update.Ends() && !e.degraded {
		l.noteReturns(e, out.At)
	}
	switch s.verb {
	case weir.VerbComplete:
		e.endedAs = s.fingerprint
		e.end(leaseCompleted, out.At.UnixMilli())
		return l.receipt(s, e, out.At)
	case weir.VerbCancel:
		e.end(leaseCancelled, out.At.UnixMilli())
		return l.receipt(s, e, out.At)
	case weir.VerbAdjust:
		e.seq, e.seqAt = s.seq, out.At.UnixMilli()
	case weir.VerbExtend:
		expires := out.Expires
		if expires.IsZero() {
			expires = c.update.Expires(out.At)
		}
		e.expires = expires.UnixMilli()
	}
	for i := range e.holdings {
		e.holdings[i].Changed(&c.update.Changes[i], &out.Taken[i])
	}
	return l.receipt(s, e, out.At)
}

// noteReturns notes for how long a lease that ends has held its slots.
func (l *Limiter) noteReturns(e *leaseEntry, at time.Time) {
	for i := range e.holdings {
		if h := &e.holdings[i]; h.Limit.Kind == weir.Concurrency && h.Cost() > 0 {
			l.returns.note(&h.Subject, h.Limit.Name, at.UnixMilli()-e.at)
		}
	}
}

// noteUse notes for the observer what the update has changed on each limit.
func (c *scratch) noteUse(out *driver.Outcome) {
	for i := range c.update.Changes {
		change := &c.update.Changes[i]
		total := change.Used
		// A shadow limit that cannot count the units has fewer. Once the lease has ended, a store may
		// leave them out.
		if !c.update.Ends() {
			total = out.Taken[i].Units
		}
		c.used = append(c.used, Use{
			Subject: change.Holding.Subject, Limit: change.Limit.Name, Kind: change.Limit.Kind,
			Change: total - change.From, Total: total,
		})
	}
}

// slotsUsed returns the slots that a completed lease has used: those that the actuals name, or all
// that it held. The lease returns them, but they are no refund.
func (s *updateOp) slotsUsed(e *leaseEntry, h *driver.Holding) int64 {
	var used int64
	for _, p := range h.Parts {
		if n, ok := s.named(e, p.Charge, h.Limit.Name); ok {
			p.Units = n
		}
		used += p.Units
	}
	return used
}

func (l *Limiter) receipt(s *updateOp, e *leaseEntry, at time.Time) *weir.Receipt {
	r := &weir.Receipt{LeaseID: e.id, At: at, Degraded: e.degraded, RefundInDoubt: e.inDoubt}
	if !e.state.ended() {
		r.Expires, r.HoldsUntil = timeLike(e.expires, s.now), holdsUntil(e.holdings, s.now)
	}
	return r
}

// inForce sets the definition in force of each change. An update is never denied and never waits
// for a definition: if reading it needs I/O, or fails, the definition of the reservation is used.
func (c *scratch) inForce(ctx context.Context, e *leaseEntry) {
	l, changes := c.limiter, c.update.Changes
	now := l.leases.latestNow.Load()
	if e.definitionsGeneration == l.cache.generation.Load() && e.definitionsUntil > now && e.definitionsUntil <= now+l.cache.ttl {
		for i := range changes { // the cache would return these
			changes[i].Limit = changes[i].Holding.Limit
		}
		return
	}
	mode := cached
	if l.traits.Local || l.declarer != nil { // the configuration is in the process
		mode = usual
	}
	var resolved *resolution // of the current subject, whose holdings are consecutive
	for i := range changes {
		h := changes[i].Holding
		changes[i].Limit = h.Limit
		if h.Entity == "" { // recovered by a store that does not keep the subject
			resolved = nil
			continue
		}
		if i == 0 || h.Subject != changes[i-1].Holding.Subject {
			var err error
			if resolved, err = l.resolveSubject(ctx, h.Subject, mode); err != nil {
				resolved = nil
			}
		}
		if resolved == nil {
			continue
		}
		if now := resolved.limit(h.Limit.Name); now != nil && now.Kind == h.Limit.Kind {
			changes[i].Limit = now
		}
	}
}
