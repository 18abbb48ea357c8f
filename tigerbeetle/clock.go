//go:build cgo

package tigerbeetle

import (
	"sync"
	"time"
)

// clock knows the cluster's time from the timestamps in its answers. What it says is never ahead of the
// cluster: a timestamp was given before its answer arrived.
type clock struct {
	now func() time.Time
	// exact is the cluster's own clock, where it is in the process; otherwise nil.
	exact func() time.Time

	mu     sync.Mutex
	begun  time.Time     // on the process's clock
	offset time.Duration // of the cluster's time over what has passed since
	at     time.Duration // when the offset was learned
	known  bool
}

func newClock(now func() time.Time, ledger Ledger) *clock {
	c := &clock{now: now, begun: now()}
	if l, ok := ledger.(interface{ Now() time.Time }); ok {
		c.exact = l.Now
	}
	return c
}

// drift is by how much a process's clock may run fast: a thousandth.
const drift = 1000

// learn takes a timestamp of the cluster in, in nanoseconds.
func (c *clock) learn(timestamp uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	passed := c.now().Sub(c.begun)
	offset := time.Duration(timestamp) - passed
	if !c.known || offset >= c.believed(passed) {
		c.offset, c.at, c.known = offset, passed, true
	}
}

// believed is the best offset so far, less what the process's clock may have run fast since.
func (c *clock) believed(passed time.Duration) time.Duration {
	return c.offset - (passed-c.at)/drift
}

// ms is the cluster's time in Unix milliseconds, once it has been learned.
func (c *clock) ms() int64 {
	if c.exact != nil {
		return c.exact().UnixMilli()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	passed := c.now().Sub(c.begun)
	return int64((passed + c.believed(passed)) / time.Millisecond)
}

// ahead is by how much the cluster's time is ahead of the process's clock.
func (c *clock) ahead() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known || c.exact != nil {
		return 0
	}
	return c.offset - time.Duration(c.begun.UnixNano())
}

// instant is the millisecond of a timestamp.
func instant(timestamp uint64) int64 { return int64(timestamp / uint64(time.Millisecond)) }
