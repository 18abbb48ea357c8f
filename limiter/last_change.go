package limiter

import (
	"context"
	"errors"
	"reflect"
	"strings"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/change"
	"github.com/weir-limiter/weir/driver"
)

// changesRead is the number of events in which the last change of a place is looked for.
const changesRead = 20

// nameChange adds who made the last change of a place to the error about a version, if the audit
// knows. Other errors are returned as they are. An audit that does not answer is no error.
func (l *Limiter) nameChange(ctx context.Context, err error, at weir.Subject) error {
	changed, ok := errors.AsType[*change.ConflictError](err)
	e, isError := errors.AsType[*weir.Error](err)
	if !ok || !isError {
		return err
	}
	storeCtx, cancel := l.administerContext(ctx)
	defer cancel()
	last := l.lastChange(storeCtx, at)
	if last == nil {
		return err
	}
	named := *changed
	named.Action, named.By, named.At = last.Action, last.Principal, last.At
	out := *e
	out.Err = &named
	return &out
}

// lastChange returns the last event that may have changed the version of a place; nil if the
// audit has none. On a store whose configuration is written as a whole, a limits file that was
// loaded later may have changed the place too: its event is one of the system, and has counts only.
func (l *Limiter) lastChange(ctx context.Context, at weir.Subject) *weir.AuditEvent {
	last := l.lastEvent(ctx, at, changesPlace)
	if _, whole := l.store.(driver.ConfigWriter); !whole || at == (weir.Subject{}) {
		return last
	}
	loaded := l.lastEvent(ctx, weir.Subject{}, func(events []weir.AuditEvent, _ weir.Subject) bool {
		return loadsPlaces(&events[0], at)
	})
	if loaded != nil && (last == nil || loaded.ID > last.ID) {
		return loaded
	}
	return last
}

// lastEvent returns the last event at a place for which is returns true. is gets the event and
// those before it, newest first.
func (l *Limiter) lastEvent(
	ctx context.Context, at weir.Subject, is func(events []weir.AuditEvent, at weir.Subject) bool,
) *weir.AuditEvent {
	q := &weir.AuditQuery{At: at, Size: changesRead}
	if at.Entity != "" {
		q.At.Resource = "" // the deletion of the entity is an event without a resource
	}
	page, err := l.Audit(ctx, q)
	if err != nil {
		return nil
	}
	for i := range page.Events {
		if is(page.Events[i:], at) {
			return &page.Events[i]
		}
	}
	return nil
}

// changesPlace reports whether the first of some events may have changed the version of a place.
func changesPlace(events []weir.AuditEvent, at weir.Subject) bool {
	e := &events[0]
	switch {
	case at.Entity != "":
		return at.Resource == "" || e.Resource == at.Resource ||
			e.Resource == "" && strings.HasPrefix(e.Action, "entity_deleted")
	case at.Resource != "" || len(events) == 1:
		return true
	case e.Action == actionLoaded:
		return e.Details["system_changed"] != false
	}
	// A change of on_unavailable alone has an event with the same limits as the one before.
	before := &events[1]
	return e.Action != before.Action || !reflect.DeepEqual(e.Details["limits"], before.Details["limits"])
}

// actionLoaded is the action of the event for a limits file that was loaded.
const actionLoaded = "configuration_loaded"

// loadsPlaces reports whether an event is that of a limits file that changed places of the same
// kind as one of an entity or a resource.
func loadsPlaces(e *weir.AuditEvent, at weir.Subject) bool {
	kind := "resources"
	if at.Entity != "" {
		kind = "entities"
	}
	counts, _ := e.Details[kind].(map[string]any)
	for _, n := range counts {
		if n != int64(0) {
			return e.Action == actionLoaded
		}
	}
	return false
}
