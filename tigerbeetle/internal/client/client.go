//go:build cgo

package client

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"net"
	"sync"
	"sync/atomic"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
)

const (
	// maxEvents is how many events a message of TigerBeetle holds.
	maxEvents = 8189
	// maxInFlight is how many calls may be in flight, including those whose callers have left.
	maxInFlight = 10_000
	// SessionTimeout is how long a cluster has to begin a session, unless the caller sets a
	// deadline.
	SessionTimeout = 5 * time.Second
	// minPause is the pause before a lost client is made again; it doubles up to mostPause.
	minPause = 100 * time.Millisecond
	maxPause = 5 * time.Second
)

// Client is the store's ledger on a cluster: TigerBeetle's own client, which batches concurrent
// calls, with three additions. A call ends with its context, while what it asked for may still be
// carried out; calls whose callers have left are counted and bounded; and a client that the
// cluster has shut out is replaced.
type Client struct {
	options  options
	inFlight chan struct{}
	// events is how many events a call holds, lookups how many IDs.
	events, lookups atomic.Int64

	mu          sync.Mutex
	native      tb.Client // nil while there is none
	downBecause error     // why there is none
	closed      bool
	// reconnectLater replaces the client; end stops that.
	reconnectLater func()
	end            context.CancelFunc
	reconnecting   sync.WaitGroup
}

// options tune a client.
type options struct {
	// dial makes a native client, which need not have a session yet.
	dial func(ctx context.Context) (tb.Client, error)
	// unreachable returns the error for a cluster that did not answer.
	unreachable func(cause error) error
	// onError is called with why a client was lost, and why it could not be replaced.
	onError     func(error)
	maxInFlight int
}

// Open returns a client that has a session with the cluster whose replicas have the given
// addresses. A cluster of nil has the ID 0. OnError may be nil; it is told why a session was lost,
// and why it could not be replaced.
func Open(
	ctx context.Context, addresses []string, cluster *big.Int, onError func(error),
) (*Client, error) {
	if err := checkAddresses(addresses); err != nil {
		return nil, err
	}
	cluster, err := clusterID(cluster)
	if err != nil {
		return nil, err
	}
	if onError == nil {
		onError = func(error) {}
	}
	return newClient(ctx, optionsFor(addresses, cluster, onError))
}

func optionsFor(addresses []string, cluster *big.Int, onError func(error)) options {
	return options{
		dial: func(ctx context.Context) (tb.Client, error) {
			resolved, err := resolve(ctx, addresses, net.DefaultResolver.LookupNetIP)
			if err != nil {
				return nil, err
			}
			native, err := tb.NewClient(tb.BigIntToUint128(cluster), resolved)
			if err != nil {
				return nil, explain(err)
			}
			return native, nil
		},
		unreachable: func(cause error) error { return unreachableError(addresses, cluster, cause) },
		onError:     onError,
		maxInFlight: maxInFlight,
	}
}

// newClient returns a client that has a session.
func newClient(ctx context.Context, o options) (*Client, error) {
	c := &Client{options: o, inFlight: make(chan struct{}, o.maxInFlight)}
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
func (c *Client) MaxEvents() int { return int(c.events.Load()) }

// Close cancels what is going on.
func (c *Client) Close() error {
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

// call makes a native call, for which it waits until the context ends. The native client may go on
// reading what the call was given.
func call[R any](ctx context.Context, c *Client, do func(tb.Client) (R, error)) (R, error) {
	var none R
	if err := ctx.Err(); err != nil {
		return none, unsentError{err}
	}
	native, err := c.acquire()
	if err != nil {
		return none, unsentError{err}
	}
	return Await(ctx, func() (R, error) {
		result, err := do(native)
		<-c.inFlight
		return result, c.classify(native, err)
	})
}

// Await returns what do returns, or an error once the context ends; do goes on then.
func Await[R any](ctx context.Context, do func() (R, error)) (R, error) {
	if ctx.Done() == nil {
		return do()
	}
	type answer struct {
		result R
		err    error
	}
	done := make(chan answer, 1) // the caller may have left
	go func() {
		result, err := do()
		done <- answer{result, err}
	}()
	select {
	case a := <-done:
		return a.result, a.err
	case <-ctx.Done():
		var none R
		return none, Unavailable(ctx.Err())
	}
}

// acquire returns the native client for one call, which must receive from inFlight when it ends.
func (c *Client) acquire() (tb.Client, error) {
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

// classify says what a native error means, and drops a client that has been shut out.
func (c *Client) classify(native tb.Client, err error) error {
	if err == nil || errors.Is(err, tb.ErrTooMuchData) {
		return err
	}
	explained := explain(err)
	if shutOut(err) {
		c.dropNative(native, explained)
	}
	return explained
}

// shutOut reports whether a native client is useless after an error.
func shutOut(err error) bool {
	return errors.Is(err, tb.ErrClientEvicted) || errors.Is(err, tb.ErrClientClosed) ||
		errors.Is(err, tb.ErrClientReleaseTooHigh) || errors.Is(err, tb.ErrClientReleaseTooLow)
}
