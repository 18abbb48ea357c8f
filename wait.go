package weir

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// WaitOptions tune [Wait]. Nil means all defaults.
type WaitOptions struct {
	// MaxPause is the longest pause between attempts. A pause is the retry-after of the last denial
	// where that is shorter; others may settle early, so it is worth asking before. Default: one
	// second.
	MaxPause time.Duration
}

// firstPause is what [Wait] begins with; each pause after it is up to twice as long.
const firstPause = 25 * time.Millisecond

// Wait reserves, and after a denial, or an error with code [Overloaded], tries again until the
// request fits or the context ends. Each attempt has a lease ID of its own, so the request must not
// bring one. Other errors are returned at once; when the context ends, its error is joined with
// that of the last attempt.
func Wait(ctx context.Context, s Service, r *Request, o *WaitOptions) (*Lease, error) {
	if r != nil && !r.LeaseID.IsZero() {
		return nil, invalid("lease_id", r.LeaseID, "cannot be brought: every attempt needs its own")
	}
	longest := time.Second
	if o != nil && o.MaxPause > 0 {
		longest = o.MaxPause
	}
	for pause := min(firstPause, longest); ; pause = min(2*pause, longest) {
		lease, err := s.Reserve(ctx, r)
		after, again := retryAfter(err)
		if !again {
			return lease, err
		}
		// A little more than told, and not the same for all: those who were denied together must
		// not come back together.
		next := pause
		if after > 0 {
			next = min(after, pause)
		}
		timer := time.NewTimer(next + time.Duration(rand.Int64N(int64(next)/8+1)))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
		if ctx.Err() != nil {
			return nil, errors.Join(ctx.Err(), err)
		}
	}
}

// retryAfter reports whether a failed reservation is worth another attempt, because nothing was
// reserved and time alone may help, and after how long.
func retryAfter(err error) (after time.Duration, again bool) {
	if denied, ok := errors.AsType[*DeniedError](err); ok {
		return denied.RetryAfter, true
	}
	if e, ok := errors.AsType[*Error](err); ok && e.Code == Overloaded {
		return e.RetryAfter, true
	}
	return 0, false
}
