package driver

import (
	"context"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/change"
)

// PlaceReader is a store whose entities and places have versions. [EntityReader.ReadEntity] then
// sets [weir.EntityDefinition.Version].
type PlaceReader interface {
	// ReadPlace returns the limits at exactly one place, with their version. It sees every change
	// that ended before it began. It is not an error if there are none.
	ReadPlace(ctx context.Context, at weir.Subject) (*change.Place, error)
}

// VersionEditor is a [ConfigEditor] and a [PlaceReader] that can make a change only if the entity
// or place is in the expected state. Its methods are those of the ConfigEditor, with these
// additions: the check of o and the change are one atomic act; if the state is another one,
// nothing changes and the error is that of [change.Options.Check], unless the state is the one
// that the change asks for. A deletion of something that is not there is such an error too. The
// result is the version after the change.
type VersionEditor interface {
	ConfigEditor
	PlaceReader
	// ChangeLimits makes limits the only ones at a place.
	ChangeLimits(
		ctx context.Context, now time.Time, at weir.Subject, limits []weir.Limit, o change.Options,
	) (version string, err error)
	// ChangeEntity declares an entity or changes it. Its limits stay. c is normalized.
	ChangeEntity(
		ctx context.Context, now time.Time, name string, c *change.Entity, o change.Options,
	) (version string, err error)
	// RemoveEntity removes an entity and its limits. Without conditions in o, the error for an
	// entity that is not declared has code [weir.NotFound].
	RemoveEntity(ctx context.Context, now time.Time, name string, o change.Options) error
}

// ResourceLister is a store that can list its resources.
type ResourceLister interface {
	// ListResources returns, in order, the resources that have limits, of their own or of an
	// entity, and those that are in use.
	ListResources(ctx context.Context, now time.Time) ([]string, error)
}
