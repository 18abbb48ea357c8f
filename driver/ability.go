package driver

import (
	"context"
	"iter"
	"time"

	"github.com/weir-limiter/weir"
)

// The interfaces below are further abilities. The limiter discovers them on its store.

// ConfigReader is a store that knows which limits are configured.
type ConfigReader interface {
	// ReadConfig returns all that is configured for a subject, in one read. Nothing configured is a
	// zero Config, not an error. Parts of the subject may be empty: then the levels that need them
	// have nothing, and the resource may be [weir.DefaultResource]. A consistent read must see
	// every write that ended before it began; a store on which all reads do may ignore the
	// parameter.
	ReadConfig(ctx context.Context, of weir.Subject, consistent bool) (*weir.Config, error)
}

// Declarer is a store that can say at once, without I/O, which entities its configuration
// declares. All others have the same limits on a resource, so that the limiter keeps one
// resolution for them.
type Declarer interface {
	// Declared reports whether an entity is declared now.
	Declared(entity string) bool
}

// ConfigWriter is a store whose whole configuration can be replaced at once.
type ConfigWriter interface {
	// WriteConfig makes d the configuration. d has been validated and is not changed afterwards.
	WriteConfig(ctx context.Context, now time.Time, d *weir.Definitions) error
}

// ConfigEditor is a store whose configuration can be changed a piece at a time. Each change
// is whole or nothing, and what the limiter hands over has been validated on its own; what
// needs the rest of the configuration (parents that exist, cycles, how deep a cascade goes) the
// store checks: [weir.Definitions.Normalize] does for one that holds it in process.
type ConfigEditor interface {
	// WriteLimits makes limits the only ones at a place, see [limiter.Limiter.SetLimits]; none
	// removes them, and declares no entity.
	WriteLimits(ctx context.Context, now time.Time, at weir.Subject, limits []weir.Limit) error
	// WritePolicy makes p the system's policy.
	WritePolicy(ctx context.Context, now time.Time, p weir.Policy) error
	// WriteEntity declares an entity or changes its parent and cascade; its limits stay.
	WriteEntity(ctx context.Context, now time.Time, name, parent string, cascade bool) error
	// DeleteEntity removes an entity and its limits: [weir.NotFound] where it was not declared,
	// [weir.Conflict] where another one has it as parent.
	DeleteEntity(ctx context.Context, now time.Time, name string) error
}

// EntityReader is a store that knows its entities.
type EntityReader interface {
	// ReadEntity returns what is configured for an entity, or nil if it is not declared.
	ReadEntity(ctx context.Context, name string) (*weir.EntityDefinition, error)
	// ListEntities returns a page of names in order. q has been checked; its Size is above zero.
	ListEntities(ctx context.Context, q *weir.EntityQuery) (*weir.EntityPage, error)
}

// SubjectLister is a store that can say where something is in use.
type SubjectLister interface {
	// Resources returns, in order, the resources on which an entity has something in use or
	// limits of its own.
	Resources(ctx context.Context, now time.Time, entity string) ([]string, error)
	// Entities returns, in order, the entities that have something in use on a resource or
	// limits of their own on it.
	Entities(ctx context.Context, now time.Time, resource string) ([]string, error)
}

// LeaseRecoverer is a store that keeps leases beyond the process. It answers a Reserve whose ID
// it knows with Outcome.Replay, or with [weir.Conflict] or [weir.Ended].
type LeaseRecoverer interface {
	// RecoverLease returns what is known of a lease, or nil if it is unknown or forgotten. The
	// limiter itself forgets a lease that ended longer ago than it remembers. The record is the
	// limiter's to change, with its holdings, their parts and their pieces.
	RecoverLease(ctx context.Context, now time.Time, id weir.LeaseID) (*LeaseRecord, error)
	// Recovered is asked once, when a limiter is opened. It is true where the store knows the
	// leases of those before; then IDs up to the newest that was forgotten early are refused
	// (zero if none was). Where it is false, IDs older than the opening are.
	Recovered() (early time.Time, ok bool)
}

// LeaseVoider is a [LeaseRecoverer] that also remembers lease IDs that were cancelled before
// they were reserved. The limiter calls it when it is asked to cancel a lease that neither it
// nor the store knows. A store that keeps leases and is no LeaseVoider leaves the ID to the
// process that was asked.
type LeaseVoider interface {
	// VoidLease records that id has ended without having been reserved: from then on
	// [Store.Reserve] refuses it with [weir.Ended], in every process, for as long as the store
	// remembers an ended lease. RecoverLease goes on returning nil for it. Repeating the call
	// changes nothing. exists is true if the store has a lease with this ID, live or ended;
	// then nothing was recorded, and the limiter recovers and cancels the lease. After an error
	// the outcome is unknown, and the call may be repeated.
	VoidLease(ctx context.Context, now time.Time, id weir.LeaseID) (exists bool, err error)
	// AdoptLease says that a caller is about to be told of a lease without a Reserve, because the
	// request with this fingerprint is repeated and cannot be planned any more. A store that gives
	// back what it reserved for callers who have left does not give it back after that. A lease
	// that is unknown, has ended, or is of another request is no error; an ID that was voided is
	// [weir.Ended], as in Reserve.
	AdoptLease(ctx context.Context, now time.Time, id weir.LeaseID, fingerprint uint64) error
}

// UnplannedReserver is a store whose own records say by which limits to judge, so that it can
// take a reservation while the limiter still reads the configuration. The limiter asks it where the
// configuration of a subject is not at hand, for the first of the calls that need it, and compares
// afterwards: if the takes of its own plan are the same, the outcome stands; otherwise it gives
// back what was taken and calls [Store.Reserve].
type UnplannedReserver interface {
	// ReserveUnplanned takes the costs of u on its subject, and on the parent that the records of
	// the subject name, by the definitions that the records have. All is taken or nothing, as in
	// Reserve. It returns the plan by which it took, with a take for each limit that was charged
	// and the limits that it knows of each subject, and the outcome of that plan. The limiter knows
	// better which level each limit is from.
	//
	// A nil plan means that nothing was taken: a limit has too little, the records do not say
	// enough, or the store knows that they are out of date. What had been taken of a part is then
	// given back by the store, with its next writes at the latest. The limiter then calls Reserve,
	// which denies if it must. An error is as in Reserve, but never a
	// [*StaleError], and ends the call.
	//
	// If the plan is not the limiter's, or the request turns out to be a mistake, or the caller has
	// left, the limiter gives the whole back by an Update with VerbCancel and [Update.Unplanned],
	// once. If that fails, the store counts what is in doubt; it is never given back twice.
	ReserveUnplanned(ctx context.Context, now time.Time, u *Unplanned) (*Plan, *Outcome, error)
}

// Unplanned is a request with one charge and named costs, whose limits have not been resolved. It
// brings no limits. It is the limiter's again after the return.
type Unplanned struct {
	// ID, New, Fingerprint and Keys are as in a [Plan].
	ID          weir.LeaseID
	New         bool
	Fingerprint uint64
	Keys        []uint64
	// Subject is what is charged.
	Subject weir.Subject
	// Costs are in units, by the name of the limit; never empty.
	Costs weir.Costs
	// Lifetime is how long the lease lives at least.
	Lifetime time.Duration
	// Memory and MemorySize are as in a [Plan].
	Memory     time.Duration
	MemorySize int
}

// Refuser is a store that may refuse every reservation for a while.
type Refuser interface {
	// RefusesReserve returns the error with which Reserve would refuse any reservation now, without
	// I/O; nil if it would not. The limiter asks after a request that it could not plan, because
	// the configuration at hand may be the reason for both.
	RefusesReserve() error
}

// ClockCorrector is a store that can tell how far the process's clock is off that of the store.
type ClockCorrector interface {
	// ClockOffset is what must be added to the process's clock; 0 where it is right, as far as is
	// known. The limiter adds it whenever it reads its clock, and never to an instant that it was
	// given.
	ClockOffset() time.Duration
}

// LeaseState is where a lease is in its life.
type LeaseState string

// The states of a lease.
const (
	LeaseLive      LeaseState = "live"
	LeaseCompleted LeaseState = "completed"
	LeaseCancelled LeaseState = "cancelled"
	LeaseExpired   LeaseState = "expired"
	// LeaseVoided is the state of an ID that was cancelled before it was reserved; see
	// [LeaseVoider].
	LeaseVoided LeaseState = "voided"
)

// LeaseRecord is all that must be known to go on with a lease in another process.
type LeaseRecord struct {
	ID          weir.LeaseID
	State       LeaseState
	Fingerprint uint64
	// At is when it was reserved.
	At time.Time
	// Expires is when a live lease ends by itself.
	Expires time.Time
	// Charges is how many the request had.
	Charges int
	// Keys are those of the reservation; nil if it had none, or if the lease has ended.
	Keys []uint64
	// Holdings are what a live lease stands for.
	Holdings []Holding
	// Limits is the answer that the reservation gave.
	Limits []weir.LimitStatus
	// Seq is that of the last adjust; SeqAt is when it was applied.
	Seq   int64
	SeqAt time.Time
	// EndedAt and EndFingerprint are when a lease ended, and what the settlement named.
	EndedAt        time.Time
	EndFingerprint uint64
}

// RecordReader is a store that keeps records of who changed its configuration and of how much was
// used. Both lists are read a page at a time while they are ranged over, and end at the first
// error.
type RecordReader interface {
	// ReadAudit yields what [limiter.Limiter.Audit] does.
	ReadAudit(ctx context.Context, at weir.Subject, after string) iter.Seq2[weir.AuditEvent, error]
	// ReadUsage yields what [limiter.Limiter.Usage] does; q has been checked.
	ReadUsage(ctx context.Context, q weir.Usage) iter.Seq2[weir.Usage, error]
}
