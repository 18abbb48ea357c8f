//go:build cgo

package tigerbeetle

import (
	"context"
	"slices"
	"time"

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
