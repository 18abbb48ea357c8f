package memory

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/weir-limiter/weir"
)

// The actions of the audit.
const (
	actionEntityCreated       = "entity_created"
	actionEntityDeleted       = "entity_deleted"
	actionEntityParentChanged = "entity_parent_changed"
	actionEntityMetadataSet   = "entity_metadata_set"
	actionLimitsSet           = "limits_set"
	actionLimitsDeleted       = "limits_deleted"
	actionConfigurationLoaded = "configuration_loaded"
)

const (
	// auditEventsByDefault is the default of Options.AuditEvents.
	auditEventsByDefault = 10_000
	// auditSystem and auditResource are the entities of events about the system and about a
	// resource, the latter before the name of the resource.
	auditSystem   = "$SYSTEM"
	auditResource = "$RESOURCE:"
)

// auditLog has the changes of the configuration. mu guards all of it.
type auditLog struct {
	mu   sync.Mutex
	most int
	// events are in the order of their IDs. An event is never changed, nor is an element of the
	// slice: a snapshot and a reader use what the slice had when they looked.
	events []auditEvent
	last   weir.LeaseID
}

// auditEvent is an event whose details are JSON, so that no reader can change them.
type auditEvent struct {
	id                                  weir.LeaseID // a ULID as those of leases
	at                                  int64        // in Unix seconds
	action, entity, resource, principal string
	details                             []byte // nil if there are none
}

// auditChange is a change that is recorded once it is in force.
type auditChange struct {
	action, entity, resource string
	details                  map[string]any
}

// add records the changes that one write has made.
func (l *auditLog) add(ctx context.Context, now time.Time, changes ...auditChange) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range changes {
		e := auditEvent{
			id: l.nextID(now), at: now.Unix(), action: c.action, entity: c.entity, resource: c.resource,
			principal: weir.PrincipalOf(ctx),
		}
		if text, err := json.Marshal(c.details); err == nil && c.details != nil {
			e.details = text // strings, numbers, lists and maps of them never fail
		}
		l.append(e)
	}
}

// append adds an event and drops the oldest if there are too many.
func (l *auditLog) append(e auditEvent) {
	l.last = e.id
	if l.most < 0 {
		return
	}
	l.events = append(l.events, e)
	if extra := len(l.events) - l.most; extra > 0 {
		l.events = l.events[extra:] // append reallocates the slice before long
	}
}

// nextID returns a ULID that is greater than the last one, also within a millisecond and if the
// clock stepped back.
func (l *auditLog) nextID(now time.Time) weir.LeaseID {
	id := weir.NewLeaseID(now)
	if bytes.Compare(id[:], l.last[:]) > 0 {
		return id
	}
	high, low := binary.BigEndian.Uint64(l.last[:8]), binary.BigEndian.Uint64(l.last[8:])+1
	if low == 0 {
		high++
	}
	binary.BigEndian.PutUint64(id[:8], high)
	binary.BigEndian.PutUint64(id[8:], low)
	return id
}

// list returns the events as they are now.
func (l *auditLog) list() []auditEvent {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.events
}

// ReadAudit yields the changes at a place, newest first. If the place names an entity and a
// resource, it yields the changes of the entity that concern the resource. If no audit is kept,
// the error has code [weir.Unsupported]. If q.After is not the ID of an event, the error has code
// [weir.Invalid].
func (s *Store) ReadAudit(
	_ context.Context, q *weir.AuditQuery,
) iter.Seq2[weir.AuditEvent, error] {
	return func(yield func(weir.AuditEvent, error) bool) {
		if s.audit.most < 0 {
			yield(weir.AuditEvent{}, weir.NewError(weir.Unsupported, "store", "",
				"does not keep an audit"))
			return
		}
		var after weir.LeaseID
		if q.After != "" {
			var err error
			if after, err = weir.ParseLeaseID(q.After); err != nil {
				yield(weir.AuditEvent{}, weir.NewError(weir.Invalid, "after", q.After,
					"must be the ID of an event: a ULID, of 26 characters"))
				return
			}
		}
		owner := auditOwner(q.At)
		for _, e := range slices.Backward(s.audit.list()) {
			at := time.Unix(e.at, 0).UTC()
			switch {
			case q.After != "" && bytes.Compare(e.id[:], after[:]) >= 0,
				e.entity != owner,
				q.At.Entity != "" && q.At.Resource != "" && e.resource != q.At.Resource,
				!q.From.IsZero() && at.Before(q.From),
				!q.To.IsZero() && !at.Before(q.To):
				continue
			}
			if !yield(e.public(), nil) {
				return
			}
		}
	}
}

// public returns the event with details of its own.
func (e *auditEvent) public() weir.AuditEvent {
	return weir.AuditEvent{
		ID: e.id.String(), At: time.Unix(e.at, 0).UTC(), Action: e.action, Entity: e.entity,
		Principal: e.principal, Resource: e.resource, Details: detailsOf(e.details),
	}
}

// detailsOf returns details with int64s for whole numbers; nil if they are malformed.
func detailsOf(text []byte) map[string]any {
	if text == nil {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var details map[string]any
	if d.Decode(&details) != nil {
		return nil
	}
	return withIntegers(details).(map[string]any)
}

// withIntegers replaces the whole numbers in a value by int64s.
func withIntegers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
	case []any:
		for i := range v {
			v[i] = withIntegers(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = withIntegers(v[name])
		}
	}
	return v
}

// auditOwner returns the entity of the events about a place.
func auditOwner(at weir.Subject) string {
	switch {
	case at.Entity != "":
		return at.Entity
	case at.Resource != "":
		return auditResource + at.Resource
	}
	return auditSystem
}
