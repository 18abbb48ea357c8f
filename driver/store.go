package driver

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/kernel"
)

// Store keeps the state of limits. Most users never call it: they open a store and give it to
// limiter.New. To write one, start with docs/new-backend.md.
//
// Atomicity: Reserve takes every cost or none, as far as anybody can see; a store that must
// compensate says for how long others may see the difference. Consistency: a Reserve that returns
// admitted is seen by every later Reserve on the same limits. Time: now is when the caller asked;
// state never moves backwards under an earlier one, and nothing expires early. Concurrency: all
// methods may be called at once, but never two at once for one lease. Retry: the limiter repeats
// nothing; a caller may repeat any call that returned [weir.Unavailable], and a call repeated with
// the same lease ID (and the same Seq) must not count twice. Errors: an [*weir.Error] with the code
// that fits; any other error counts as [weir.Unavailable].
type Store interface {
	// Traits says what the store can do. It is asked once, before anything else.
	Traits() Traits
	// Reserve judges a plan, takes all of it or nothing, and fills in out. A denial is an Outcome,
	// not an error. If a definition in the plan is out of date for the store, it may return a
	// [*StaleError] and fill in out as for a denial that is contended: nothing is charged, or the
	// store gives it back with its next writes, and the limiter plans again, see [StaleError]. Once
	// it has returned, what p and out point to is the caller's: a store that goes on after that
	// copies what it needs.
	Reserve(ctx context.Context, now time.Time, p *Plan, out *Outcome) error
	// Update makes a lease stand for something else: adjust, complete, cancel or extend. It is
	// never denied, and applies whole or not at all. If the lease has been changed elsewhere since,
	// so that u does not say any more what it stands for, nothing is applied and the error is a
	// [*StaleError]. u and out are as in Reserve.
	Update(ctx context.Context, now time.Time, u *Update, out *Outcome) error
	// Status reports the limits that are given, in their order, without creating anything.
	Status(ctx context.Context, now time.Time, of []Judged) ([]weir.LimitStatus, error)
	// Close releases what the store holds open, and writes what it keeps.
	Close() error
}

// Traits is what a store can do.
type Traits struct {
	// Kinds are the kinds of limit that it enforces. A limit of another kind is refused when it is
	// set, or when the limiter is opened.
	Kinds []weir.Kind
	// CascadeDepth is how many ancestors it can charge.
	CascadeDepth int
	// ExpiryLate is by how much a unit may return late. Units never return early. Default: exact.
	ExpiryLate time.Duration
	// Local is true for a store that never waits for anything outside the process, so that calls
	// to it need no timeout. Default: false.
	Local bool
	// EntitySlash is true where an entity's name may contain '/'. Default: false.
	EntitySlash bool
	// UndeclaredParents is true for a store that charges a parent which was never declared, by the
	// limits that apply to it. On others such a parent is an error with code [weir.NotFound].
	// Default: false.
	UndeclaredParents bool
	// NoShadow is true for a store that has no shadow limits; such a limit is refused when it is
	// set. Default: false.
	NoShadow bool
}

// Judged is a subject with the limits that apply to it, as the limiter has resolved them.
type Judged struct {
	weir.Subject
	// Level is where the limits come from; empty if nothing is configured.
	Level weir.Level
	// Limits are in the order of their names. They are shared: do not change them.
	Limits []weir.Limit
	// Parent is the entity that is charged too; empty if there is none, or no cascade.
	Parent string
	// Version is the [weir.Config.Version] of the configuration that this was resolved from. A
	// store's Status need not look at it.
	Version uint64
}

// Plan is a request resolved: what is to be taken of which limit.
type Plan struct {
	ID weir.LeaseID
	// New is true if the limiter has made the ID for this call: nobody can have asked for it
	// before.
	New bool
	// Again is true if the store was asked before in the same call, by a plan that was stale or
	// without one. Nothing of that stands any more.
	Again bool
	// Fingerprint covers the request's content; the same in every process.
	Fingerprint uint64
	// Charges is how many charges the request has.
	Charges int
	// Keys are hashes of the charges' keys, one for each, for a store that keeps leases beyond the
	// process; nil if the request is not [weir.Request.Keyed]. They are not changed afterwards.
	Keys []uint64
	// Subjects are the ones that the charges reach, in that order, with all limits that apply.
	Subjects []Judged
	// Takes are what is asked of each limit: by subject, and then by the limit's name. Each sum of
	// parts fits 64 bits.
	Takes []*Take
	// Lifetime is how long the lease lives: never less than its longest hold.
	Lifetime time.Duration
	// Memory is how long an ended lease is to be remembered, MemorySize how many are at most: for
	// stores that keep leases beyond the process.
	Memory     time.Duration
	MemorySize int
}

// Expires returns when a lease reserved at an instant, which is whole in milliseconds, ends by
// itself.
func (p *Plan) Expires(at time.Time) time.Time { return at.Add(p.Lifetime) }

// Outcome returns an outcome with room for what a store makes of the plan.
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

// Clone returns a copy of the plan, with subjects, takes and parts of its own. A store that goes on
// with a plan after Reserve has returned needs one. Definitions are shared.
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

// Reserved makes the holding what a store has taken for a take. Its parts are those of the take.
func (h *Holding) Reserved(t *Take, taken *Taken) {
	if h.Pieces = taken.Pieces; t != &h.Take { // the engine may have planned in the holding
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

// Take is what a reservation asks of one limit: the sum of the costs that fall on it.
type Take struct {
	weir.Subject
	Limit *weir.Limit
	Level weir.Level
	// Ceiling is what the use after the reservation may not exceed, in units: the capacity, or
	// the lower one that the request brought.
	Ceiling int64
	// Parts say which charge asked for how much; never empty, in the order of the charges.
	Parts []Part
}

// Part is the share of one charge in a take or a holding.
type Part struct {
	// Charge is the charge's position in the request.
	Charge int
	// Units is what the charge asked, or stands for by now.
	Units int64
}

// Cost is the sum of the parts.
func (t *Take) Cost() int64 {
	if len(t.Parts) == 1 {
		return t.Parts[0].Units
	}
	sum, _ := SumParts(t.Parts)
	return sum
}

// Holding is what a live lease stands for on one limit.
type Holding struct {
	Take
	// Pieces say where the units are. They are the store's own bookkeeping: the limiter keeps them
	// with the lease and hands them back.
	Pieces []Piece
}

// Taken is what a lease stands for on one limit.
type Taken struct {
	// Units are the cost of the take, or the units of the change. Only if a store cannot count them
	// on a shadow limit does it set them: to 0 for a take, to what they were for a change.
	Units int64
	// Pieces say where the units are. A Reserve appends to them, an Update sets them.
	Pieces []Piece
}

// Piece is a number of units that were taken at one place and instant.
type Piece = kernel.Piece

// Update changes what a live lease stands for.
type Update struct {
	ID   weir.LeaseID
	Verb weir.Verb
	// Unplanned is true for a cancel by which the limiter gives back what [UnplannedReserver] took
	// under definitions that are not in force. There was no lease as far as anybody knows, and its
	// ID may be reserved next, by a plan. The store may give back with its next writes.
	Unplanned bool
	// Seq is the adjust's sequence number, above the one applied last; for other verbs the last.
	Seq int64
	// Fingerprint covers what the caller named; the same in every process.
	Fingerprint uint64
	// Changes has one for each holding, in the order of the plan.
	Changes []Change
	// Lifetime is how long the lease lives after this, if it lives on: never less than its longest
	// hold.
	Lifetime time.Duration
	// Memory and MemorySize are as in a [Plan].
	Memory     time.Duration
	MemorySize int
}

// Change is what an update does to one holding.
type Change struct {
	// Holding is what the lease stands for, as the store said last. It is not to be changed.
	Holding *Holding
	// Limit is the definition in force: the resolved one if it is known and has not changed its
	// kind, otherwise that of the reservation.
	Limit *weir.Limit
	// From and To are the units that the lease stands for before and after: the same in an extend,
	// and To is 0 for the slots of a lease that ends.
	From, To int64
	// Parts say which charge stands for how much of To. They are not to be changed.
	Parts []Part
}

// Ends reports whether the lease ends.
func (u *Update) Ends() bool { return u.Verb == weir.VerbComplete || u.Verb == weir.VerbCancel }

// Expires returns when a lease that is renewed at an instant, which is whole in milliseconds, ends
// by itself.
func (u *Update) Expires(at time.Time) time.Time { return at.Add(u.Lifetime) }

// Outcome returns an outcome with room for what a store makes of the update.
func (u *Update) Outcome() *Outcome {
	out := &Outcome{Taken: make([]Taken, len(u.Changes))}
	for i := range u.Changes {
		out.Taken[i].Units = u.Changes[i].To
	}
	return out
}

// Holdings returns what the lease stands for after an outcome; nil if it has ended.
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

// Changed makes the holding what a store has made of a change. Its parts are overwritten.
func (h *Holding) Changed(c *Change, taken *Taken) {
	h.Limit, h.Pieces = c.Limit, taken.Pieces
	if taken.Units == c.To {
		copy(h.Parts, c.Parts)
	}
}

// StaleError says that a store knows better than what it was given, and that nothing was applied.
//
// From Update: the lease was changed elsewhere, so that it stands for something else than the
// update says. The limiter makes the update again.
//
// From Reserve: a definition in the plan is out of date, because the configuration was changed
// through this store after the [Judged.Version], or because the store has recorded other
// definitions since. The limiter reads the configuration of all subjects of the plan again,
// consistently and past its cache, and reserves by a new plan, at most three times. After that the
// outcome of the last attempt is the answer.
type StaleError struct {
	// Lease is what the store knows of the lease now; nil from Reserve. It is the limiter's, as in
	// [LeaseRecoverer].
	Lease *LeaseRecord
}

// Error fulfils error.
func (e *StaleError) Error() string { return "weir: changed elsewhere" }

// Outcome is a store's answer.
type Outcome struct {
	// At is the instant that counts: when the reservation was made or the update applied.
	At time.Time
	// Expires is when the lease ends by itself, as the store has recorded it; zero if that is what
	// [Plan.Expires] or [Update.Expires] says by At.
	Expires time.Time
	// Denied is true where a limit said no, and nothing was taken.
	Denied bool
	// Contended is true where a denial is due to other writers, not to a limit.
	Contended bool
	// Replay is true where the store had already taken this reservation; the limiter then asks for
	// it by [LeaseRecoverer].
	Replay bool
	// Limits has the status of every limit judged, in the order of the plan; of an update it has
	// none.
	Limits []weir.LimitStatus
	// Taken is what the lease stands for on each limit, in the order of the plan. It means nothing
	// after a denial, or if the lease has ended.
	Taken []Taken
	// RefundInDoubt is true if the update is done but for refunds of which the store cannot
	// know whether they were made, and which it will not make again.
	RefundInDoubt bool
}

// SumParts adds up, and reports whether the sum fits; it is MaxInt64 if not.
func SumParts(parts []Part) (sum int64, fits bool) {
	for _, p := range parts {
		if p.Units > math.MaxInt64-sum {
			return math.MaxInt64, false
		}
		sum += p.Units
	}
	return sum, true
}
