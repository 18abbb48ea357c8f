//go:build cgo

package tigerbeetle

import (
	"context"
	"sync"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir/tigerbeetle/internal/client"
)

// clusterClock knows the cluster's time within two bounds, from the timestamps in its answers. The
// lower bound, which is used nearly everywhere, is never ahead of the cluster, because a timestamp
// is made before its answer arrives. The upper bound is never behind, because a timestamp is made
// after its call is sent (docs/adr/0028-cluster-time.md).
type clusterClock struct {
	now func() time.Time
	// exact is the clock of a cluster in this process, such as the emulator; otherwise nil.
	exact func() time.Time

	// mu guards the fields below, which every answer of the cluster may change.
	mu     sync.Mutex
	begun  time.Time     // on the process's clock
	offset time.Duration // lower bound of the cluster's time less the time passed here
	at     time.Duration // when offset was learned
	upper  time.Duration // upper bound of the same difference
	sent   time.Duration // when the call was sent from which upper was learned
	known  bool
	// answers is the number of answers that had a timestamp.
	answers int64
}

func newClock(now func() time.Time, ledger Ledger) *clusterClock {
	c := &clusterClock{now: now, begun: now()}
	if l, ok := ledger.(interface{ Now() time.Time }); ok {
		c.exact = l.Now
	}
	return c
}

// drift bounds how fast or slow the process's clock may run: by one part in a thousand.
const drift = 1000

// passed returns the time that has passed on the process's clock after the clusterClock was
// created.
func (c *clusterClock) passed() time.Duration { return c.now().Sub(c.begun) }

// observe learns from a timestamp of the cluster, in nanoseconds. sent is when its call was sent,
// as returned by passed.
func (c *clusterClock) observe(timestamp uint64, sent time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	passed := c.passed()
	lower, upper := time.Duration(timestamp)-passed, time.Duration(timestamp)-sent
	if !c.known || lower >= c.lowerBound(passed) {
		c.offset, c.at = lower, passed
	}
	// The upper bound is also replaced if it is below the lower one: it is then from before the
	// cluster's clock was set forward.
	if !c.known || upper+(passed-sent)/drift <= c.upperBound(passed) || c.upperBound(passed) < c.lowerBound(passed) {
		c.upper, c.sent = upper, sent
	}
	c.known = true
	c.answers++
}

// lowerBound returns the smallest possible offset: the best one so far, less what the process's
// clock may have gained in the time after that.
func (c *clusterClock) lowerBound(passed time.Duration) time.Duration {
	return c.offset - (passed-c.at)/drift
}

// upperBound returns the largest possible offset.
func (c *clusterClock) upperBound(passed time.Duration) time.Duration {
	return c.upper + (passed-c.sent)/drift
}

// nowMS returns the lower bound of the cluster's time, in Unix milliseconds. It is valid after the
// first call of observe.
func (c *clusterClock) nowMS() int64 {
	if c.exact != nil {
		return c.exact().UnixMilli()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	passed := c.passed()
	return int64((passed + c.lowerBound(passed)) / time.Millisecond)
}

// latestMS returns the upper bound of the cluster's time, in Unix milliseconds.
func (c *clusterClock) latestMS() int64 {
	if c.exact != nil {
		return c.exact().UnixMilli()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	passed := c.passed()
	return int64((passed + max(c.upperBound(passed), c.lowerBound(passed))) / time.Millisecond)
}

// answersSeen returns how many answers had a timestamp.
func (c *clusterClock) answersSeen() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.answers
}

// ahead returns how far the cluster's clock is ahead of the process's clock.
func (c *clusterClock) ahead() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known || c.exact != nil {
		return 0
	}
	return c.offset - time.Duration(c.begun.UnixNano())
}

// timestampMS returns a timestamp of the cluster in Unix milliseconds.
func timestampMS(timestamp uint64) int64 { return int64(timestamp / uint64(time.Millisecond)) }

// clockLedger is a ledger whose answers set a clusterClock.
type clockLedger struct {
	Ledger
	*clusterClock
}

// CreateAccounts learns the time from the last result, unless the account existed before: then the
// timestamp is the time at which it was created.
func (t clockLedger) CreateAccounts(
	ctx context.Context, accounts []tb.Account,
) ([]tb.CreateAccountResult, error) {
	sent := t.passed()
	results, err := t.Ledger.CreateAccounts(ctx, accounts)
	if n := len(results); err == nil && n > 0 && results[n-1].Status != tb.AccountExists {
		t.observe(results[n-1].Timestamp, sent)
	}
	return results, err
}

// CreateTransfers learns the time from the last result, unless the transfer existed before: then
// the timestamp is the time at which it was created.
func (t clockLedger) CreateTransfers(
	ctx context.Context, transfers []tb.Transfer,
) ([]tb.CreateTransferResult, error) {
	sent := t.passed()
	results, err := t.Ledger.CreateTransfers(ctx, transfers)
	if n := len(results); err == nil && n > 0 && results[n-1].Status != tb.TransferExists {
		t.observe(results[n-1].Timestamp, sent)
	}
	return results, err
}

// askTime learns the cluster's time by a call that changes nothing: an account without an ID, which
// the cluster refuses with a timestamp.
func (s *Store) askTime(ctx context.Context) error {
	results, err := s.ledger.CreateAccounts(ctx, []tb.Account{{}})
	switch {
	case err != nil:
		return client.Unavailable(err)
	case len(results) != 1:
		return unexpected("create_accounts", "too few results")
	case results[0].Status != tb.AccountIDMustNotBeZero:
		return unexpected("create_accounts", results[0].Status.String())
	}
	return nil
}
