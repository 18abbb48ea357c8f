//go:build cgo

package tigerbeetle

import (
	"time"

	"github.com/weir-limiter/weir"
)

// rememberMS is for how long a denial is remembered at most, in milliseconds.
const rememberMS = 1000

// remember notes that the limit was exceeded, until it may no longer be.
func (s *seat) remember(now int64, status *weir.LimitStatus) {
	if !status.Exceeded || status.Shadow {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	until := now + min(rememberMS, status.RetryAfter.Milliseconds())
	if d := &s.denied; d.until <= now || s.need() <= d.need {
		*d = denial{need: s.need(), until: until}
	}
}

// remembered denies without asking the cluster, where it denied as much a moment ago. What is known
// must still say so.
func (c *reserving) remembered() bool {
	now := c.s.clock.ms()
	for i := range c.seats {
		if c.seats[i].redefined() {
			return false // the cluster must hear of it
		}
	}
	for i := range c.seats {
		seat := &c.seats[i]
		if seat.recalls(now) {
			c.s.counts.remembered.Add(1)
			c.statuses(now)
			c.out.At = time.UnixMilli(now)
			c.out.Denied, c.out.Holdings = true, nil
			return true
		}
	}
	return false
}

// redefined is changes for who has not locked the spot.
func (s *seat) redefined() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changes()
}

func (s *seat) recalls(now int64) bool {
	if s.take.Limit.Shadow {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := &s.denied; s.doubt || now >= d.until || s.need() < d.need {
		return false
	}
	return s.known(now) < s.need()
}
