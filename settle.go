package weir

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Adjust sets what a live lease stands for; see [Service].
func (l *Limiter) Adjust(ctx context.Context, id LeaseID, seq int64, totals []Costs) (*Receipt, error) {
	if seq < 1 {
		return nil, invalid("seq", seq, "must be above zero")
	}
	return l.settle(ctx, settling{verb: VerbAdjust, id: id, seq: seq, field: "totals", totals: totals})
}

// Complete replaces what was reserved by what was used and ends the lease; see [Service].
func (l *Limiter) Complete(ctx context.Context, id LeaseID, actuals []Costs) (*Receipt, error) {
	return l.settle(ctx, settling{verb: VerbComplete, id: id, field: "actuals", totals: actuals})
}

// Cancel gives everything back and ends the lease; see [Service].
func (l *Limiter) Cancel(ctx context.Context, id LeaseID) (*Receipt, error) {
	return l.settle(ctx, settling{verb: VerbCancel, id: id})
}

// Extend renews the lease and those of its holds that have not timed out; see [Service].
func (l *Limiter) Extend(ctx context.Context, id LeaseID) (*Receipt, error) {
	return l.settle(ctx, settling{verb: VerbExtend, id: id})
}

// settling is one call of a verb on a lease.
type settling struct {
	verb   Verb
	id     LeaseID
	seq    int64
	field  string // what the totals are called on the wire
	totals []Costs

	lists       []costList // of totals
	now         time.Time
	fingerprint uint64
	charges     uint8 // of the lease
	replay      bool
	degraded    bool
}

func (l *Limiter) settle(ctx context.Context, of settling) (*Receipt, error) {
	c := l.newCall()
	defer l.endCall(c)
	c.settling = of
	s := &c.settling
	s.now = l.options.Now()
	receipt, err := l.settleLease(ctx, c)
	if l.options.Observer != nil {
		l.observe(ctx, s.now, Event{Verb: s.verb, LeaseID: s.id, Replay: s.replay,
			Degraded: s.degraded, Err: err})
	}
	return receipt, err
}

func (l *Limiter) settleLease(ctx context.Context, c *call) (*Receipt, error) {
	s := &c.settling
	for i, costs := range s.totals {
		if err := c.named.add(costs, s.field); err != nil {
			if len(s.totals) > 1 { // say which
				err = c.named.lists[i].check(fmt.Sprintf("%s[%d]", s.field, i), true)
			}
			return nil, err
		}
	}
	s.lists = c.named.lists
	s.fingerprint = fingerprintTotals(s.lists)
	leaseNow := l.leases.clock(s.now)
	entry, err := l.acquireKnown(ctx, s, leaseNow)
	if err != nil {
		return nil, err
	}
	defer l.leases.release(entry)
	s.degraded = entry.degraded
	if entry.state.ended() {
		return l.settleEnded(s, entry)
	}
	if s.repeats(entry) {
		return l.repeat(s, entry), nil
	}
	return l.apply(ctx, c, entry)
}

// repeats is true for an adjust that has been carried out, or came too late.
func (s *settling) repeats(e *leaseEntry) bool { return s.verb == VerbAdjust && s.seq <= e.seq }

// repeat answers like the last adjust.
func (l *Limiter) repeat(s *settling, e *leaseEntry) *Receipt {
	s.replay = true
	return l.receipt(s, e, instant(e.seqAt, s.now))
}

// acquireKnown gives the entry of a lease that is known here, or that the store can recover. A cancel of
// any other one voids its ID.
func (l *Limiter) acquireKnown(ctx context.Context, s *settling, leaseNow int64) (*leaseEntry, error) {
	entry, err := l.acquire(ctx, s.id, leaseNow, l.recoverer != nil || s.verb == VerbCancel)
	if err != nil {
		return nil, err
	}
	if entry == nil {
		return nil, unknownLease(s.id)
	}
	known := false
	defer func() {
		if !known { // also while a store panics
			l.leases.release(entry)
		}
	}()
	if entry.state == leaseUnborn {
		storeCtx, cancel := l.storeContext(ctx)
		defer cancel()
		err := l.recover(storeCtx, s.now, entry)
		if s.verb == VerbCancel && errors.Is(err, UnknownLease) {
			err = l.void(storeCtx, s.now, leaseNow, entry)
		}
		if err != nil {
			return nil, err
		}
	}
	again, err := l.revive(ctx, s.now, leaseNow, entry)
	if err != nil {
		return nil, err
	}
	known = true
	return again, nil
}

// void ends the ID of a lease that neither the limiter nor the store knows, because its reserve may still
// arrive, and returns the answer to the cancel. If the store has got the lease meanwhile, void fills the
// entry instead. An ID that a reserve would be refused for is not remembered.
func (l *Limiter) void(ctx context.Context, now time.Time, leaseNow int64, e *leaseEntry) error {
	if l.leases.checkID(e.id, leaseNow) != nil {
		return unknownLease(e.id)
	}
	if l.voider != nil {
		exists, err := l.voider.VoidLease(ctx, now, e.id)
		if err != nil {
			return classify(err)
		}
		if exists {
			return l.recover(ctx, now, e)
		}
	}
	e.end(leaseVoided, now.UnixMilli())
	return unknownLease(e.id)
}

// settleEnded answers a verb on a lease that has ended: the same settlement again is a replay.
func (l *Limiter) settleEnded(s *settling, e *leaseEntry) (*Receipt, error) {
	switch {
	case e.state == leaseVoided:
		return nil, unknownLease(e.id)
	case s.verb == VerbComplete && e.state == leaseCompleted && s.fingerprint == e.endedAs,
		s.verb == VerbCancel && e.state == leaseCancelled:
		s.replay = true
		return l.receipt(s, e, instant(e.endedAt, s.now)), nil
	case s.verb == VerbComplete && e.state == leaseCompleted:
		return nil, fault(Conflict, "lease_id", e.id, "was completed with other actuals")
	case s.verb == VerbComplete && e.state == leaseCancelled,
		s.verb == VerbCancel && e.state == leaseCompleted:
		return nil, fault(Conflict, "lease_id", e.id, "was "+string(e.state.state()))
	}
	return nil, ended(e)
}

// apply changes what a live lease stands for. The entry changes only after a definite answer.
func (l *Limiter) apply(ctx context.Context, c *call, e *leaseEntry) (*Receipt, error) {
	s := &c.settling
	of := &c.settlement
	of.ID, of.Verb, of.Seq, of.Fingerprint = e.id, s.verb, max(s.seq, e.seq), s.fingerprint
	of.Holdings, of.Totals, of.Limits = e.holdings, nil, nil
	s.charges = e.charges
	out := of.Outcome(wholeMS(s.now))
	if !e.degraded {
		var err error
		if s.verb != VerbExtend {
			if of.Totals, err = c.splitTotals(e); err != nil {
				return l.mistaken(ctx, s, e, err)
			}
		}
		of.Limits = l.inForce(ctx, c, e)
		storeCtx, cancel := l.storeContext(ctx)
		defer cancel()
		if out, err = l.backend.Settle(storeCtx, s.now, of); err != nil {
			return nil, classify(err)
		}
	}
	switch s.verb {
	case VerbAdjust:
		e.seq, e.seqAt, e.holdings = s.seq, out.At.UnixMilli(), out.Holdings
	case VerbExtend:
		e.expires, e.holdings = of.Expires(out.At).UnixMilli(), out.Holdings
	case VerbComplete:
		e.endedAs = s.fingerprint
		e.end(leaseCompleted, out.At.UnixMilli())
	case VerbCancel:
		e.end(leaseCancelled, out.At.UnixMilli())
	}
	return l.receipt(s, e, out.At), nil
}

func (l *Limiter) receipt(s *settling, e *leaseEntry, at time.Time) *Receipt {
	r := &Receipt{LeaseID: e.id, At: at, Degraded: e.degraded}
	if !e.state.ended() {
		r.Expires, r.HoldsUntil = instant(e.expires, s.now), holdsUntil(e.holdings, s.now)
	}
	return r
}

// inForce returns the definition that each holding's limit has by now. A settlement never fails for
// want of it: where it cannot be had at once, the one of the reservation stands.
func (l *Limiter) inForce(ctx context.Context, c *call, e *leaseEntry) []*Limit {
	holdings := e.holdings
	mode := Cached
	if l.traits.Local || l.declarer != nil { // then the configuration is in the process
		mode = Usual
	}
	c.limits = slices.Grow(c.limits[:0], len(holdings))[:len(holdings)]
	limits := c.limits
	now := l.leases.high.Load()
	if e.planOf == l.cache.generation.Load() && e.planned > now && e.planned <= now+l.cache.ttl {
		for i := range holdings { // what the cache would say
			limits[i] = holdings[i].Limit
		}
		return limits
	}
	var resolved *Resolved // of the subject at hand: its holdings follow one another
	for i := range holdings {
		h := &holdings[i]
		limits[i] = h.Limit
		if h.Entity == "" { // recovered by a store that does not know whose it is
			resolved = nil
			continue
		}
		if i == 0 || h.Subject != holdings[i-1].Subject {
			var err error
			if resolved, err = l.resolve(ctx, h.Subject, mode); err != nil {
				resolved = nil
			}
		}
		if resolved == nil {
			continue
		}
		if now := resolved.limit(h.Limit.Name); now != nil && now.Kind == h.Limit.Kind {
			limits[i] = now
		}
	}
	return limits
}
