package client

import (
	"sync/atomic"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/aws/smithy-go/middleware"
)

// clockTolerance is the offset that is not reported: the clocks of sound machines are closer.
const clockTolerance = 2 * time.Second

// Clock compares the process's clock with that of the answers. An answer's Date has whole seconds,
// so that each one only bounds the offset; all of them together bound it narrowly.
type Clock struct{ Known atomic.Pointer[offsetBounds] }

// offsetBounds bound the offset: what must be added to the process's clock.
type offsetBounds struct{ least, most time.Duration }

// observe takes what one answer says. It is free of locks and, once the bounds are narrow, of
// writes.
func (c *Clock) observe(before, after time.Time, metadata middleware.Metadata) {
	if date, ok := dateOf(metadata); ok {
		c.narrow(offsetBounds{least: date.Sub(after), most: date.Add(time.Second).Sub(before)})
	}
}

// dateOf returns when an answer was made. An answer from a cache says nothing about now.
func dateOf(metadata middleware.Metadata) (time.Time, bool) {
	r, ok := awsmiddleware.GetRawResponse(metadata).(*smithyhttp.Response)
	if ok && r.Header.Get("Age") != "" {
		return time.Time{}, false
	}
	date, ok := awsmiddleware.GetServerTime(metadata)
	return date, ok && !date.IsZero()
}

// narrow applies the bounds of one answer. If they do not meet the known ones, one of the clocks
// was set or has drifted, and the known bounds no longer hold.
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

// Offset returns the middle of the bounds, or 0 unless they exceed the tolerance for certain.
func (c *Clock) Offset() time.Duration {
	b := c.Known.Load()
	if b == nil || b.least <= clockTolerance && b.most >= -clockTolerance {
		return 0
	}
	return b.least + (b.most-b.least)/2
}
