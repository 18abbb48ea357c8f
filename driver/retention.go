package driver

import (
	"context"
	"time"

	"github.com/weir-limiter/weir"
)

// RetentionEditor is a store whose system configuration says for how long the store keeps usage,
// the audit and idle buckets. The limiter finds it by type assertion; on other stores the settings
// are refused with code [weir.Unsupported].
//
// Atomicity: a change of several settings is applied as a whole or not at all. Consistency: a read
// sees every change that ended before it began. Both may be called concurrently and repeated.
type RetentionEditor interface {
	// ReadRetention returns the settings that are configured; those that are not are nil.
	ReadRetention(ctx context.Context) (*weir.Retention, error)
	// WriteRetention changes the settings that r has. The limiter has checked that there is at least
	// one, and that their values are valid. The rest of the configuration stays.
	WriteRetention(ctx context.Context, now time.Time, r *weir.Retention) error
}
