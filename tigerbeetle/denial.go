//go:build cgo

package tigerbeetle

import (
	"context"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
)

// deny writes a denial after the cluster has found a limit exceeded, or returns false if the chain
// has to be sent again.
//
// The cluster names only the first exceeded limit, which is by. The limits that it checked before
// that one are not exceeded. The others that are exceeded by the estimate are read, with one lookup
// for all and a query for each bucket, each budget, and unknown ends of expiring units. The named
// limit is read as well if the estimate does not explain the denial or if other servers use the
// limits.
func (c *reserveOp) deny(ctx context.Context, now int64, by *activeTake) (done bool, err error) {
	now = max(now, c.s.clock.nowMS())
	c.markPassed(now, by)
	uncertain := c.s.hasForeign(now) || !c.estimateExceeds(now, by) ||
		by.includesOtherPeriods() && by.staleEstimate(now)
	reads := c.likelyExceeded(now)
	if at := slices.Index(reads, by); at >= 0 && !uncertain {
		reads = slices.Delete(reads, at, at+1)
	} else if at < 0 { // the cluster has named it, whatever the estimate says
		reads, by.passed = append(reads, by), false
	}
	if err := c.s.readForDenial(ctx, reads); err != nil {
		return false, err
	}
	now = max(now, c.s.clock.nowMS())
	if !c.estimateExceeds(now, by) {
		return false, nil // units were returned in the meantime
	}
	if err := c.readEnds(ctx, now); err != nil {
		return false, err
	}
	if err := c.s.redefine(ctx, c.plan.ID, c.takes); err != nil {
		return false, err
	}
	if !c.makeDenial(now) {
		return false, nil
	}
	for i, take := range c.takes {
		take.rememberDenial(now, c.s.rememberFor, &c.out.Limits[i])
	}
	return true, nil
}

// markPassed marks the limits that the cluster checked and found free before it denied for another
// one, and drops what was observed for an earlier denial.
func (c *reserveOp) markPassed(now int64, by *activeTake) {
	checked := true
	for _, s := range c.takes {
		s.mu.Lock()
		if s == by {
			checked = false
		}
		s.observed, s.passed = nil, checked && !s.Limit.Shadow
		if s.passed && s.inFlight == 0 && s.raiseEstimate(now) {
			c.s.noteForeign()
		}
		s.mu.Unlock()
	}
}

// likelyExceeded returns the limits that are exceeded by the estimate. The denial does not name the
// others, even if they turn out to be exceeded: it names only limits that the cluster says are.
func (c *reserveOp) likelyExceeded(now int64) []*activeTake {
	return c.takesWhere(func(s *activeTake) bool {
		if s.Limit.Shadow {
			return false
		}
		s.passed = s.passed || !c.estimateExceeds(now, s)
		return !s.passed
	})
}

// readEnds reads the ends of expiring units if the retry-after of an exceeded limit needs them.
func (c *reserveOp) readEnds(ctx context.Context, now int64) error {
	for _, s := range c.takesWhere(func(s *activeTake) bool {
		return !s.passed && !s.Limit.Shadow && c.estimateExceeds(now, s)
	}) {
		if err := c.s.readExpiring(ctx, now, s); err != nil {
			return err
		}
	}
	return nil
}

// staleEstimate reports whether the limit was last read from the cluster a second ago or more.
func (s *activeTake) staleEstimate(now int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now-s.readAt >= rememberMS
}

// estimateExceeds reports whether the limit is exceeded, as judgedBy has it.
func (c *reserveOp) estimateExceeds(now int64, by *activeTake) bool {
	by.mu.Lock()
	defer by.mu.Unlock()
	return by.availableKnown(now) < by.need()
}

// makeDenial makes the outcome a denial and reports whether it did. It does not if no limit is
// exceeded any more: an update may have returned units after the cluster answered, and a denial
// without an exceeded limit would give no reason.
func (c *reserveOp) makeDenial(now int64) bool {
	c.writeStatuses(now)
	exceeded := func(l weir.LimitStatus) bool { return l.Exceeded && !l.Shadow }
	if !slices.ContainsFunc(c.out.Limits, exceeded) {
		return false
	}
	for _, take := range c.takes {
		take.setSeen(now)
	}
	c.out.At = time.UnixMilli(now)
	c.out.Denied = true
	return true
}

// setSeen records when the limit was judged. It leaves a forgotten bucket alone: a denial takes
// nothing from the bucket, so it still counts as unused.
func (s *activeTake) setSeen(now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.key.kind != weir.Bucket || !s.bucket.forgotten(now, s.touched) {
		s.touched = now
	}
}

// writeStatuses writes the status of every limit into the outcome.
func (c *reserveOp) writeStatuses(now int64) {
	for i, take := range c.takes {
		take.mu.Lock()
		take.judge(now, &c.out.Limits[i])
		take.usedAtMS = now
		take.mu.Unlock()
	}
}

// rememberMS is how long a denial is remembered at most, in milliseconds.
const rememberMS = 1000

// rememberDenial remembers until the retry-after, but no longer than maxMS, that the limit was
// exceeded. Of two denials it keeps the one with the lower need, which denies more requests.
func (s *activeTake) rememberDenial(now, maxMS int64, status *weir.LimitStatus) {
	if !status.Exceeded || status.Shadow {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	until := now + min(maxMS, status.RetryAfter.Milliseconds())
	if d := &s.denied; d.until <= now || s.need() <= d.need {
		*d = rememberedDenial{need: s.need(), until: until}
	}
}

// deniedFromMemory denies without sending a chain if as much was denied a moment ago and the
// estimate agrees. It does not deny a lease that another server may have reserved, because that
// lease may be what occupies the limit, nor one of which an earlier chain may still be carried out.
func (c *reserveOp) deniedFromMemory(ctx context.Context) (done bool, err error) {
	now := c.s.clock.nowMS()
	if c.resend || !c.denialRemembered(now) {
		return false, nil
	}
	if c.s.hasForeign(now) { // other servers may have returned units
		if err := c.s.readForDenial(ctx, c.likelyExceeded(now)); err != nil {
			return false, err
		}
		if now = max(now, c.s.clock.nowMS()); !c.exceeded(now) {
			return false, nil
		}
		if err := c.readEnds(ctx, now); err != nil {
			return false, err
		}
	}
	if c.repeat { // asked last, because another server may reserve the lease during the reads
		if header, err := c.s.lookupHeader(ctx, c.plan.ID); err != nil || header != nil {
			return false, err
		}
	}
	if !c.makeDenial(now) {
		return false, nil
	}
	c.s.counts.remembered.Add(1)
	return true, nil
}

// denialRemembered reports whether a take is denied from memory, and no changed definition has to
// be written to the cluster first.
func (c *reserveOp) denialRemembered(now int64) bool {
	recalls := false
	for _, take := range c.takes {
		if take.redefines() {
			return false // only a chain writes the new definition
		}
		recalls = recalls || take.deniedFromMemory(now)
	}
	return recalls
}

// redefines is like redefinesLocked, for callers that do not hold s.mu.
func (s *activeTake) redefines() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.redefinesLocked()
}

// deniedFromMemory reports whether a remembered denial still holds. While an update is in flight it
// does not: the cluster may have carried the update out, and another caller may have seen the units
// that it returned. A reservation in flight can only confirm the denial.
func (s *activeTake) deniedFromMemory(now int64) bool {
	if s.Limit.Shadow {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := &s.denied; s.uncertain || s.updatesInFlight > 0 || now >= d.until || s.need() < d.need {
		return false
	}
	return s.availableKnown(now) < s.need()
}

// exceeded reports whether any enforced limit is still exceeded, as judgedBy has it.
func (c *reserveOp) exceeded(now int64) bool {
	for _, s := range c.takes {
		if !s.Limit.Shadow && !s.passed && c.estimateExceeds(now, s) {
			return true
		}
	}
	return false
}

// foreignMS is how long, in milliseconds, a sign of another server counts: for that time the store
// assumes that other servers use the same limits.
const foreignMS = 60_000

// noteForeign records a sign of another server: it has changed what is in use.
func (s *Store) noteForeign() { s.foreignSeenAt.Store(s.clock.nowMS()) }

// hasForeign reports whether other servers are assumed to use the limits. If so, this server's
// estimates may be stale, and it does not deny without asking the cluster.
func (s *Store) hasForeign(now int64) bool {
	at := s.foreignSeenAt.Load()
	return at > 0 && now-at < s.foreignFor
}
