// Package declare has the seam between a limits file and a store: what a store keeps so that a
// file can be applied to it. It is apart from package driver because only a few stores need it.
// It has types and no state; a claim travels in the context of a change.
package declare

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
)

// Store is an ability of a store: it records which part of its configuration a limits file
// manages, so that a file can be applied again and again. The rest of the configuration is left
// alone. The limiter finds it by type assertion.
//
// Two applies never change the configuration at the same time. An apply begins by putting its
// [Mark] into the record, on condition that the record is as it read it. It makes its changes
// with a context of [WithClaim]: such a change is applied only if the mark in the record is still
// that of the apply, and otherwise fails with [ErrClaimLost]. The check and the change are one
// atomic act.
type Store interface {
	// DeclaredNamespace returns the namespace that a limits file for the store must name; empty if
	// any will do.
	DeclaredNamespace() string
	// ReadDefinitions returns the whole configuration. What also names is read so that every write
	// that ended before is seen; a place that was configured a moment ago by another program may be
	// missing. also may be nil.
	ReadDefinitions(ctx context.Context, also *Managed) (*Definitions, error)
	// ReadDeclared returns the record, by a consistent read; a zero record if there is none.
	ReadDeclared(ctx context.Context) (*Record, error)
	// WriteDeclared replaces the record read by d, on condition that it is still as it was read. If
	// it is not, the error has code [weir.Conflict] and is ErrClaimLost. If the mark of d has the ID
	// of the one read, the store may write only its time. The store sets the Revision of d, and the
	// By of its mark if that is empty.
	WriteDeclared(ctx context.Context, now time.Time, read, d *Record) error
	// CheckDeclared returns the error with which WriteDeclared would refuse d whatever was read: it has
	// more than the store can hold.
	CheckDeclared(d *Record) error
	// LiveSubjects yields the subjects for which the store has state, in any order. A part of the
	// subject that is not empty restricts the list.
	LiveSubjects(
		ctx context.Context, now time.Time, of weir.Subject,
	) iter.Seq2[weir.Subject, error]
	// FollowConfig brings the state of subjects to their configuration now, instead of when they
	// are used next, for other programs that go by the state alone. It goes on after an error; the
	// errors are joined, and each that is about one subject is a [*FollowError].
	FollowConfig(ctx context.Context, now time.Time, subjects []weir.Subject) error
}

// ErrClaimLost means that another apply has taken over, or that the record was changed by another
// program. It is the cause in an error with code [weir.Conflict].
var ErrClaimLost = errors.New("the record of declared limits has changed")

// ClaimLost returns the error for a change under a claim that no longer stands.
func ClaimLost(reason string) error {
	return &weir.Error{Code: weir.Conflict, Field: "limits", Reason: reason, Err: ErrClaimLost}
}

// FollowError says that the state of a subject could not be brought to its configuration.
type FollowError struct {
	Of  weir.Subject
	Err error
}

// Error names the subject and the cause.
func (e *FollowError) Error() string {
	return e.Of.Entity + " on " + e.Of.Resource + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *FollowError) Unwrap() error { return e.Err }

// claimKey is the key of a claim in a context.
type claimKey struct{}

// WithClaim returns a context for changes of the configuration that are made only while the mark
// with this ID is in the store's record.
func WithClaim(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, claimKey{}, id)
}

// ClaimOf returns the ID that [WithClaim] has given; empty if there is none.
func ClaimOf(ctx context.Context) string {
	id, _ := ctx.Value(claimKey{}).(string)
	return id
}

// Definitions are a store's configuration.
type Definitions struct {
	// Definitions have what a limits file can say. OnUnavailable is empty if it is not set.
	Definitions *weir.Definitions
	// Foreign are the settings that another program has made, and that a limits file cannot say.
	Foreign []Foreign
}

// Foreign is a setting that a limits file cannot say.
type Foreign struct {
	// Path is its place, as a limits file would name it: "resources.gpt-4o.limits.rpm".
	Path string
	// At is the place; for an entity itself the place without a resource.
	At weir.Subject
	// Attribute is the setting's name in the store.
	Attribute string
	// Reason says what it is, as the end of a sentence that begins with the path.
	Reason string
	// HidesWeaker reports that it is a limit, so that limits of weaker levels do not apply.
	HidesWeaker bool
}

// Record says what a limits file manages, and which apply is under way.
type Record struct {
	Managed Managed
	// Hash is the hash of the limits that were applied last: "sha256:" and hexadecimal digits.
	Hash string
	// AppliedAt and AppliedBy are of the last apply that ended.
	AppliedAt time.Time
	AppliedBy string
	// Revision is raised by each write of the record.
	Revision int64
	// Apply is the apply under way, or one that was interrupted; nil if there is none.
	Apply *Mark
	// Again are the entities whose change must be made again, because it may be unfinished.
	Again []string
	// Owner is the other program that wrote the record; empty if weir did, or if there is no
	// record. Pending is the number of its tasks that are not finished.
	Owner   string
	Pending int
	// Stored is the record as the store has it. It means nothing to others.
	Stored any
}

// Mark is an apply under way.
type Mark struct {
	// ID is random.
	ID string
	// By is who applies; empty if unknown.
	By string
	// At is when the apply last said that it is under way.
	At time.Time
}

// Managed is the set of places that a limits file manages, by their names.
type Managed struct {
	// System says that the limits of the system are managed. Policy says so of on_unavailable, and
	// Retention of any setting of the retention.
	System    bool
	Policy    bool
	Retention bool
	// Resources are the resources whose limits are managed, in order.
	Resources []string
	// Limits are the resources on which an entity's limits are managed, in order, by entity.
	Limits map[string][]string
	// Entities are the entities whose parent and cascade are managed, in order.
	Entities []string
}

// Union returns the places that are in either set.
func (m *Managed) Union(o *Managed) Managed {
	u := Managed{
		System: m.System || o.System, Policy: m.Policy || o.Policy,
		Retention: m.Retention || o.Retention,
		Resources: union(m.Resources, o.Resources), Entities: union(m.Entities, o.Entities),
		Limits: map[string][]string{},
	}
	for _, limits := range []map[string][]string{m.Limits, o.Limits} {
		for name, resources := range limits {
			u.Limits[name] = union(u.Limits[name], resources)
		}
	}
	return u
}

// union returns the names in either list, in order.
func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// Equal reports whether two sets are the same.
func (m *Managed) Equal(o *Managed) bool {
	return m.System == o.System && m.Policy == o.Policy && m.Retention == o.Retention &&
		slices.Equal(m.Resources, o.Resources) && slices.Equal(m.Entities, o.Entities) &&
		maps.EqualFunc(m.Limits, o.Limits, slices.Equal[[]string])
}

// Empty reports whether nothing is managed.
func (m *Managed) Empty() bool {
	return m.Equal(&Managed{})
}

// Has reports whether the limits at a place are managed.
func (m *Managed) Has(at weir.Subject) bool {
	switch {
	case at.Entity != "":
		return slices.Contains(m.Limits[at.Entity], at.Resource)
	case at.Resource != "":
		_, ok := slices.BinarySearch(m.Resources, at.Resource)
		return ok
	}
	return m.System
}

// HasEntity reports whether an entity's parent and cascade are managed.
func (m *Managed) HasEntity(name string) bool {
	_, ok := slices.BinarySearch(m.Entities, name)
	return ok
}
