//go:build cgo

package tigerbeetle

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
)

const (
	// maxEvents is how many events a message of TigerBeetle holds.
	maxEvents = 8189
	// maxInFlight is how many calls may be going on, those included that nobody waits for anymore.
	maxInFlight = 10_000
	// sessionTimeout is how long a cluster has to let a client in, where nobody says.
	sessionTimeout = 5 * time.Second
	// minPause is the pause before a lost client is made anew; it doubles up to mostPause.
	minPause = 100 * time.Millisecond
	maxPause = 5 * time.Second
)

// client is the [Ledger] of a cluster: TigerBeetle's own client, which sends what is called at once
// together, with three things that it lacks. A call ends with its context, while what it asked for
// may still be carried out; calls that nobody waits for anymore are counted and bounded; and a
// client that the cluster has shut out is made anew.
type client struct {
	options  clientOptions
	inFlight chan struct{}
	// events is how many events a call holds, lookups how many IDs.
	events, lookups atomic.Int64

	mu          sync.Mutex
	native      tb.Client // nil while there is none
	downBecause error     // why there is none
	closed      bool
	// reconnectLater makes the client anew; end makes it stop.
	reconnectLater func()
	end            context.CancelFunc
	reconnecting   sync.WaitGroup
}

// clientOptions tune a client.
type clientOptions struct {
	// dial makes a native client, which need not have reached anybody yet.
	dial func(ctx context.Context) (tb.Client, error)
	// unreachable is the error where nobody answered.
	unreachable func(cause error) error
	// onError is told why a client was lost, and why it could not be made anew.
	onError     func(error)
	maxInFlight int
}

var _ Ledger = (*client)(nil)

// newClient returns a client that the cluster has let in.
func newClient(ctx context.Context, o clientOptions) (*client, error) {
	c := &client{options: o, inFlight: make(chan struct{}, o.maxInFlight)}
	c.events.Store(maxEvents)
	c.lookups.Store(maxEvents)
	native, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	c.native = native
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	c.reconnectLater, c.end = func() { c.reconnect(life) }, end
	return c, nil
}

// MaxEvents is how many events fit one call.
func (c *client) MaxEvents() int { return int(c.events.Load()) }

// Close cancels what is going on.
func (c *client) Close() error {
	c.mu.Lock()
	native := c.native
	c.native, c.downBecause = nil, &weir.Error{Code: weir.Unavailable, Reason: "the store is closed"}
	c.closed = true
	c.mu.Unlock()
	c.end()
	if native != nil {
		native.Close()
	}
	c.reconnecting.Wait()
	return nil
}

// nativeResult is what a native call returned.
type nativeResult[R any] struct {
	result R
	err    error
}

// call makes a native call and waits for it no longer than the context lasts: see [Ledger] for what
// it was given.
func call[R any](ctx context.Context, c *client, do func(tb.Client) (R, error)) (R, error) {
	var none R
	if err := ctx.Err(); err != nil {
		return none, unsentError{err}
	}
	native, err := c.acquire()
	if err != nil {
		return none, unsentError{err}
	}
	if ctx.Done() == nil {
		result, err := do(native)
		<-c.inFlight
		return result, c.classify(native, err)
	}
	done := make(chan nativeResult[R], 1) // nobody may be waiting
	go func() {
		result, err := do(native)
		<-c.inFlight
		done <- nativeResult[R]{result, c.classify(native, err)}
	}()
	select {
	case a := <-done:
		return a.result, a.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// acquire returns the native client for one call, which must free its place among the flights.
func (c *client) acquire() (tb.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.native == nil {
		return nil, c.downBecause
	}
	select {
	case c.inFlight <- struct{}{}:
		return c.native, nil
	default:
		return nil, &weir.Error{
			Code:   weir.Unavailable,
			Reason: fmt.Sprintf("TigerBeetle does not answer, and %d calls are waiting for it", cap(c.inFlight)),
		}
	}
}

// classify says what a native error means, and lets a client go that has been shut out.
func (c *client) classify(native tb.Client, err error) error {
	if err == nil || errors.Is(err, tb.ErrTooMuchData) {
		return err
	}
	explained := explain(err)
	if shutOut(err) {
		c.dropNative(native, explained)
	}
	return explained
}

// shutOut is true for an error after which a native client is of no use.
func shutOut(err error) bool {
	return errors.Is(err, tb.ErrClientEvicted) || errors.Is(err, tb.ErrClientClosed) ||
		errors.Is(err, tb.ErrClientReleaseTooHigh) || errors.Is(err, tb.ErrClientReleaseTooLow)
}

// explain says what a native error means and what to do about it.
func explain(err error) error {
	e := &weir.Error{Code: weir.Unavailable, Reason: "TigerBeetle's client failed: " + err.Error(), Err: err}
	switch {
	case errors.Is(err, tb.ErrClientReleaseTooHigh):
		e.Reason = "the TigerBeetle client " + clientRelease + " is newer than the server: upgrade the server"
	case errors.Is(err, tb.ErrClientReleaseTooLow):
		e.Reason = "the server takes no TigerBeetle client as old as " + clientRelease + ": upgrade weir"
	case errors.Is(err, tb.ErrClientEvicted):
		e.Reason = "the cluster has ended this client's session, as it does with the oldest one when there " +
			"are too many; another one is being begun"
	case errors.Is(err, tb.ErrClientClosed):
		e.Reason = "the session with the cluster has ended; another one is being begun"
	case errors.Is(err, tb.ErrSystemResources):
		e.Reason = "TigerBeetle's client could not be started: it needs io_uring, which this system lacks " +
			"or forbids, or the system is out of memory or of files"
	case errors.Is(err, tb.ErrInvalidAddress):
		e.Code, e.Field, e.Reason = weir.Invalid, "store.addresses", "are not what TigerBeetle takes"
	case errors.Is(err, tb.ErrAddressLimitExceeded):
		e.Code, e.Field, e.Reason = weir.Invalid, "store.addresses", "are more than a cluster can have"
	}
	return e
}

// clientRelease is that of TigerBeetle's client.
const clientRelease = "0.17.9"
