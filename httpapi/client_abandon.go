package httpapi

import (
	"context"
	"errors"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/apijson"
)

// Bounds on the cancels of abandoned reservations.
const (
	maxAbandoned  = 4096 // reservations that are being cancelled
	maxCancelling = 32   // concurrent requests
	// A cancel with the answer unknown lease is repeated after pauses that double.
	firstRepeat   = 50 * time.Millisecond
	longestRepeat = time.Second
)

// ClientStats counts the abandoned reservations of a [Client] for which it made the lease IDs. An
// abandoned reservation ended without a lease although an attempt may have reached the server.
type ClientStats struct {
	// Abandoned counts all of them. Each also counts in one of the fields below, unless
	// [ClientOptions.CancelFor] is negative.
	Abandoned int64
	// Cancelled counts the reservations that the server had made and then cancelled.
	Cancelled int64
	// Absent counts the reservations that the server did not have when the client last asked. The
	// server refuses their lease IDs from then on.
	Absent int64
	// Failed counts the reservations that could not be cancelled. They stay charged until their
	// leases end.
	Failed int64
	// UnderWay counts the reservations that are being cancelled.
	UnderWay int64
}

// Stats returns the counts of abandoned reservations.
func (c *Client) Stats() ClientStats {
	a := &c.abandoned
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stats
}

// abandoned has the counts of the abandoned reservations of a client, guarded by mu.
type abandoned struct {
	mu      sync.Mutex
	stats   ClientStats
	idle    *sync.Cond    // signalled when UnderWay is 0; nil until wait is called
	sending chan struct{} // one element for each cancel request being sent
}

// begin counts a reservation that is about to be cancelled. It returns false if there are too many.
func (a *abandoned) begin() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stats.Abandoned++
	if a.stats.UnderWay == maxAbandoned {
		a.stats.Failed++
		return false
	}
	a.stats.UnderWay++
	return true
}

// end counts the result of a cancel. The argument absent reports whether the server did not have
// the reservation.
func (a *abandoned) end(absent bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case err != nil:
		a.stats.Failed++
	case absent:
		a.stats.Absent++
	default:
		a.stats.Cancelled++
	}
	if a.stats.UnderWay--; a.stats.UnderWay == 0 && a.idle != nil {
		a.idle.Broadcast()
	}
}

// full reports whether more than half of maxAbandoned reservations are being cancelled. The
// client then stops repeating the cancels of those that the server does not have.
func (a *abandoned) full() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stats.UnderWay > maxAbandoned/2
}

// wait returns once no reservation is being cancelled.
func (a *abandoned) wait() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.idle == nil {
		a.idle = sync.NewCond(&a.mu)
	}
	for a.stats.UnderWay > 0 {
		a.idle.Wait()
	}
}

// abandon starts to cancel a reservation with an ID that the client made. The argument pending
// reports whether the reserve may still arrive at a server.
func (c *Client) abandon(ctx context.Context, id weir.LeaseID, pending bool) {
	failed, _ := ctx.Value(abandonKey{}).(func(error))
	report := func(err error) {
		if err != nil {
			err = &weir.Error{
				Code: weir.Unavailable, Field: "lease_id", Value: id.String(),
				Reason: "was abandoned and could not be cancelled", Err: err,
			}
			if failed != nil {
				failed(err)
			}
		}
		c.options.OnAbandoned(id, err)
	}
	if c.options.CancelFor < 0 {
		c.abandoned.mu.Lock()
		defer c.abandoned.mu.Unlock()
		c.abandoned.stats.Abandoned++
		return
	}
	if !c.abandoned.begin() {
		report(errors.New("too many abandoned reservations are being cancelled at once"))
		return
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.options.CancelFor)
		defer cancel()
		absent, err := c.cancelAbandoned(ctx, id, pending)
		report(err)
		c.abandoned.end(absent, err)
	}()
}

// cancelAbandoned sends a cancel until it is answered. The result absent reports whether the server
// does not have the lease. In that case, while the reserve may still arrive, perhaps at another
// server, it repeats the cancel.
func (c *Client) cancelAbandoned(
	ctx context.Context, id weir.LeaseID, pending bool,
) (absent bool, err error) {
	k := post("/v1/cancel", &apijson.LeaseRequest{LeaseID: id})
	k.accept = func(body []byte) error {
		_, err := apijson.ReadReceipt(body, id)
		return err
	}
	if err := k.encode(); err != nil {
		return false, err
	}
	for n := 1; ; n++ {
		why, err := c.cancelOnce(ctx, k)
		var asked time.Duration
		switch {
		case why != nil:
			asked = why.pause
		case err == nil, errors.Is(err, weir.Ended), errors.Is(err, weir.Conflict):
			return false, nil
		case !errors.Is(err, weir.UnknownLease):
			return false, err
		case !pending || c.abandoned.full():
			return true, nil
		}
		absent = absent || why == nil // from now on the server refuses the reserve
		if !pause(ctx, pauseBefore(n, firstRepeat, longestRepeat, min(asked, longestRepeat))) {
			if absent {
				return true, nil
			}
			return false, why.unavailable(nil)
		}
	}
}

// cancelOnce makes one attempt. It waits while maxCancelling others are being sent.
func (c *Client) cancelOnce(ctx context.Context, k *apiCall) (*noAnswer, error) {
	select {
	case c.abandoned.sending <- struct{}{}:
		defer func() { <-c.abandoned.sending }()
	case <-ctx.Done():
		return &noAnswer{cause: ctx.Err()}, nil
	}
	r, err := c.send(ctx, k)
	if err != nil {
		return &noAnswer{cause: err}, nil
	}
	return k.judge(r)
}

// reachTrace records whether an attempt may have reached the server.
type reachTrace struct{ asked, connected atomic.Bool }

// trace returns a context that records the connections of its requests in a.
func (a *reachTrace) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { a.asked.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { a.connected.Store(true) },
	})
}

// mayHaveReached reports whether an attempt may have reached the server: it had a connection, or
// the round tripper does not support tracing.
func (a *reachTrace) mayHaveReached() bool { return a.connected.Load() || !a.asked.Load() }

type abandonKey struct{}

// abandonReporter is a service that passes failed to a [Client] behind it. The client calls failed
// if it cannot cancel an abandoned reservation. The leases are those of the service behind it.
type abandonReporter struct {
	weir.Service

	failed func(error)
}

// Reserve calls the service with failed in the context.
func (s abandonReporter) Reserve(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
	return s.Service.Reserve(context.WithValue(ctx, abandonKey{}, s.failed), r)
}
