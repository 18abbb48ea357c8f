package model

import (
	"time"

	"github.com/weir-limiter/weir"
)

// noteReturns notes for how long a lease that ends has held slots (4.4).
func (m *Model) noteReturns(e *lease, now int64) {
	for _, h := range e.holdings {
		if h.Limit.Kind == weir.Concurrency && cost(h.Parts).Sign() > 0 {
			m.held[m.key(h.Subject, &h.Limit)] = now - e.at
		}
	}
}

// likely returns after how long slots are likely to have returned, never after the wait that is
// certain; 0 if none were seen to return (4.4). The contract leaves the estimate open: the model
// takes the time between two returns if all slots are held for as long as the last ones.
func (m *Model) likely(v *judgement) time.Duration {
	held, seen := m.held[m.key(v.take.Subject, &v.take.Limit)]
	if v.status.Kind != weir.Concurrency || !seen {
		return 0
	}
	wait := time.Duration(max(1, held/max(1, v.status.Capacity))) * time.Millisecond
	return min(wait, v.status.RetryAfter)
}
