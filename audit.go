package weir

import (
	"context"
	"time"
)

// AuditEvent is the record of one change of the configuration.
type AuditEvent struct {
	// ID is a ULID. A later event has a greater ID.
	ID string
	// At is when the change was made, to the second.
	At time.Time
	// Action is the sort of change: "entity_created", "entity_deleted", "entity_parent_changed",
	// "limits_set", "limits_deleted", "configuration_loaded", or another word that another program on
	// the same store has written.
	Action string
	// Entity is the entity that was changed; "$SYSTEM" for the system, "$RESOURCE:" and a name for
	// a resource.
	Entity string
	// Principal is the person or program that made the change; empty if it is not known.
	Principal string
	// Resource is the resource on which something was changed; empty if there is none.
	Resource string
	// Details depend on the action: strings, bools, int64s, json.Numbers, nil, and maps and slices
	// of them.
	Details map[string]any
}

// AuditQuery says which events to list. The zero value lists those of the system.
type AuditQuery struct {
	// At is the place that was changed: the system if it is zero, a resource if it names no entity,
	// otherwise an entity, restricted to one resource if it names one.
	At Subject
	// From and To restrict the list to events at or after From and before To. Default: no bound.
	From, To time.Time
	// After is the Next of the previous page. Default: begin with the newest event.
	After string
	// Size is the largest number of events in a page, up to 1,000. Default: 100.
	Size int
}

// AuditPage is one page of a list of events.
type AuditPage struct {
	// Events are the events, the newest first.
	Events []AuditEvent
	// Next is the After of the next page, the ID of an event; empty if this is the last.
	Next string
}

// principalKey is the key of a principal in a context.
type principalKey struct{}

// WithPrincipal returns a context for changes of the configuration that the named person or program
// makes. The name goes into the audit.
func WithPrincipal(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, principalKey{}, name)
}

// PrincipalOf returns the name that [WithPrincipal] has given; empty if there is none.
func PrincipalOf(ctx context.Context) string {
	name, _ := ctx.Value(principalKey{}).(string)
	return name
}
