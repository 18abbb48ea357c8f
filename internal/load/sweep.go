package load

import (
	"context"
	"errors"
	"sync"

	"github.com/weir-limiter/weir"
)

// sweep cancels the leases whose settlement failed, and those that a reservation without an answer
// may have made. What is not known to have ended by then is left.
func (l *loop) sweep(ctx context.Context) {
	r := l.record
	r.mu.Lock()
	unsure := r.doubtful
	r.doubtful = nil
	r.mu.Unlock()
	if len(unsure) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	leases := make(chan doubtful)
	var sweepers sync.WaitGroup
	for range min(l.options.Concurrency, len(unsure)) {
		sweepers.Go(func() {
			for lease := range leases {
				_, err := l.service.Cancel(ctx, lease.id)
				r.swept(lease, err)
			}
		})
	}
	for _, lease := range unsure {
		leases <- lease
	}
	close(leases)
	sweepers.Wait()
}

// swept takes the answer to a cancellation at the end.
func (r *recorder) swept(lease doubtful, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil || errors.Is(err, weir.Ended) || errors.Is(err, weir.Conflict):
		r.settled++
		if !lease.taken { // so it was made
			r.taken++
		}
	case errors.Is(err, weir.UnknownLease): // it was never made, or has expired
	default:
		r.left++
	}
}
