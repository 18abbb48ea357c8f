//go:build cgo

package tigerbeetle

import (
	"context"
	"slices"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
)

// deny makes the denial known, once it is clear which limits are exceeded. The cluster names the
// first one alone: those that it has checked before are not exceeded. Of others, and of that one
// if what is known does not explain it or other servers use the limits, it is asked by one
// look-up, and by a query for a bucket, a budget, and ends of holds that are not known.
func (c *reserving) deny(ctx context.Context, now int64, by *seat) (done bool, err error) {
	now = max(now, c.s.clock.ms())
	c.pass(now, by)
	doubtful := c.s.shared(now) || !c.explains(now, by) || by.reported() && by.hearsay(now)
	asks := c.suspects(now)
	if at := slices.Index(asks, by); at >= 0 && !doubtful {
		asks = slices.Delete(asks, at, at+1)
	} else if at < 0 { // it is what the cluster named
		asks, by.passed = append(asks, by), false
	}
	if err := c.s.observe(ctx, asks); err != nil {
		return false, err
	}
	now = max(now, c.s.clock.ms())
	if !c.explains(now, by) {
		return false, nil // it was let go in between
	}
	if err := c.readEnds(ctx, now); err != nil {
		return false, err
	}
	if err := c.s.redefine(ctx, c.plan.ID, c.all); err != nil {
		return false, err
	}
	if !c.refuse(now) {
		return false, nil
	}
	for i := range c.seats {
		c.seats[i].remember(now, c.s.denials, &c.out.Limits[i])
	}
	return true, nil
}

// pass notes which limits the cluster has found enough of before it denied for one, and forgets
// what was seen before.
func (c *reserving) pass(now int64, by *seat) {
	checked := true
	for i := range c.seats {
		s := &c.seats[i]
		s.mu.Lock()
		if s == by {
			checked = false
		}
		s.seen, s.passed = nil, checked && !s.take.Limit.Shadow
		if s.passed && s.flights == 0 && s.admitted(now) {
			c.s.shares()
		}
		s.mu.Unlock()
	}
}

// suspects are the limits that are believed to be exceeded. The others are not named, whatever is
// learned of them later: only the cluster can say that they are.
func (c *reserving) suspects(now int64) []*seat {
	return c.those(func(s *seat) bool {
		if s.take.Limit.Shadow {
			return false
		}
		s.passed = s.passed || !c.explains(now, s)
		return !s.passed
	})
}

// readEnds asks for the ends of holds that the waits of exceeded limits need.
func (c *reserving) readEnds(ctx context.Context, now int64) error {
	for _, s := range c.those(func(s *seat) bool {
		return !s.passed && !s.take.Limit.Shadow && c.explains(now, s)
	}) {
		if err := c.s.readHolds(ctx, now, s); err != nil {
			return err
		}
	}
	return nil
}

// hearsay is true for what was not asked of the cluster for a second.
func (s *seat) hearsay(now int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now-s.read >= rememberMS
}

// explains is true where what is known says that the limit is exceeded.
func (c *reserving) explains(now int64, by *seat) bool {
	by.mu.Lock()
	defer by.mu.Unlock()
	return by.known(now) < by.need()
}

// refuse makes the outcome a denial. It does not where no limit is exceeded any more: a
// settlement may have come since the cluster answered, and such a denial would name no reason.
func (c *reserving) refuse(now int64) bool {
	c.statuses(now)
	exceeded := func(l weir.LimitStatus) bool { return l.Exceeded && !l.Shadow }
	if !slices.ContainsFunc(c.out.Limits, exceeded) {
		return false
	}
	for i := range c.seats {
		c.seats[i].stamp(now)
	}
	c.out.At = time.UnixMilli(now)
	c.out.Denied = true
	return true
}

// stamp records when the limit was asked, except for a bucket that has been forgotten: a denial takes
// nothing from such a bucket, so it still counts as unused.
func (s *seat) stamp(now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.key.kind != weir.Bucket || !s.bucket.forgotten(now, s.touched) {
		s.touched = now
	}
}

// statuses writes every limit's status.
func (c *reserving) statuses(now int64) {
	for i := range c.seats {
		seat := &c.seats[i]
		seat.mu.Lock()
		seat.judge(now, &c.out.Limits[i])
		seat.used = now
		seat.mu.Unlock()
	}
}

// rememberMS is for how long a denial is remembered at most, in milliseconds.
const rememberMS = 1000

// remember notes that the limit was exceeded, until it may no longer be, or for so long.
func (s *seat) remember(now, most int64, status *weir.LimitStatus) {
	if !status.Exceeded || status.Shadow {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	until := now + min(most, status.RetryAfter.Milliseconds())
	if d := &s.denied; d.until <= now || s.need() <= d.need {
		*d = denial{need: s.need(), until: until}
	}
}

// remembered denies without asking the cluster, where it denied as much a moment ago. What is
// known must still say so. A lease that another server took is no denial: it may be what is in
// the way. Nor is one denied whose earlier chain may still be carried out.
func (c *reserving) remembered(ctx context.Context) (done bool, err error) {
	now := c.s.clock.ms()
	if c.resends || !c.recalled(now) {
		return false, nil
	}
	if c.s.shared(now) { // others may have let go what was in the way
		if err := c.s.observe(ctx, c.suspects(now)); err != nil {
			return false, err
		}
		if now = max(now, c.s.clock.ms()); !c.exceeded(now) {
			return false, nil
		}
		if err := c.readEnds(ctx, now); err != nil {
			return false, err
		}
	}
	if c.repeats { // asked last: a lease that is taken between two questions may be what is in the way
		if header, err := c.header(ctx); err != nil || header != nil {
			return false, err
		}
	}
	if !c.refuse(now) {
		return false, nil
	}
	c.s.counts.remembered.Add(1)
	return true, nil
}

// recalled is true where a denial is remembered, and the cluster need hear of nothing else.
func (c *reserving) recalled(now int64) bool {
	recalls := false
	for i := range c.seats {
		if c.seats[i].redefined() {
			return false // the cluster must hear of it
		}
		recalls = recalls || c.seats[i].recalls(now)
	}
	return recalls
}

// header is the transfer by which the lease was taken, or nil.
func (c *reserving) header(ctx context.Context) (*tb.Transfer, error) {
	found, err := c.s.ledger.LookupTransfers(ctx, []tb.Uint128{transferID(c.plan.ID, 0, 0)})
	if err != nil {
		return nil, unavailable(err)
	}
	if len(found) == 0 {
		return nil, nil // Nobody has taken it.
	}
	return &found[0], nil
}

// redefined is changes for who has not locked the spot.
func (s *seat) redefined() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changes()
}

// recalls is true where the denial is remembered. It is not while a settlement is on its way: the
// cluster may have carried it out, and somebody may have seen what it gave back. What a
// reservation on its way has taken only makes the denial more right.
func (s *seat) recalls(now int64) bool {
	if s.take.Limit.Shadow {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := &s.denied; s.doubt || s.settling > 0 || now >= d.until || s.need() < d.need {
		return false
	}
	return s.known(now) < s.need()
}

// exceeded reports whether what is known, or was seen, still says that a limit denies.
func (c *reserving) exceeded(now int64) bool {
	for _, s := range c.all {
		if !s.take.Limit.Shadow && !s.passed && c.explains(now, s) {
			return true
		}
	}
	return false
}

// sharedMS is how long other servers are taken to use the same limits after a sign of them, in
// milliseconds.
const sharedMS = 60_000

// shares notes that another server has changed what is in use.
func (s *Store) shares() { s.elsewhere.Store(s.clock.ms()) }

// shared reports whether other servers use the limits too: then what this one knows may be old,
// and a denial is not given without asking.
func (s *Store) shared(now int64) bool {
	at := s.elsewhere.Load()
	return at > 0 && now-at < s.sharing
}
