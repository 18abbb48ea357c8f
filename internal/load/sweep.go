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
	doubtful := r.doubtful
	r.doubtful = nil
	r.mu.Unlock()
	if len(doubtful) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	leases := make(chan weir.LeaseID)
	var sweepers sync.WaitGroup
	for range min(l.options.Concurrency, len(doubtful)) {
		sweepers.Go(func() {
			for id := range leases {
				_, err := l.service.Cancel(ctx, id)
				r.swept(err)
			}
		})
	}
	for _, id := range doubtful {
		leases <- id
	}
	close(leases)
	sweepers.Wait()
}

// swept takes the answer to a cancellation at the end.
func (r *recorder) swept(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil || errors.Is(err, weir.Ended) || errors.Is(err, weir.Conflict):
		r.settled++
	case errors.Is(err, weir.UnknownLease): // it was never made, or has expired
	default:
		r.left++
	}
}
