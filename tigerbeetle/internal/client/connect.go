//go:build cgo

package client

import (
	"context"
	"errors"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"
)

// connect makes a native client and waits for its session.
func (c *Client) connect(ctx context.Context) (tb.Client, error) {
	native, err := c.options.dial(ctx)
	if err != nil {
		return nil, c.unreached(ctx, err)
	}
	greeted := make(chan error, 1) // buffered, because the caller may have left
	go func() { greeted <- c.waitSession(native) }()
	select {
	case err = <-greeted:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		native.Close()
		return nil, c.unreached(ctx, err)
	}
	return native, nil
}

// unreached returns the error for a client without a session.
func (c *Client) unreached(ctx context.Context, err error) error {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return c.options.unreachable(err)
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return Unavailable(err)
}

// waitSession waits for a session and determines how much a call holds. It also returns when the
// native client is closed.
func (c *Client) waitSession(native tb.Client) error {
	// The native client answers a Nop without the cluster, but not before it has a session.
	if err := native.Nop(); err != nil {
		return explain(err)
	}
	lookups, err := largestFitting(maxEvents, func(n int) (bool, error) {
		_, err := native.LookupTransfers(make([]tb.Uint128, n)) // no transfer has the ID 0
		if errors.Is(err, tb.ErrTooMuchData) {
			return false, nil
		}
		return true, err
	})
	if err != nil {
		return explain(err)
	}
	c.lookups.Store(int64(lookups))
	c.events.Store(int64(eventsForLookups(lookups)))
	return nil
}

// largestFitting returns the largest number from 1 to most that fits.
func largestFitting(most int, fits func(n int) (bool, error)) (int, error) {
	if ok, err := fits(most); ok || err != nil {
		return most, err
	}
	least := 1
	for most-least > 1 {
		middle := (least + most) / 2
		ok, err := fits(middle)
		if err != nil {
			return 0, err
		}
		if ok {
			least = middle
		} else {
			most = middle
		}
	}
	return least, nil
}

// eventsForLookups converts the number of lookups that a request holds to a number of events,
// because the size in bytes bounds both. A request ends with a trailer as large as one of its
// elements. A server that accepts as many lookups as fit an answer is assumed to have the default
// size.
func eventsForLookups(lookups int) int {
	const lookupBytes, eventBytes = 16, 128
	if lookups >= maxEvents {
		return maxEvents
	}
	return max((lookups+1)*lookupBytes/eventBytes-1, 1)
}

// dropNative drops a native client and starts to replace it.
func (c *Client) dropNative(native tb.Client, why error) {
	c.mu.Lock()
	if c.closed || c.native != native {
		c.mu.Unlock()
		return // already dropped
	}
	c.native, c.downBecause = nil, why
	c.reconnecting.Add(1)
	c.mu.Unlock()
	// Reconnect in another goroutine, because the call that noticed returns its error now.
	go func() {
		defer c.reconnecting.Done()
		native.Close()
		c.options.onError(why)
		c.reconnectLater()
	}()
}

// reconnect makes native clients until one has a session or the context ends. Only one reconnect
// runs at a time, because until it is done there is no client that could be lost.
func (c *Client) reconnect(ctx context.Context) {
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		bounded, cancel := context.WithTimeout(ctx, SessionTimeout)
		native, err := c.connect(bounded)
		cancel()
		if ctx.Err() != nil {
			if native != nil {
				native.Close()
			}
			return
		}
		if c.setNative(native, err) {
			return
		}
		c.options.onError(err)
	}
}

// setNative stores a new native client, or the reason why there is none. It reports whether
// reconnect is done.
func (c *Client) setNative(native tb.Client, err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		if !c.closed {
			c.downBecause = err
		}
		return c.closed
	}
	if c.closed {
		native.Close()
		return true
	}
	c.native, c.downBecause = native, nil
	return true
}
