package driver

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/kernel"
)

// Store keeps the state of limits. Most users never call it: they open a store and pass it to
// limiter.New. To write one, start with docs/new-backend.md.
//
// Atomicity: Reserve takes every cost of a plan or none, as other callers see it. A store that has
// to compensate a partial take documents for how long others may see it.
//
// Consistency: after a Reserve has returned, every later Reserve on the same limits sees what it
// took.
//
// Time: now is when the caller called. A call with an earlier now never moves state back, and
// nothing expires early.
//
// Concurrency: all methods may be called concurrently, but a limiter never makes two calls for one
// lease at a time.
//
// Retry: the limiter does not repeat a call. A caller may repeat any call that returned
// [weir.Unavailable], and a repeated call with the same lease ID (and the same Seq) must not count
// twice.
//
// Errors: an [*weir.Error] with the code that fits. Any other error counts as [weir.Unavailable].
type Store interface {
	// Traits returns what the store can do. It is called once, before any other method.
	Traits() Traits
	// Reserve judges a plan, takes all of it or nothing, and fills in out. A denial is an Outcome,
	// not an error. If the store knows that a definition in the plan is out of date, it may return
	// a [*StaleError]. It then fills in out as for a contended denial, and nothing stays charged:
	// the store has taken nothing, or gives back what it took with its next writes. The limiter
	// plans again, see [StaleError]. After Reserve has returned, the limiter uses p and out again;
	// a store that still needs them copies them before.
	Reserve(ctx context.Context, now time.Time, p *Plan, out *Outcome) error
	// Update changes what a lease stands for: adjust, complete, cancel or extend. It is never
	// denied, and applies as a whole or not at all. If the lease has been changed elsewhere, so
	// that u is no longer based on what it stands for, Update applies nothing and returns a
	// [*StaleError]. u and out are used again as in Reserve.
	Update(ctx context.Context, now time.Time, u *Update, out *Outcome) error
	// Status returns the statuses of the given limits, in the given order. It creates no state.
	Status(ctx context.Context, now time.Time, of []Judged) ([]weir.LimitStatus, error)
	// Close writes what the store still has to write, and releases its resources.
	Close() error
}

// Traits describe what a store can do.
type Traits struct {
	// Kinds are the kinds of limit that the store enforces. A limit of another kind is refused when
	// it is configured, or when the limiter is opened with it.
	Kinds []weir.Kind
	// CascadeDepth is the number of ancestors that the store can charge.
	CascadeDepth int
	// ExpiryLate is the longest time after its end at which a unit returns. A unit never returns
	// early. Default: 0, on time.
	ExpiryLate time.Duration
	// Local reports whether all calls stay in the process, so that they need no timeout. Default:
	// false.
	Local bool
	// UndeclaredParents reports whether the store charges a parent that is not declared, by the
	// limits that apply to it. On other stores such a parent is an error with code [weir.NotFound].
	// Default: false.
	UndeclaredParents bool
	// NoShadow reports that the store does not support shadow limits. Such a limit is refused when
	// it is configured, or when the limiter is opened with it. Default: false.
	NoShadow bool
	// LeaseRows reports that leases whose IDs differ only in the last three bits cost less if they are
	// reserved together. The limiter then makes IDs in such rows of eight. Default: false.
	LeaseRows bool
	// NoLeases reports that the store was opened not to keep leases beyond the process, although it is
	// a [LeaseRecoverer]. Default: false.
	NoLeases bool
}

// Judged is a subject with the limits that apply to it, as the limiter has resolved them.
type Judged struct {
	weir.Subject
	// Level is where the limits come from; empty if nothing is configured.
	Level weir.Level
	// Limits are sorted by name. They are shared: do not change them.
	Limits []weir.Limit
	// Parent is the entity that is charged too; empty if the entity does not cascade.
	Parent string
	// Version is the [weir.Config.Version] of the configuration that the limits were resolved from.
	// Status may ignore it.
	Version uint64
}

// Plan is a resolved request: what to take of which limit.
type Plan struct {
	ID weir.LeaseID
	// New reports that the limiter has made the ID for this call, so that no earlier call can have
	// used it.
	New bool
	// Again reports that the store has been called before for the same reservation, with a plan
	// that was stale or without a plan. Nothing of that is still charged.
	Again bool
	// Fingerprint is a hash of the request's content, the same in every process.
	Fingerprint uint64
	// Charges is the number of charges in the request.
	Charges int
	// Keys are the keys of the charges, in order, for a store that keeps leases beyond the process;
	// nil if the request is not [weir.Request.Keyed]. They are not changed afterwards.
	Keys []uint64
	// Subjects are the subjects that the charges reach, in the order in which they reach them, each
	// with all limits that apply to it.
	Subjects []Judged
	// Takes has a take for each limit that is asked for units, in the order of Subjects and then by
	// the limit's name. The sum of the parts of each fits 64 bits.
	Takes []*Take
	// Lifetime is how long the lease lives, at least as long as the longest timeout of its slots.
	Lifetime time.Duration
	// Memory is how long an ended lease is remembered, and MemorySize bounds the number of them,
	// for stores that keep leases beyond the process.
	Memory     time.Duration
	MemorySize int
}

// Expires returns the instant at which a lease reserved at an instant ends by itself. The instant is
// whole in milliseconds.
func (p *Plan) Expires(at time.Time) time.Time { return at.Add(p.Lifetime) }

// Outcome returns an outcome for the plan with room for the answer of a store.
func (p *Plan) Outcome() *Outcome {
	out := &Outcome{Limits: make([]weir.LimitStatus, len(p.Takes)), Taken: make([]Taken, len(p.Takes))}
	for i := range p.Takes {
		out.Taken[i].Units = p.Takes[i].Cost()
	}
	return out
}

// Holdings returns what a lease stands for after an outcome that admitted the plan.
func (p *Plan) Holdings(out *Outcome) []Holding {
	holdings := make([]Holding, len(p.Takes))
	for i := range p.Takes {
		holdings[i].Reserved(p.Takes[i], &out.Taken[i])
	}
	return holdings
}

// Record returns the lease after an outcome that admitted the plan, without its holdings.
func (p *Plan) Record(out *Outcome) LeaseRecord {
	expires := out.Expires
	if expires.IsZero() {
		expires = p.Expires(out.At)
	}
	return LeaseRecord{
		ID: p.ID, Version: out.Version, State: LeaseLive, Fingerprint: p.Fingerprint, At: out.At,
		Expires: expires, Charges: p.Charges, Keys: p.Keys, Limits: out.Limits,
	}
}

// Clone returns a copy of the plan, with subjects, takes and parts of its own. A store that uses a
// plan after Reserve has returned needs one. Definitions are shared.
func (p *Plan) Clone() *Plan {
	c := *p
	c.Subjects, c.Takes = slices.Clone(p.Subjects), make([]*Take, len(p.Takes))
	for i, t := range p.Takes {
		own := *t
		own.Parts = slices.Clone(t.Parts)
		c.Takes[i] = &own
	}
	return &c
}

// Reserved sets the holding to what a store has taken for t. It shares t's parts, unless the store
// could not count the units: then it has parts of its own with 0 units.
func (h *Holding) Reserved(t *Take, taken *Taken) {
	// the engine may have built the plan in the memory of the holding
	if h.Pieces = taken.Pieces; t != &h.Take {
		h.Take = *t
	}
	if taken.Units > 0 || t.Cost() == 0 {
		return
	}
	h.Parts = slices.Clone(h.Parts)
	for i := range h.Parts {
		h.Parts[i].Units = 0
	}
}

// Take is the part of a plan for one limit: the sum of the costs that fall on it.
type Take struct {
	weir.Subject
	Limit *weir.Limit
	Level weir.Level
	// Ceiling is the most that may be in use after the reservation, in units: the capacity, or the
	// lower one that the request brought.
	Ceiling int64
	// Parts are the costs, at most one for each charge, in the order of the charges; never empty.
	Parts []Part
}

// Part is the share of one charge in a take or a holding.
type Part struct {
	// Charge is the index of the charge in the request.
	Charge int
	// Units is the cost of the charge in a take, or what the charge stands for in a holding.
	Units int64
}

// Cost returns the sum of the parts.
func (t *Take) Cost() int64 {
	if len(t.Parts) == 1 {
		return t.Parts[0].Units
	}
	sum, _ := SumParts(t.Parts)
	return sum
}

// Holding is the part of a live lease for one limit: the units that it stands for, and where they
// are.
type Holding struct {
	Take
	// Pieces are where the store has recorded the units. The limiter keeps them with the lease and
	// passes them back unchanged.
	Pieces []Piece
}

// Taken is the part of an outcome for one limit.
type Taken struct {
	// Units are preset to the cost of the take or to Change.To. A store changes them only if it
	// cannot count units on a shadow limit: to 0 for a take, and to Change.From for a change.
	Units int64
	// Pieces are where the units are recorded. Reserve appends to them, Update sets them.
	Pieces []Piece
}

// Piece is a number of units of a lease that were taken at one time and return together.
type Piece = kernel.Piece

// Update is a change of what a live lease stands for.
type Update struct {
	ID   weir.LeaseID
	Verb weir.Verb
	// Unplanned reports that the update is the cancel by which the limiter gives back what an
	// [UnplannedReserver] took under definitions that are not in force. No caller has learned of a
	// lease, and the next Reserve may use its ID. The store may give the units back with its next
	// writes.
	Unplanned bool
	// Lease is what the limiter knows of the lease before the update, without holdings and limits. It
	// is set if the store is a [LeaseRecoverer] and the update is not Unplanned.
	Lease *LeaseRecord
	// Seq is the sequence number of an adjust, above the one applied last; for other verbs it is
	// the one applied last.
	Seq int64
	// Fingerprint is a hash of the totals that the caller named, the same in every process.
	Fingerprint uint64
	// Changes has a change for each holding, in the order of the plan.
	Changes []Change
	// Lifetime is how long the lease lives after the update unless it ends, at least as long as the
	// longest timeout of its slots.
	Lifetime time.Duration
	// Memory and MemorySize are as in a [Plan].
	Memory     time.Duration
	MemorySize int
}

// Change is the part of an update for one holding.
type Change struct {
	// Holding is the holding before the update. The store must not change it.
	Holding *Holding
	// Limit is the definition in force: the resolved one if the limiter has it and its kind is the
	// same, otherwise that of the reservation.
	Limit *weir.Limit
	// From and To are the units that the lease stands for before and after. An extend has the same
	// for both. Complete and cancel have a To of 0 for slots.
	From, To int64
	// Used is what the lease has used of the limit after the update, for the usage that a store
	// records: Used less From is what the update changes. It is To, except for slots that a complete
	// returns: those are used, namely as many as the actuals name, or all that the lease held.
	Used int64
	// Parts divide To among the charges. The store must not change them.
	Parts []Part
}

// Ends reports whether the update ends the lease.
func (u *Update) Ends() bool { return u.Verb == weir.VerbComplete || u.Verb == weir.VerbCancel }

// Expires returns the instant at which a lease that is extended at an instant ends by itself.
func (u *Update) Expires(at time.Time) time.Time { return at.Add(u.Lifetime) }

// Outcome returns an outcome for the update with room for the answer of a store.
func (u *Update) Outcome() *Outcome {
	out := &Outcome{Taken: make([]Taken, len(u.Changes))}
	for i := range u.Changes {
		out.Taken[i].Units = u.Changes[i].To
	}
	return out
}

// Holdings returns what the lease stands for after an outcome; nil if the update ends the lease.
func (u *Update) Holdings(out *Outcome) []Holding {
	if u.Ends() {
		return nil
	}
	holdings := make([]Holding, len(u.Changes))
	for i := range u.Changes {
		c := &u.Changes[i]
		holdings[i] = *c.Holding
		holdings[i].Parts = slices.Clone(c.Holding.Parts)
		holdings[i].Changed(c, &out.Taken[i])
	}
	return holdings
}

// Changed sets the holding to what a store has made of a change. It overwrites the parts.
func (h *Holding) Changed(c *Change, taken *Taken) {
	h.Limit, h.Pieces = c.Limit, taken.Pieces
	if taken.Units == c.To {
		copy(h.Parts, c.Parts)
	}
}

// StaleError says that a plan or an update is out of date and that nothing was applied.
//
// From Update it means that the lease was changed elsewhere. The limiter computes the update again
// from Lease.
//
// From Reserve it means that a definition in the plan is out of date, because the configuration was
// changed through this store after the plan's [Judged.Version], or because the store's records have
// a later definition. The limiter reads the configuration of all subjects of the plan again, with
// consistent reads and without its cache, and calls Reserve with a new plan, at most three times.
// After that the outcome of the last attempt is the answer.
type StaleError struct {
	// Lease is the store's record of the lease now; nil from Reserve. The limiter may change it, as
	// in [LeaseRecoverer].
	Lease *LeaseRecord
	// RefundInDoubt is as in [Outcome], for earlier updates of the lease that the store knew of and
	// the limiter did not.
	RefundInDoubt bool
}

// Error implements error.
func (e *StaleError) Error() string { return "weir: changed by another process" }

// Outcome is the answer of a store.
type Outcome struct {
	// At is the instant at which the reservation was made or the update applied.
	At time.Time
	// Expires is when the lease ends by itself, as the store has recorded it. Zero means what
	// [Plan.Expires] or [Update.Expires] returns for At.
	Expires time.Time
	// Denied reports that a limit denied the plan, and nothing was taken.
	Denied bool
	// Contended reports that a denial is due to other writers, not to a limit.
	Contended bool
	// Version is the [LeaseRecord.Version] of the lease after the call. A store whose records have no
	// versions leaves it 0.
	Version uint64
	// Replay reports that the store has carried out this reservation before. The limiter then reads
	// the lease with [LeaseRecoverer].
	Replay bool
	// Limits has the status of each limit, in the order of the plan. An update has none.
	Limits []weir.LimitStatus
	// Taken has the units and pieces of each limit after the call, in the order of the plan. It is
	// ignored after a denial, or if the lease has ended.
	Taken []Taken
	// RefundInDoubt reports that the update is applied except for refunds that may or may not have
	// been made, and that the store does not repeat.
	RefundInDoubt bool
}

// SumParts returns the sum of the parts and whether it fits 64 bits; if not, the sum is MaxInt64.
func SumParts(parts []Part) (sum int64, fits bool) {
	for _, p := range parts {
		if p.Units > math.MaxInt64-sum {
			return math.MaxInt64, false
		}
		sum += p.Units
	}
	return sum, true
}
