package limiter

import (
	"context"
	"time"

	"github.com/weir-limiter/weir"
)

// Observer is told of every call to a [Limiter], after it. It must be quick and safe to call at
// once; it is where metrics and logs attach.
type Observer interface {
	Observe(ctx context.Context, e Event)
}

// Event is one call.
type Event struct {
	Verb    weir.Verb
	LeaseID weir.LeaseID
	// At is when the call began, by the limiter's clock.
	At time.Time
	// Took is how long it lasted, by the same clock.
	Took time.Duration
	// Limits has the status of every limit that a reservation judged; nil for other verbs.
	Limits []weir.LimitStatus
	// Replay is true where the call had been answered before.
	Replay bool
	// Degraded is true where the store was not asked, or did not answer and the policy is Allow.
	Degraded bool
	// RefundInDoubt is that of the receipt, see [weir.Receipt].
	RefundInDoubt bool
	// Err is what the call returned: nil, a [*weir.DeniedError] or an [*weir.Error].
	Err error
}
