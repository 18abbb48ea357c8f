//go:build cgo

package tigerbeetle

import (
	"context"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
)

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
