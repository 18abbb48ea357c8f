package driver

import (
	"context"
	"iter"
	"time"

	"github.com/weir-limiter/weir"
)

// The interfaces below are abilities that a store may have beyond [Store]. The limiter finds them
// by type assertion.

// ConfigReader is a store that has a configuration of limits.
type ConfigReader interface {
	// ReadConfig returns everything that is configured for a subject, in one read. If nothing is
	// configured it returns a zero Config, not an error. Parts of the subject may be empty; the
	// levels that need them then have no limits. The resource may be [weir.DefaultResource]. A
	// consistent read must see every write that ended before it began; a store whose reads always
	// do may ignore the parameter.
	ReadConfig(ctx context.Context, of weir.Subject, consistent bool) (*weir.Config, error)
}

// Declarer is a store that can tell without I/O which entities its configuration declares. All
// other entities have the same limits on a resource, so that the limiter keeps one resolution for
// all of them.
type Declarer interface {
	// Declared reports whether an entity is declared now.
	Declared(entity string) bool
}

// ConfigWriter is a store whose whole configuration can be replaced at once.
type ConfigWriter interface {
	// WriteConfig makes d the configuration. d is normalized, see
	// [weir.Definitions.Normalize], and does not change afterwards.
	WriteConfig(ctx context.Context, now time.Time, d *weir.Definitions) error
}

// ConfigEditor is a store whose configuration can be changed one part at a time. Each change is
// applied as a whole or not at all. The limiter validates a change on its own. The store checks
// what depends on the rest of the configuration: that parents exist, that there is no cycle, and
// how deep a cascade goes. A store that holds its configuration in the process can use
// [weir.Definitions.Normalize] for that.
type ConfigEditor interface {
	// WriteLimits makes limits the only ones at a place, see [limiter.Limiter.SetLimits]. An empty
	// list removes them and declares no entity.
	WriteLimits(ctx context.Context, now time.Time, at weir.Subject, limits []weir.Limit) error
	// WritePolicy sets the system's policy for when the store does not answer.
	WritePolicy(ctx context.Context, now time.Time, p weir.Policy) error
	// WriteEntity declares an entity or changes its parent and cascade. Its limits stay.
	WriteEntity(ctx context.Context, now time.Time, name, parent string, cascade bool) error
	// DeleteEntity removes an entity and its limits. The error has code [weir.NotFound] if the
	// entity is not declared, and [weir.Conflict] if it is the parent of another entity.
	DeleteEntity(ctx context.Context, now time.Time, name string) error
}

// EntityReader is a store that can list its entities.
type EntityReader interface {
	// ReadEntity returns what is configured for an entity, or nil if it is not declared.
	ReadEntity(ctx context.Context, name string) (*weir.EntityDefinition, error)
	// ListEntities returns a page of names, in order. The limiter has checked q, and its Size is
	// above zero.
	ListEntities(ctx context.Context, q *weir.EntityQuery) (*weir.EntityPage, error)
}

// SubjectLister is a store that can list the subjects that have something in use.
type SubjectLister interface {
	// Resources returns, in order, the resources on which an entity has something in use or limits
	// of its own.
	Resources(ctx context.Context, now time.Time, entity string) ([]string, error)
	// Entities returns, in order, the entities that have something in use on a resource or limits
	// of their own on it.
	Entities(ctx context.Context, now time.Time, resource string) ([]string, error)
}

// LeaseRecoverer is a store that keeps leases beyond the process. If its Reserve gets an ID that it
// knows, it answers with [Outcome.Replay], or with an error with code [weir.Conflict] or
// [weir.Ended].
type LeaseRecoverer interface {
	// RecoverLease returns what the store knows of a lease, or nil if the lease is unknown or
	// forgotten. It may return a lease that ended long ago: the limiter ignores one that ended
	// before its lease memory. The limiter may change the record with its holdings, their parts and
	// their pieces.
	RecoverLease(ctx context.Context, now time.Time, id weir.LeaseID) (*LeaseRecord, error)
	// Recovered is called once, when a limiter is opened. ok reports whether the store knows the
	// leases that earlier processes reserved. If it does, the limiter refuses only IDs up to early,
	// the newest ID that the store had to forget early (zero if there is none). If it does not, the
	// limiter refuses all IDs made before it was opened.
	Recovered() (early time.Time, ok bool)
}

// LeaseVoider is a [LeaseRecoverer] that also remembers lease IDs that were cancelled before they
// were reserved. The limiter calls it for a cancel of a lease that neither the limiter nor the
// store knows. If a store that keeps leases is not a LeaseVoider, only the process that got the
// cancel remembers the ID.
type LeaseVoider interface {
	// VoidLease records that id has ended without having been reserved. From then on
	// [Store.Reserve] refuses it with [weir.Ended], in every process, for as long as the store
	// remembers an ended lease. RecoverLease still returns nil for it. Repeating the call changes
	// nothing. exists reports that the store has a lease with this ID, live or ended: then nothing
	// was recorded, and the limiter recovers the lease and cancels it. After an error the outcome
	// is unknown, and the call may be repeated.
	VoidLease(ctx context.Context, now time.Time, id weir.LeaseID) (exists bool, err error)
	// AdoptLease announces that a caller is about to get a lease without a Reserve, because the
	// request with this fingerprint is repeated and can no longer be planned. A store that gives
	// back what it reserved for callers that have left must not give this lease back after the
	// call. It is not an error if the lease is unknown, has ended, or has another fingerprint. For
	// an ID that was voided the error has code [weir.Ended], as in Reserve.
	AdoptLease(ctx context.Context, now time.Time, id weir.LeaseID, fingerprint uint64) error
}

// UnplannedReserver is a store whose own records say by which limits to judge a reservation, so
// that it can reserve while the limiter still reads the configuration. The limiter calls it if the
// configuration of a subject is not in its cache, for the first of the calls that need it, and
// compares afterwards. If the takes of its own plan are the same, the outcome stands. Otherwise it
// gives back what was taken and calls [Store.Reserve].
type UnplannedReserver interface {
	// ReserveUnplanned takes the costs of u on its subject, and on the parent that the records of the
	// subject name, by the definitions in the records. It takes everything or nothing, as Reserve
	// does. It returns the plan that it followed, with a take for each limit that was charged and the
	// limits that it knows of each subject, and the outcome of that plan. The levels of the limits may
	// be empty: the limiter fills them in.
	//
	// A nil plan means that nothing was taken: a limit has too little left, the records do not say
	// enough, or the store knows that they are out of date. If a part had been taken already, the
	// store gives it back, with its next writes at the latest. The limiter then calls Reserve,
	// which decides whether to deny. An error is as in Reserve, but never a [*StaleError], and ends
	// the call.
	//
	// If the plan differs from the limiter's, if the request turns out to be a mistake, or if the
	// caller has left, the limiter gives everything back by one Update with VerbCancel and
	// [Update.Unplanned]. If that fails, the units may stay charged, and the store counts them as
	// in doubt; the limiter does not repeat the update, because that could give them back twice.
	ReserveUnplanned(ctx context.Context, now time.Time, u *Unplanned) (*Plan, *Outcome, error)
	// KeepUnplanned ends a reservation that ReserveUnplanned has taken and whose takes are those of the
	// limiter's plan p. It is the place to record the lease: out is the outcome of the
	// reservation for p, and KeepUnplanned changes it and returns errors as Reserve does, but never
	// denies. If it does not return an admitted outcome, it has given back what was taken.
	KeepUnplanned(ctx context.Context, now time.Time, p *Plan, out *Outcome) error
}

// Unplanned is a request with one charge, whose costs are named and whose limits have not been
// resolved. It brings no limits. The limiter uses it again after the call.
type Unplanned struct {
	// ID, New, Fingerprint and Keys are as in a [Plan].
	ID          weir.LeaseID
	New         bool
	Fingerprint uint64
	Keys        []uint64
	// Subject is the subject to charge.
	Subject weir.Subject
	// Costs are in units, by the name of the limit. There is at least one.
	Costs weir.Costs
	// Lifetime is the shortest time that the lease lives.
	Lifetime time.Duration
	// Memory and MemorySize are as in a [Plan].
	Memory     time.Duration
	MemorySize int
}

// Refuser is a store that may refuse every reservation for some time.
type Refuser interface {
	// RefusesReserve returns, without I/O, the error with which Reserve would now refuse any
	// reservation; nil if it would not. The limiter calls it after a request that it could not
	// plan, because one outdated configuration may be the reason for both.
	RefusesReserve() error
}

// ClockCorrector is a store that knows by how much the process's clock differs from the store's.
type ClockCorrector interface {
	// ClockOffset returns what to add to the process's clock to get the store's; 0 if the
	// difference is not known. The limiter adds it whenever it reads its clock, but not to instants
	// that it was given.
	ClockOffset() time.Duration
}

// Snapshotter is a store that writes its state to a file from time to time.
type Snapshotter interface {
	// SnapshotStats returns how its file has kept up. It does not block.
	SnapshotStats() SnapshotStats
}

// SnapshotStats say how the file of a [Snapshotter] has kept up with its state.
type SnapshotStats struct {
	// Complete is the last instant, by the system's clock, up to which the file has everything: the
	// store then wrote it, or found that nothing had changed. It is zero before the store's first
	// look. What happened after it is lost if the process dies.
	Complete time.Time
	// Failures is the number of snapshots that could not be written.
	Failures int64
	// Interval is the time between snapshots while the state changes.
	Interval time.Duration
}

// LeaseState is the state of a lease.
type LeaseState string

// The states of a lease.
const (
	LeaseLive      LeaseState = "live"
	LeaseCompleted LeaseState = "completed"
	LeaseCancelled LeaseState = "cancelled"
	LeaseExpired   LeaseState = "expired"
	// LeaseVoided means that the ID was cancelled before it was reserved; see [LeaseVoider].
	LeaseVoided LeaseState = "voided"
)

// LeaseRecord is everything that another process needs to continue a lease.
type LeaseRecord struct {
	ID weir.LeaseID
	// Version identifies the store's record as it was read or written last. The limiter keeps it with
	// the lease and passes it back in [Update.Lease]. It means nothing to the limiter.
	Version     uint64
	State       LeaseState
	Fingerprint uint64
	// At is when the lease was reserved.
	At time.Time
	// Expires is when a live lease ends by itself.
	Expires time.Time
	// Charges is the number of charges in the request.
	Charges int
	// Keys are the keys of the charges; nil if the request was not keyed, or if the lease has
	// ended.
	Keys []uint64
	// Holdings has the holding of each limit; nil if the lease has ended.
	Holdings []Holding
	// Limits are the statuses in the answer to the reservation.
	Limits []weir.LimitStatus
	// Seq is the sequence number of the last adjust that was applied, at SeqAt.
	Seq   int64
	SeqAt time.Time
	// EndedAt is when the lease ended. EndFingerprint is the fingerprint of the totals that the
	// complete or cancel named.
	EndedAt        time.Time
	EndFingerprint uint64
}

// AuditReader is a store that records the changes of its configuration.
type AuditReader interface {
	// ReadAudit yields the events that q asks for, the newest first, from the one after the event
	// with the ID q.After on. The limiter has checked q, and stops when a page is full. The list
	// ends at the first error.
	ReadAudit(ctx context.Context, q *weir.AuditQuery) iter.Seq2[weir.AuditEvent, error]
}

// UsageReader is a store that records the units used. What counts, in which hour and under whom, is
// in section 13 of docs/semantics.md.
type UsageReader interface {
	// ReadUsage yields the records that q asks for, in the order of a [weir.UsagePage]. The limiter
	// has checked q: its window is set, its bounds are those of windows, and q.After means nothing.
	// after is the last record of the page before, of which Entity, Resource and Start are set; nil
	// for the first page. The list may begin before the record that follows it, because the limiter
	// skips what it has listed. It may also have limits and records that q.Limit excludes. It ends
	// at the first error.
	//
	// A store that keeps hours alone makes longer windows with [SumUsage].
	ReadUsage(
		ctx context.Context, q *weir.UsageQuery, after *weir.Usage,
	) iter.Seq2[weir.Usage, error]
	// UsageGaps returns the times for which usage may be missing, in order. The limiter leaves out
	// those outside the bounds of q.
	UsageGaps(ctx context.Context, now time.Time, q *weir.UsageQuery) ([]weir.UsageGap, error)
}
