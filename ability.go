package weir

import (
	"context"
	"time"
)

// The interfaces below are further abilities. The limiter discovers them on its backend.

// ConfigReader is a backend that knows which limits are configured.
type ConfigReader interface {
	// ReadConfig returns all that is configured for a subject, in one read. Nothing configured is
	// a zero Config, not an error.
	ReadConfig(ctx context.Context, s Subject) (*Config, error)
}

// Config is what is configured for one subject, level by level.
type Config struct {
	// Levels has the stored levels that have limits, the strongest first.
	Levels []LevelLimits
	// Parent and Cascade are the entity's; Known is whether the entity was declared.
	Parent  string
	Cascade bool
	Known   bool
	// OnUnavailable is the system's policy; empty if none is set.
	OnUnavailable Policy
}

// ConfigWriter is a backend whose whole configuration can be replaced at once.
type ConfigWriter interface {
	// WriteConfig makes d the configuration. d has been validated and is not changed afterwards.
	WriteConfig(ctx context.Context, now time.Time, d *Definitions) error
}

// ResourceLister is a backend that can say on which resources an entity has something in use or
// limits of its own.
type ResourceLister interface {
	// Resources returns the names in order.
	Resources(ctx context.Context, now time.Time, entity string) ([]string, error)
}

// LeaseRecoverer is a backend that keeps leases beyond the process. It answers a Reserve whose ID
// it knows with Outcome.Replay, or with [Conflict] or [Ended].
type LeaseRecoverer interface {
	// RecoverLease returns what is known of a lease, or nil if it is unknown or forgotten.
	RecoverLease(ctx context.Context, now time.Time, id LeaseID) (*LeaseRecord, error)
	// Recovered is asked once, when a limiter is opened. It is true where the store knows the leases
	// of those before; then IDs up to the newest that was forgotten early are refused (zero if none
	// was). Where it is false, IDs older than the opening are.
	Recovered() (early time.Time, ok bool)
}

// LeaseState is where a lease is in its life.
type LeaseState string

// The states of a lease.
const (
	LeaseLive      LeaseState = "live"
	LeaseCompleted LeaseState = "completed"
	LeaseCancelled LeaseState = "cancelled"
	LeaseExpired   LeaseState = "expired"
)

// LeaseRecord is all that must be known to go on with a lease in another process.
type LeaseRecord struct {
	ID          LeaseID
	State       LeaseState
	Fingerprint uint64
	// At is when it was reserved.
	At time.Time
	// Expires is when a live lease ends by itself.
	Expires time.Time
	// Charges is how many the request had.
	Charges int
	// Holdings are what a live lease stands for.
	Holdings []Holding
	// Limits is the answer that the reservation gave.
	Limits []LimitStatus
	// Seq is that of the last adjust; SeqAt is when it was applied.
	Seq   int64
	SeqAt time.Time
	// EndedAt and EndFingerprint are when a lease ended, and what the settlement named.
	EndedAt        time.Time
	EndFingerprint uint64
}
