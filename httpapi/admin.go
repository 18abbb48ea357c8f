package httpapi

import (
	"context"

	"github.com/weir-limiter/weir"
)

// Admin reads and changes what is configured, a piece at a time. [*weir.Limiter] and [*Client]
// fulfil it; the rules are those of the limiter's methods of the same names.
type Admin interface {
	// Limits returns the limits configured at exactly one place: the system's where the subject is
	// zero, a resource's where it has no entity, an entity's otherwise, on [weir.DefaultResource] for
	// every resource without limits of its own.
	Limits(ctx context.Context, at weir.Subject) ([]weir.Limit, error)
	// SetLimits makes limits the only ones at a place; none removes them.
	SetLimits(ctx context.Context, at weir.Subject, limits []weir.Limit) error
	// Policy and SetPolicy are the system's on_unavailable.
	Policy(ctx context.Context) (weir.Policy, error)
	SetPolicy(ctx context.Context, p weir.Policy) error
	// Entity returns what is configured for an entity, or an error with code [weir.NotFound].
	Entity(ctx context.Context, name string) (*weir.EntityDefinition, error)
	// SetEntity declares an entity, or changes its parent and cascade; its limits stay.
	SetEntity(ctx context.Context, name, parent string, cascade bool) error
	// DeleteEntity removes an entity and its limits; [weir.Conflict] where it has children.
	DeleteEntity(ctx context.Context, name string) error
	// Entities lists names in order, a page at a time.
	Entities(ctx context.Context, q *weir.EntityQuery) (*weir.EntityPage, error)
	// Capacity reports the limits of every entity that uses a resource or has limits of its own on
	// it.
	Capacity(ctx context.Context, resource string) ([]weir.LimitStatus, error)
}
