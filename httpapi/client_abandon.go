package httpapi

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/apijson"
)

// Bounds of the work for abandoned reservations.
const (
	mostAbandoned  = 4096 // at once
	mostCancelling = 32   // cancels sent at once
	// A cancel that is answered with unknown lease is repeated after pauses that double, from
	// the first to the longest.
	firstRepeat   = 50 * time.Millisecond
	longestRepeat = time.Second
)

// ClientStats counts the reservations that a [Client] has abandoned: it ended without a lease,
// under an ID of its own making, though an attempt may have reached the server.
type ClientStats struct {
	// Abandoned is how many there were. Each is in one of the counts below, unless
	// [ClientOptions.CancelFor] turns cancels off.
	Abandoned int64
	// Cancelled is how many the server had reserved, and gave back.
	Cancelled int64
	// Absent is how many the server did not have when it was asked last; it refuses them from
	// then on.
	Absent int64
	// Failed is how many could not be cancelled: they stay charged until their leases end.
	Failed int64
	// UnderWay is how many are being cancelled.
	UnderWay int64
}

// Stats returns what the client has counted so far.
func (c *Client) Stats() ClientStats {
	a := &c.abandoned
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stats
}

// abandoned are the reservations that a client has given up.
type abandoned struct {
	mu      sync.Mutex
	stats   ClientStats
	idle    *sync.Cond // signalled when none is under way; made by wait
	sending chan struct{}
}

func newAbandoned() abandoned { return abandoned{sending: make(chan struct{}, mostCancelling)} }

// begin counts a reservation, and returns false if there are too many.
func (a *abandoned) begin() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stats.Abandoned++
	if a.stats.UnderWay == mostAbandoned {
		a.stats.Failed++
		return false
	}
	a.stats.UnderWay++
	return true
}

// end counts what became of a reservation. absent is true if the server did not have it.
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

// crowded is true if there are so many that those which the server does not have make room.
func (a *abandoned) crowded() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stats.UnderWay > mostAbandoned/2
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

// abandon cancels in the background what may have been reserved under an ID of the client's own.
// pending is true if the reserve may still arrive.
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

// cancelAbandoned sends a cancel until its outcome is known. absent is true if the server does
// not have the lease: while the reserve may still arrive, at another server perhaps, the cancel
// is repeated.
func (c *Client) cancelAbandoned(
	ctx context.Context, id weir.LeaseID, pending bool,
) (absent bool, err error) {
	body, err := apijson.Write(&apijson.LeaseRequest{LeaseID: id})
	if err != nil {
		return false, err
	}
	k := &call{
		method: http.MethodPost, path: "/v1/cancel", body: body, most: mostOfVerb,
		accept: func(body []byte) error {
			_, err := apijson.ReadReceipt(body, id)
			return err
		},
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

// cancelOnce makes one attempt, in its turn.
func (c *Client) cancelOnce(ctx context.Context, k *call) (*doubt, error) {
	select {
	case c.abandoned.sending <- struct{}{}:
		defer func() { <-c.abandoned.sending }()
	case <-ctx.Done():
		return &doubt{cause: ctx.Err()}, nil
	}
	r, err := c.send(ctx, k)
	if err != nil {
		return &doubt{cause: err}, nil
	}
	return k.judge(r)
}

// arrival watches whether an attempt may have reached the server.
type arrival struct{ asked, connected atomic.Bool }

// trace makes the arrival watch the requests of a context.
func (a *arrival) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { a.asked.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { a.connected.Store(true) },
	})
}

// possible is false if no attempt had a connection. A round tripper that traces nothing says
// nothing.
func (a *arrival) possible() bool { return a.connected.Load() || !a.asked.Load() }

type abandonKey struct{}

// reporting is a service of which one caller is told when a reservation that it abandoned could
// not be cancelled, if the service behind it is a [Client]. Its leases are those of the service
// behind it.
type reporting struct {
	weir.Service

	failed func(error)
}

// Reserve tells the client whom to report to.
func (s reporting) Reserve(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
	return s.Service.Reserve(context.WithValue(ctx, abandonKey{}, s.failed), r)
}
