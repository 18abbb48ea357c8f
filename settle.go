package weir

import (
	"context"
	"fmt"
	"time"
)

// Adjust sets what a live lease stands for; see [Service].
func (l *Limiter) Adjust(ctx context.Context, id LeaseID, seq int64, totals []Costs) (*Receipt, error) {
	if seq < 1 {
		return nil, invalid("seq", seq, "must be above zero")
	}
	return l.settle(ctx, &settling{verb: VerbAdjust, id: id, seq: seq, field: "totals", totals: totals})
}

// Complete replaces what was reserved by what was used and ends the lease; see [Service].
func (l *Limiter) Complete(ctx context.Context, id LeaseID, actuals []Costs) (*Receipt, error) {
	return l.settle(ctx, &settling{verb: VerbComplete, id: id, field: "actuals", totals: actuals})
}

// Cancel gives everything back and ends the lease; see [Service].
func (l *Limiter) Cancel(ctx context.Context, id LeaseID) (*Receipt, error) {
	return l.settle(ctx, &settling{verb: VerbCancel, id: id})
}

// Extend renews the lease and those of its holds that have not timed out; see [Service].
func (l *Limiter) Extend(ctx context.Context, id LeaseID) (*Receipt, error) {
	return l.settle(ctx, &settling{verb: VerbExtend, id: id})
}

// settling is one call of a verb on a lease.
type settling struct {
	verb   Verb
	id     LeaseID
	seq    int64
	field  string // what the totals are called on the wire
	totals []Costs

	now         time.Time
	fingerprint uint64
	replay      bool
	degraded    bool
}

func (l *Limiter) settle(ctx context.Context, s *settling) (*Receipt, error) {
	s.now = l.options.Now()
	receipt, err := l.settleLease(ctx, s)
	if l.options.Observer != nil {
		l.observe(ctx, s.now, Event{Verb: s.verb, LeaseID: s.id, Replay: s.replay,
			Degraded: s.degraded, Err: err})
	}
	return receipt, err
}

func (l *Limiter) settleLease(ctx context.Context, s *settling) (*Receipt, error) {
	for i, c := range s.totals {
		field := s.field
		if len(s.totals) > 1 {
			field = fmt.Sprintf("%s[%d]", s.field, i)
		}
		if err := c.check(field); err != nil {
			return nil, err
		}
	}
	s.fingerprint = fingerprintTotals(s.totals)
	leaseNow := l.leases.clock(s.now)
	entry, err := l.acquireKnown(ctx, s, leaseNow)
	if err != nil {
		return nil, err
	}
	defer l.leases.release(entry)
	s.degraded = entry.degraded
	if entry.State != LeaseLive {
		return l.settleEnded(s, entry)
	}
	if s.verb == VerbAdjust && s.seq <= entry.Seq {
		s.replay = true
		return l.receipt(s, entry, entry.SeqAt), nil
	}
	return l.apply(ctx, s, entry)
}

// acquireKnown gives the entry of a lease that is known here, or that the store can recover.
func (l *Limiter) acquireKnown(ctx context.Context, s *settling, leaseNow int64) (*leaseEntry, error) {
	_, recovers := l.backend.(LeaseRecoverer)
	entry, err := l.acquire(ctx, s.id, leaseNow, recovers)
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
		if err := l.recover(storeCtx, s.now, entry); err != nil {
			return nil, err
		}
	}
	if l.leases.forgotten(entry, leaseNow) {
		return nil, unknownLease(s.id)
	}
	known = true
	return entry, nil
}

// settleEnded answers a verb on a lease that has ended: the same settlement again is a replay.
func (l *Limiter) settleEnded(s *settling, e *leaseEntry) (*Receipt, error) {
	switch {
	case s.verb == VerbComplete && e.State == LeaseCompleted && s.fingerprint == e.EndFingerprint,
		s.verb == VerbCancel && e.State == LeaseCancelled:
		s.replay = true
		return l.receipt(s, e, e.EndedAt), nil
	case s.verb == VerbComplete && e.State == LeaseCompleted:
		return nil, fault(Conflict, "lease_id", e.ID, "was completed with other actuals")
	case s.verb == VerbComplete && e.State == LeaseCancelled,
		s.verb == VerbCancel && e.State == LeaseCompleted:
		return nil, fault(Conflict, "lease_id", e.ID, "was "+string(e.State))
	}
	return nil, ended(e)
}

// apply changes what a live lease stands for. The entry changes only after a definite answer.
func (l *Limiter) apply(ctx context.Context, s *settling, e *leaseEntry) (*Receipt, error) {
	settlement := &Settlement{
		ID: e.ID, Verb: s.verb, Seq: max(s.seq, e.Seq), Fingerprint: s.fingerprint,
		Holdings: e.Holdings, Lifetime: l.options.LeaseLifetime,
		Memory: l.options.LeaseMemory, MemorySize: l.options.LeaseMemorySize,
	}
	out := &Outcome{At: s.now.Truncate(time.Millisecond)}
	if !e.degraded {
		var err error
		if s.verb != VerbExtend {
			if settlement.Totals, err = s.parts(e); err != nil {
				return nil, err
			}
		}
		settlement.Limits = l.inForce(ctx, e.Holdings)
		storeCtx, cancel := l.storeContext(ctx)
		defer cancel()
		if out, err = l.backend.Settle(storeCtx, s.now, settlement); err != nil {
			return nil, classify(err)
		}
	}
	switch s.verb {
	case VerbAdjust:
		e.Seq, e.SeqAt, e.Holdings = s.seq, out.At, out.Holdings
	case VerbExtend:
		e.Expires, e.Holdings = settlement.Expires(out.At), out.Holdings
	case VerbComplete:
		e.EndFingerprint = s.fingerprint
		e.end(LeaseCompleted, out.At)
	case VerbCancel:
		e.end(LeaseCancelled, out.At)
	}
	return l.receipt(s, e, out.At), nil
}

func (l *Limiter) receipt(s *settling, e *leaseEntry, at time.Time) *Receipt {
	r := &Receipt{LeaseID: e.ID, At: at, Degraded: e.degraded}
	if e.State == LeaseLive {
		r.Expires, r.HoldsUntil = e.Expires, holdsUntil(e.Holdings, s.now)
	}
	return r
}

// inForce returns the definition that each holding's limit has by now. A settlement never fails for
// want of it: where it cannot be had at once, the one of the reservation stands.
func (l *Limiter) inForce(ctx context.Context, holdings []Holding) []*Limit {
	mode := Cached
	if l.traits.Local {
		mode = Usual
	}
	limits := make([]*Limit, len(holdings))
	var resolved *Resolved // of the subject at hand: its holdings follow one another
	for i := range holdings {
		h := &holdings[i]
		limits[i] = h.Limit
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
