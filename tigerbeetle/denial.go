//go:build cgo

package tigerbeetle

import (
	"context"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
)

// deny answers with a denial once it is clear which limits are exceeded. The cluster names only
// the first one; those that it checked before are not exceeded. The others are read by one lookup,
// with a query for each bucket, each budget, and unknown ends of expiring units. So is the named
// one if the estimate does not explain the denial or other servers use the limits.
func (c *reserveOp) deny(ctx context.Context, now int64, by *activeTake) (done bool, err error) {
	now = max(now, c.s.clock.nowMS())
	c.markPassed(now, by)
	uncertain := c.s.hasForeign(now) || !c.estimateExceeds(now, by) ||
		by.includesOtherPeriods() && by.staleEstimate(now)
	reads := c.likelyExceeded(now)
	if at := slices.Index(reads, by); at >= 0 && !uncertain {
		reads = slices.Delete(reads, at, at+1)
	} else if at < 0 { // it is what the cluster named
		reads, by.passed = append(reads, by), false
	}
	if err := c.s.readForDenial(ctx, reads); err != nil {
		return false, err
	}
	now = max(now, c.s.clock.nowMS())
	if !c.estimateExceeds(now, by) {
		return false, nil // units were returned meanwhile
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

// markPassed marks the limits of which the cluster found enough before it denied for one, and
// forgets what was observed before.
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

// likelyExceeded are the limits that are exceeded by the estimate. The others are not named in the
// denial, whatever is learned of them later: only the cluster can say that they are exceeded.
func (c *reserveOp) likelyExceeded(now int64) []*activeTake {
	return c.takesWhere(func(s *activeTake) bool {
		if s.Limit.Shadow {
			return false
		}
		s.passed = s.passed || !c.estimateExceeds(now, s)
		return !s.passed
	})
}

// readEnds reads the ends of expiring units that the retry-after of exceeded limits need.
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

// staleEstimate reports whether the limit was last read from the cluster over a second ago.
func (s *activeTake) staleEstimate(now int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now-s.readAt >= rememberMS
}

// estimateExceeds reports whether the limit is exceeded by the estimate.
func (c *reserveOp) estimateExceeds(now int64, by *activeTake) bool {
	by.mu.Lock()
	defer by.mu.Unlock()
	return by.availableKnown(now) < by.need()
}

// makeDenial makes the outcome a denial, unless no limit is exceeded any more: an update may have
// come since the cluster answered, and such a denial would give no reason.
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

// setSeen records when the limit was judged, except for a bucket that has been forgotten: a denial
// takes nothing from such a bucket, so it still counts as unused.
func (s *activeTake) setSeen(now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.key.kind != weir.Bucket || !s.bucket.forgotten(now, s.touched) {
		s.touched = now
	}
}

// writeStatuses writes every limit's status.
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

// rememberDenial remembers that the limit was exceeded, for its retry-after, but no longer than
// maxMS.
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

// deniedFromMemory denies without asking the cluster if it denied as much a moment ago and the
// estimate still agrees. A lease that another server has reserved is not denied: it may be what
// occupies the limit. Nor is one of which an earlier chain may still be carried out.
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
	if c.repeat { // asked last: a lease that is reserved meanwhile may be what occupies the limit
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

// denialRemembered reports whether a denial is remembered and nothing has to be written to the
// cluster.
func (c *reserveOp) denialRemembered(now int64) bool {
	recalls := false
	for _, take := range c.takes {
		if take.redefines() {
			return false // the new definition must be written
		}
		recalls = recalls || take.deniedFromMemory(now)
	}
	return recalls
}

// redefines is redefinesLocked for callers that do not hold s.mu.
func (s *activeTake) redefines() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.redefinesLocked()
}

// deniedFromMemory reports whether a remembered denial still holds. It does not while an update is
// in flight: the cluster may have carried it out, and another caller may have seen the units that
// it gave back. A reservation in flight can only confirm the denial.
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

// exceeded reports whether a limit is still exceeded by what is known or was observed.
func (c *reserveOp) exceeded(now int64) bool {
	for _, s := range c.takes {
		if !s.Limit.Shadow && !s.passed && c.estimateExceeds(now, s) {
			return true
		}
	}
	return false
}

// foreignMS is how long, in milliseconds, other servers are assumed to use the same limits after
// the last sign of them.
const foreignMS = 60_000

// noteForeign records that another server has changed what is in use.
func (s *Store) noteForeign() { s.foreignSeenAt.Store(s.clock.nowMS()) }

// hasForeign reports whether other servers use the limits too: then the estimates of this one may
// be stale, and it does not deny without asking.
func (s *Store) hasForeign(now int64) bool {
	at := s.foreignSeenAt.Load()
	return at > 0 && now-at < s.foreignFor
}
