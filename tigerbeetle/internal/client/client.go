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
	// SessionTimeout is how long to wait for a session with the cluster if the caller sets no
	// deadline.
	SessionTimeout = 5 * time.Second
	// minPause is the pause before a lost client is replaced; it doubles up to maxPause.
	minPause = 100 * time.Millisecond
	maxPause = 5 * time.Second
)

// Client implements the store's ledger with TigerBeetle's own client, which batches concurrent
// calls. It adds three things. A call ends with its context, although the cluster may still carry
// it out. Calls in flight are counted and bounded, including those whose callers have left. And a
// client that the cluster has shut out is replaced.
type Client struct {
	options  options
	inFlight chan struct{}
	// events is how many events a call may have, and lookups how many IDs.
	events, lookups atomic.Int64

	// mu guards the fields below. A call locks it to get the native client, and not while it waits
	// for the answer.
	mu          sync.Mutex
	native      tb.Client // nil while there is none
	downBecause error     // why native is nil
	closed      bool
	// reconnectLater replaces the native client; end stops it.
	reconnectLater func()
	end            context.CancelFunc
	reconnecting   sync.WaitGroup
}

// options configure a client.
type options struct {
	// dial returns a native client, which need not have a session yet.
	dial func(ctx context.Context) (tb.Client, error)
	// unreachable returns the error for a cluster that did not answer.
	unreachable func(cause error) error
	// onError is called with the reason why a client was lost or could not be replaced.
	onError     func(error)
	maxInFlight int
}

// Open returns a client that has a session with the cluster whose replicas have the given
// addresses. If cluster is nil, the ID is 0. onError may be nil; it is called with the reason why a
// session was lost or could not be replaced.
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

// MaxEvents returns how many events fit one call.
func (c *Client) MaxEvents() int { return int(c.events.Load()) }

// Close closes the native client, which ends the calls in flight, and stops reconnecting.
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

// call makes a native call and waits for its result or the end of the context. If the context ends
// first, the native client may still read the call's arguments.
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

// Await returns the result of do, or an error if the context ends first; do then continues.
func Await[R any](ctx context.Context, do func() (R, error)) (R, error) {
	if ctx.Done() == nil {
		return do()
	}
	type answer struct {
		result R
		err    error
	}
	done := make(chan answer, 1) // buffered, because the caller may have left
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

// acquire returns the native client for one call. The call must receive from inFlight when it ends.
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

// classify explains a native error, and drops the native client if the cluster has shut it out.
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

// shutOut reports whether an error means that the native client cannot be used any more.
func shutOut(err error) bool {
	return errors.Is(err, tb.ErrClientEvicted) || errors.Is(err, tb.ErrClientClosed) ||
		errors.Is(err, tb.ErrClientReleaseTooHigh) || errors.Is(err, tb.ErrClientReleaseTooLow)
}
