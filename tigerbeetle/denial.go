//go:build cgo

package tigerbeetle

import (
	"context"
	"slices"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/tigerbeetle/internal/client"
)

// deny makes the denial known, once it is clear which limits are exceeded. The cluster names the
// first one alone: those that it has checked before are not exceeded. Of others, and of that one
// if what is known does not explain it or other servers use the limits, it is asked by one lookup,
// and by a query for a bucket, a budget, and ends of holds that are not known.
func (c *reserveOp) deny(ctx context.Context, now int64, by *activeTake) (done bool, err error) {
	now = max(now, c.s.clock.nowMS())
	c.markPassed(now, by)
	doubtful := c.s.hasForeign(now) || !c.estimateExceeds(now, by) || by.includesOtherPeriods() && by.staleEstimate(now)
	asks := c.likelyExceeded(now)
	if at := slices.Index(asks, by); at >= 0 && !doubtful {
		asks = slices.Delete(asks, at, at+1)
	} else if at < 0 { // it is what the cluster named
		asks, by.passed = append(asks, by), false
	}
	if err := c.s.readForDenial(ctx, asks); err != nil {
		return false, err
	}
	now = max(now, c.s.clock.nowMS())
	if !c.estimateExceeds(now, by) {
		return false, nil // it was let go in between
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

// markPassed notes which limits the cluster has found enough of before it denied for one, and
// forgets what was seen before.
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

// likelyExceeded are the limits that are believed to be exceeded. The others are not named,
// whatever is learned of them later: only the cluster can say that they are.
func (c *reserveOp) likelyExceeded(now int64) []*activeTake {
	return c.takesWhere(func(s *activeTake) bool {
		if s.Limit.Shadow {
			return false
		}
		s.passed = s.passed || !c.estimateExceeds(now, s)
		return !s.passed
	})
}

// readEnds asks for the ends of holds that the waits of exceeded limits need.
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

// staleEstimate is true for what was not asked of the cluster for a second.
func (s *activeTake) staleEstimate(now int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now-s.readAt >= rememberMS
}

// estimateExceeds reports whether what is known says that the limit is exceeded.
func (c *reserveOp) estimateExceeds(now int64, by *activeTake) bool {
	by.mu.Lock()
	defer by.mu.Unlock()
	return by.availableKnown(now) < by.need()
}

// makeDenial makes the outcome a denial. It does not where no limit is exceeded any more: an
// update may have come since the cluster answered, and such a denial would name no reason.
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

// setSeen records when the limit was asked, except for a bucket that has been forgotten: a denial
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

// rememberMS is for how long a denial is remembered at most, in milliseconds.
const rememberMS = 1000

// rememberDenial notes that the limit was exceeded, until it may no longer be, or for so long.
func (s *activeTake) rememberDenial(now, most int64, status *weir.LimitStatus) {
	if !status.Exceeded || status.Shadow {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	until := now + min(most, status.RetryAfter.Milliseconds())
	if d := &s.denied; d.until <= now || s.need() <= d.need {
		*d = rememberedDenial{need: s.need(), until: until}
	}
}

// deniedFromMemory denies without asking the cluster, where it denied as much a moment ago. What is
// known must still say so. A lease that another server took is no denial: it may be what is in
// the way. Nor is one denied whose earlier chain may still be carried out.
func (c *reserveOp) deniedFromMemory(ctx context.Context) (done bool, err error) {
	now := c.s.clock.nowMS()
	if c.resend || !c.denialRemembered(now) {
		return false, nil
	}
	if c.s.hasForeign(now) { // others may have let go what was in the way
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
	if c.repeat { // asked last: a lease that is taken between two questions may be what is in the way
		if header, err := c.lookupHeader(ctx); err != nil || header != nil {
			return false, err
		}
	}
	if !c.makeDenial(now) {
		return false, nil
	}
	c.s.counts.remembered.Add(1)
	return true, nil
}

// denialRemembered reports whether a denial is remembered, and the cluster need hear of nothing
// else.
func (c *reserveOp) denialRemembered(now int64) bool {
	recalls := false
	for _, take := range c.takes {
		if take.redefines() {
			return false // the cluster must hear of it
		}
		recalls = recalls || take.deniedFromMemory(now)
	}
	return recalls
}

// lookupHeader is the transfer by which the lease was taken, or nil.
func (c *reserveOp) lookupHeader(ctx context.Context) (*tb.Transfer, error) {
	found, err := c.s.ledger.LookupTransfers(ctx, []tb.Uint128{transferID(c.plan.ID, 0, 0)})
	if err != nil {
		return nil, client.Unavailable(err)
	}
	if len(found) == 0 {
		return nil, nil // Nobody has taken it.
	}
	return &found[0], nil
}

// redefines is changes for who has not locked the limit state.
func (s *activeTake) redefines() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.redefinesLocked()
}

// deniedFromMemory reports whether the denial is remembered. It is not while an update is in
// flight: the cluster may have carried it out, and somebody may have seen what it gave back. What
// a reservation in flight has taken only makes the denial more right.
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

// exceeded reports whether what is known, or was seen, still says that a limit denies.
func (c *reserveOp) exceeded(now int64) bool {
	for _, s := range c.takes {
		if !s.Limit.Shadow && !s.passed && c.estimateExceeds(now, s) {
			return true
		}
	}
	return false
}

// foreignMS is how long other servers are taken to use the same limits after a sign of them, in
// milliseconds.
const foreignMS = 60_000

// noteForeign notes that another server has changed what is in use.
func (s *Store) noteForeign() { s.foreignSeenAt.Store(s.clock.nowMS()) }

// hasForeign reports whether other servers use the limits too: then what this one knows may be old,
// and a denial is not given without asking.
func (s *Store) hasForeign(now int64) bool {
	at := s.foreignSeenAt.Load()
	return at > 0 && now-at < s.foreignFor
}
