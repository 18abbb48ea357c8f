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

// Bounds on cancelling abandoned reservations.
const (
	maxAbandoned  = 4096 // at once
	maxCancelling = 32   // requests at once
	// A cancel that is answered with unknown lease is repeated after pauses that double.
	firstRepeat   = 50 * time.Millisecond
	longestRepeat = time.Second
)

// ClientStats counts the reservations with IDs of its own that a [Client] has abandoned: they ended
// without a lease, although an attempt may have reached the server.
type ClientStats struct {
	// Abandoned counts all of them. Each is also in one of the counts below, unless
	// [ClientOptions.CancelFor] turns cancels off.
	Abandoned int64
	// Cancelled counts those that the server had reserved, and gave back.
	Cancelled int64
	// Absent counts those that the server did not have when it was last asked. It refuses them from
	// then on.
	Absent int64
	// Failed counts those that could not be cancelled. They stay charged until their leases end.
	Failed int64
	// UnderWay counts those that are being cancelled.
	UnderWay int64
}

// Stats returns the counts of abandoned reservations.
func (c *Client) Stats() ClientStats {
	a := &c.abandoned
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stats
}

// abandoned are the abandoned reservations of a client.
type abandoned struct {
	mu      sync.Mutex
	stats   ClientStats
	idle    *sync.Cond    // signalled when none is under way; nil until wait is called
	sending chan struct{} // holds an element for each request
}

// begin counts a reservation. It returns false if too many are under way.
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

// end counts what became of a reservation. The argument absent is true if the server did not have
// it.
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

// crowded reports whether there are so many that those which the server does not have should end.
func (a *abandoned) crowded() bool {
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

// abandon cancels in the background what may have been reserved with an ID of the client's own. The
// argument pending is true if the reserve may still arrive.
func (c *Client) abandon(ctx context.Context, id weir.LeaseID, pending bool) {
	failed, _ := ctx.Value(abandonKey{}).(func(error))
	report := func(err error) {
		if err != nil {
			err = &weir.Error{
				Code: weir.Unavailable, Field: "lease_id", Value: id.String(),
				Reason: "was given up and could not be cancelled", Err: err,
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
		report(errors.New("too many reservations were given up at once"))
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

// cancelAbandoned sends a cancel until it has an answer. The result absent is true if the server
// does not have the lease. While the reserve may still arrive, perhaps at another server, it
// repeats such a cancel.
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
		case !pending || c.abandoned.crowded():
			return true, nil
		}
		absent = absent || why == nil // the server refuses the reserve from then on
		if !pause(ctx, pauseBefore(n, firstRepeat, longestRepeat, min(asked, longestRepeat))) {
			if absent {
				return true, nil
			}
			return false, why.unavailable(nil)
		}
	}
}

// cancelOnce makes one attempt, as soon as few enough others are made.
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

// arrival records whether an attempt may have reached the server.
type arrival struct{ asked, connected atomic.Bool }

// trace returns a context whose requests are recorded.
func (a *arrival) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { a.asked.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { a.connected.Store(true) },
	})
}

// possible returns false if no attempt had a connection. A round tripper that does not trace may
// have had one.
func (a *arrival) possible() bool { return a.connected.Load() || !a.asked.Load() }

type abandonKey struct{}

// reporting is a service that calls failed if a [Client] behind it could not cancel a reservation
// that it abandoned. Its leases are those of the service behind it.
type reporting struct {
	weir.Service

	failed func(error)
}

// Reserve reserves with failed in the context, for the client.
func (s reporting) Reserve(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
	return s.Service.Reserve(context.WithValue(ctx, abandonKey{}, s.failed), r)
}
