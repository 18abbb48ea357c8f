package client

import (
	"sync/atomic"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/aws/smithy-go/middleware"
)

// clockTolerance is the offset that nobody needs to know of: the clocks of sound machines are
// closer.
const clockTolerance = 2 * time.Second

// Clock compares the process's clock with that of the answers. An answer's Date has whole seconds,
// so each says only between which two bounds the offset lies; what all of them say together is
// narrow.
type Clock struct{ Known atomic.Pointer[offsetBounds] }

// offsetBounds are between which the offset lies: what must be added to the process's clock.
type offsetBounds struct{ least, most time.Duration }

// observe takes what one answer says. It is free of locks and, once the bounds are narrow, of
// writes.
func (c *Clock) observe(before, after time.Time, metadata middleware.Metadata) {
	if date, ok := dateOf(metadata); ok {
		c.narrow(offsetBounds{least: date.Sub(after), most: date.Add(time.Second).Sub(before)})
	}
}

// dateOf returns when an answer was made. One out of a cache says nothing of now.
func dateOf(metadata middleware.Metadata) (time.Time, bool) {
	r, ok := awsmiddleware.GetRawResponse(metadata).(*smithyhttp.Response)
	if ok && r.Header.Get("Age") != "" {
		return time.Time{}, false
	}
	date, ok := awsmiddleware.GetServerTime(metadata)
	return date, ok && !date.IsZero()
}

// narrow brings in the bounds of one answer. Where they do not meet those known, one of the clocks
// was set or has drifted, and what was known is no longer true.
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

// Offset is the middle of the bounds, or 0 unless they are certain of more than the tolerance.
func (c *Clock) Offset() time.Duration {
	b := c.Known.Load()
	if b == nil || b.least <= clockTolerance && b.most >= -clockTolerance {
		return 0
	}
	return b.least + (b.most-b.least)/2
}
