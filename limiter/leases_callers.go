package limiter

import (
	"context"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/leaseid"
)

// At most maxCallers callers have a quota of their own at one time. Further callers share
// sharedCallers quotas, because the number of callers is not bounded, for example if they are named
// by address.
const (
	maxCallers    = 4096
	sharedCallers = 64
)

// callerQuota counts the leases of one caller.
type callerQuota struct {
	number      uint32       // 0 for calls that name no caller
	live, ended atomic.Int64 // numbers of leases
	horizon     atomic.Int64 // lease IDs from before this instant may have been forgotten
	// ids makes lease IDs in rows. Several callers share a quota if severalNames is set; their IDs are
	// random, because one caller could guess the other IDs of a row.
	ids          leaseid.Rows
	severalNames bool
}

// raiseHorizon raises the horizon to an instant in milliseconds.
func (c *callerQuota) raiseHorizon(floor int64) {
	for {
		early := c.horizon.Load()
		if early >= floor || c.horizon.CompareAndSwap(early, floor) {
			return
		}
	}
}

// callerQuotas bounds the number of live leases, in total and of each caller. The counts are
// atomic; mu guards the fields below it.
type callerQuotas struct {
	own           callerQuota // of calls that name no caller
	most, mostOf  int64       // bounds of the live leases, in total and of one caller
	always        bool        // mostOf also bounds a caller that is the only one
	live, refused atomic.Int64

	mu     sync.RWMutex
	byName map[string]*callerQuota
	shared [sharedCallers]*callerQuota
	seed   maphash.Seed
	last   uint32 // the last number given to a quota
	swept  int64  // when sweep last ran, in milliseconds
}

func (c *callerQuotas) open(o *Options) {
	c.most, c.mostOf = int64(o.MaxLeases), int64(o.MaxLeasesPerCaller)
	c.always = c.mostOf > 0
	if !c.always {
		c.mostOf = max(1, c.most/10)
	}
	c.byName, c.seed = make(map[string]*callerQuota), maphash.MakeSeed()
}

// quotaFor returns the quota of the caller that a context names.
func (c *callerQuotas) quotaFor(ctx context.Context, now, memory int64) *callerQuota {
	name := weir.CallerFromContext(ctx)
	if name == "" {
		return &c.own
	}
	c.mu.RLock()
	known := c.byName[name]
	c.mu.RUnlock()
	if known != nil {
		return known
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if known = c.byName[name]; known != nil {
		return known
	}
	if len(c.byName) >= maxCallers {
		c.sweep(now, memory)
	}
	if len(c.byName) < maxCallers {
		known = c.newQuota()
		c.byName[name] = known
		return known
	}
	at := &c.shared[maphash.String(c.seed, name)%sharedCallers]
	if *at == nil {
		*at = c.newQuota()
		(*at).severalNames = true
	}
	return *at
}

func (c *callerQuotas) newQuota() *callerQuota {
	c.last++
	return &callerQuota{number: c.last}
}

// sweep drops the quotas without leases whose horizon no longer matters, at most once a second.
func (c *callerQuotas) sweep(now, memory int64) {
	if now-c.swept < time.Second.Milliseconds() && now >= c.swept {
		return
	}
	c.swept = now
	for name, a := range c.byName {
		if a.live.Load() == 0 && a.ended.Load() == 0 && a.horizon.Load() <= now-memory {
			delete(c.byName, name)
		}
	}
}

// acquire counts a lease that is about to be reserved, or returns an error with code
// [weir.Overloaded].
func (c *callerQuotas) acquire(of *callerQuota) error {
	if c.fits(of) {
		return nil
	}
	c.refused.Add(1)
	reason := fmt.Sprintf("all callers together have %d live leases, which is the maximum", c.most)
	if of != &c.own && c.live.Load() < c.most {
		reason = fmt.Sprintf("this caller has %d live leases, which is the maximum for one caller",
			c.perCaller())
	}
	return &weir.Error{
		Code: weir.Overloaded, RetryAfter: time.Second,
		Reason: reason + "; nothing was reserved: settle one, or try again later",
	}
}

// fits counts a lease that is about to be reserved, and reports whether it is within the bounds; if
// not, the lease is not counted.
func (c *callerQuotas) fits(of *callerQuota) bool {
	mine, all := of.live.Add(1), c.live.Add(1)
	if all <= c.most && (of == &c.own || mine <= c.perCaller()) {
		return true
	}
	c.release(of)
	return false
}

// perCaller returns the bound for one caller. Without the option, a caller that is the only one may
// have all leases but the share that is kept free for a second caller.
func (c *callerQuotas) perCaller() int64 {
	if c.always {
		return c.mostOf
	}
	c.mu.RLock()
	several := len(c.byName) > 1
	c.mu.RUnlock()
	if several {
		return c.mostOf
	}
	return max(1, c.most-c.mostOf)
}

// count counts a lease that is live already, whatever the bounds are.
func (c *callerQuotas) count(of *callerQuota) {
	of.live.Add(1)
	c.live.Add(1)
}

// release stops counting a lease.
func (c *callerQuotas) release(of *callerQuota) {
	of.live.Add(-1)
	c.live.Add(-1)
}

// admit counts a lease that is about to be reserved, or returns an error with code
// [weir.Overloaded]. Expired leases are counted until they are swept, so admit sweeps all segments
// before it refuses.
func (t *leaseTable) admit(of *callerQuota, now time.Time) error {
	if t.callers.fits(of) {
		return nil
	}
	at := t.clock(now)
	for i := range t.segments {
		s := &t.segments[i]
		s.mu.Lock()
		s.sweep(t, at)
		s.mu.Unlock()
	}
	return t.callers.acquire(of)
}

// LeaseStats are counts of a limiter's leases.
type LeaseStats struct {
	// Live is the number of live leases that this process knows. An expired lease counts until it
	// is swept.
	Live int64
	// MaxLive is the bound of Live.
	MaxLive int64
	// Refused is the number of reservations refused with code [weir.Overloaded] since the limiter
	// was opened.
	Refused int64
}

// LeaseStats returns the counts.
func (l *Limiter) LeaseStats() LeaseStats {
	c := &l.leases.callers
	return LeaseStats{Live: c.live.Load(), MaxLive: c.most, Refused: c.refused.Load()}
}

// caller returns the quota of the caller that a context names.
func (t *leaseTable) caller(ctx context.Context, now int64) *callerQuota {
	return t.callers.quotaFor(ctx, now, t.memory)
}
