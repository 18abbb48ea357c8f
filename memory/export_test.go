package memory

import (
	"context"
	"time"

	"github.com/weir-limiter/weir"
)

// Try plans a reservation and asks a store. The outcome says what the lease stands for then.
func Try(b weir.Backend, now time.Time, r *weir.Reservation) (*weir.Outcome, error) {
	p, err := r.Plan(context.Background())
	if err != nil {
		return nil, err
	}
	return Take(b, now, p)
}

// Take asks a store for what was planned.
func Take(b weir.Backend, now time.Time, p *weir.Plan) (*weir.Outcome, error) {
	out := p.Outcome()
	if err := b.Reserve(context.Background(), now, p, out); err != nil {
		return nil, err
	}
	if !out.Denied && !out.Replay {
		out.Holdings = p.Holdings(out)
	}
	return out, nil
}
