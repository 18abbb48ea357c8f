package client

import (
	"sync/atomic"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/aws/smithy-go/middleware"
)

// clockTolerance is the offset up to which clocks count as equal.
const clockTolerance = 2 * time.Second

// Clock estimates the offset between the process's clock and the table's. An answer's Date has
// whole seconds, so one answer bounds the offset only to about a second; many answers together
// narrow it down.
type Clock struct{ Known atomic.Pointer[offsetBounds] }

// offsetBounds bound the offset, which is the duration to add to the process's clock.
type offsetBounds struct{ least, most time.Duration }

// observe records the Date of one answer. It takes no lock and, once the bounds are narrow, writes
// nothing.
func (c *Clock) observe(before, after time.Time, metadata middleware.Metadata) {
	if date, ok := dateOf(metadata); ok {
		c.narrow(offsetBounds{least: date.Sub(after), most: date.Add(time.Second).Sub(before)})
	}
}

// dateOf returns the time at which an answer was made. The Date of a cached answer is of no use.
func dateOf(metadata middleware.Metadata) (time.Time, bool) {
	r, ok := awsmiddleware.GetRawResponse(metadata).(*smithyhttp.Response)
	if ok && r.Header.Get("Age") != "" {
		return time.Time{}, false
	}
	date, ok := awsmiddleware.GetServerTime(metadata)
	return date, ok && !date.IsZero()
}

// narrow applies the bounds of one answer. If they do not overlap with the known bounds, one of the
// clocks was set or has drifted, so that the known bounds no longer hold and are dropped.
func (c *Clock) narrow(b offsetBounds) {
	for {
		old := c.Known.Load()
		next := b
		if old != nil {
			next = offsetBounds{max(old.least, b.least), min(old.most, b.most)}
			if next.least > next.most {
				next = b
			}
			if next == *old {
				return
			}
		}
		if c.Known.CompareAndSwap(old, &next) {
			return
		}
	}
}

// Offset returns the middle of the bounds, or 0 unless all values within them exceed the tolerance.
func (c *Clock) Offset() time.Duration {
	b := c.Known.Load()
	if b == nil || b.least <= clockTolerance && b.most >= -clockTolerance {
		return 0
	}
	return b.least + (b.most-b.least)/2
}
