package limiter

import (
	"context"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-limiter/weir"
)

// Callers beyond maxCallers that have leases share sharedCallers accounts, because addresses, say,
// are without number.
const (
	maxCallers    = 4096
	sharedCallers = 64
)

// callerQuota is what the lease table knows of one caller.
type callerQuota struct {
	number      uint32       // 0 is the program itself
	live, ended atomic.Int64 // leases
	horizon     atomic.Int64 // lease IDs older than this may have been forgotten
}

// raiseHorizon moves the horizon to a time, in milliseconds.
func (c *callerQuota) raiseHorizon(floor int64) {
	for {
		early := c.horizon.Load()
		if early >= floor || c.horizon.CompareAndSwap(early, floor) {
			return
		}
	}
}

// callerQuotas bounds the live leases of all callers and of each, and finds the callers' accounts.
type callerQuotas struct {
	own           callerQuota // of calls that name no caller
	most, mostOf  int64       // live leases, of all and of one caller
	always        bool        // mostOf holds for a caller that is alone, too
	live, refused atomic.Int64

	mu     sync.RWMutex
	byName map[string]*callerQuota
	shared [sharedCallers]*callerQuota
	seed   maphash.Seed
	last   uint32 // the number of the newest
	swept  int64  // when accounts without leases were last dropped, in milliseconds
}

func (c *callerQuotas) open(o *Options) {
	c.most, c.mostOf = int64(o.MaxLeases), int64(o.MaxLeasesPerCaller)
	c.always = c.mostOf > 0
	if !c.always {
		c.mostOf = max(1, c.most/10)
	}
	c.byName, c.seed = make(map[string]*callerQuota), maphash.MakeSeed()
}

// quotaFor returns the account of the caller that a context names.
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
	}
	return *at
}

func (c *callerQuotas) newQuota() *callerQuota {
	c.last++
	return &callerQuota{number: c.last}
}

// sweep drops the accounts that have nothing to tell any more, at most once a second.
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

// acquire counts a lease that is about to live, or returns an error with code [weir.Overloaded] if
// there are too many.
func (c *callerQuotas) acquire(of *callerQuota) error {
	if c.fits(of) {
		return nil
	}
	c.refused.Add(1)
	reason := fmt.Sprintf("all callers together have %d live leases, the most there may be", c.most)
	if of != &c.own && c.live.Load() < c.most {
		reason = fmt.Sprintf("this caller has %d live leases, the most for one caller", c.perCaller())
	}
	return &weir.Error{
		Code: weir.Overloaded, RetryAfter: time.Second,
		Reason: reason + "; nothing was reserved: settle one, or try again later",
	}
}

// fits counts a lease that is about to live, unless there are too many.
func (c *callerQuotas) fits(of *callerQuota) bool {
	mine, all := of.live.Add(1), c.live.Add(1)
	if all <= c.most && (of == &c.own || mine <= c.perCaller()) {
		return true
	}
	c.release(of)
	return false
}

// perCaller is how many leases one caller may have: while it is the only one, all but what another
// one would get.
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

// count counts a lease that lives already, whatever the bounds say.
func (c *callerQuotas) count(of *callerQuota) {
	of.live.Add(1)
	c.live.Add(1)
}

// release counts a lease that does not live any more.
func (c *callerQuotas) release(of *callerQuota) {
	of.live.Add(-1)
	c.live.Add(-1)
}

// admit counts a lease that is about to live, or returns an error with code [weir.Overloaded].
// Leases that have expired take no place: if there is none, all parts of the table are swept first.
func (t *leaseTable) admit(of *callerQuota, now time.Time) error {
	if t.callers.fits(of) {
		return nil
	}
	at := t.clock(now)
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		s.sweep(t, at)
		s.mu.Unlock()
	}
	return t.callers.acquire(of)
}

// LeaseStats are figures of a limiter's leases.
type LeaseStats struct {
	// Live is how many leases are live, as far as this process knows; one that has expired counts
	// until it is swept.
	Live int64
	// MaxLive is how many may be.
	MaxLive int64
	// Refused is how many reservations were refused with code [weir.Overloaded] since the start.
	Refused int64
}

// LeaseStats returns figures of the leases.
func (l *Limiter) LeaseStats() LeaseStats {
	c := &l.leases.callers
	return LeaseStats{Live: c.live.Load(), MaxLive: c.most, Refused: c.refused.Load()}
}

// caller returns the account of the caller that a context names.
func (t *leaseTable) caller(ctx context.Context, now int64) *callerQuota {
	return t.callers.quotaFor(ctx, now, t.memory)
}
