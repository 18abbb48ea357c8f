// Package pace has the two waits of programs that make calls at planned times: for the time of a
// call, and for room among the requests in flight.
package pace

import (
	"context"
	"time"
)

// Until waits for a time. It returns false if ctx has ended, before or meanwhile.
func Until(ctx context.Context, at time.Time) bool {
	if left := time.Until(at); left > 0 {
		timer := time.NewTimer(left)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return ctx.Err() == nil
}

// Semaphore bounds the requests in flight. It has an element for each of them. A nil Semaphore has
// no bound.
type Semaphore chan struct{}

// NewSemaphore returns a semaphore for n requests.
func NewSemaphore(n int) Semaphore { return make(Semaphore, n) }

// Acquire waits until one more request may be in flight. It returns false if ctx ends first.
func (s Semaphore) Acquire(ctx context.Context) bool {
	if s == nil {
		return true
	}
	select {
	case s <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// Release ends a request.
func (s Semaphore) Release() {
	if s != nil {
		<-s
	}
}
