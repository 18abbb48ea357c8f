//go:build cgo

package tigerbeetle

import (
	"errors"
	"sync/atomic"

	tb "github.com/tigerbeetle/tigerbeetle-go"
)

// minEvents is how many events a call holds on a server for development, which takes the least.
const minEvents = 253

// lowerMaxEvents learns that so many events do not fit one call after all.
func (c *client) lowerMaxEvents(events int) {
	if events <= minEvents {
		lowerTo(&c.events, events-1)
		return
	}
	lowerTo(&c.events, max(events/2, minEvents))
}

// lowerTo lowers a number.
func lowerTo(n *atomic.Int64, most int) {
	for {
		old := n.Load()
		if old <= int64(most) || n.CompareAndSwap(old, int64(max(most, 1))) {
			return
		}
	}
}

// oversize says of a call that was not sent because it is too large what the limiter's caller can
// do.
func oversize(err error, events int, c *client) error {
	if errors.Is(err, tb.ErrTooMuchData) {
		return tooLarge(events, c.MaxEvents())
	}
	return err
}
