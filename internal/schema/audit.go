package schema

import (
	"strings"
)

// The actions of the audit.
const (
	ActionEntityCreated       = "entity_created"
	ActionEntityDeleted       = "entity_deleted"
	ActionEntityParentChanged = "entity_parent_changed"
	ActionLimitsSet           = "limits_set"
	ActionLimitsDeleted       = "limits_deleted"
	ActionBucketReset         = "bucket_reset"
	ActionBucketToppedUp      = "bucket_topped_up"
	ActionRetentionSet        = "retention_set" // only weir writes it
)

const (
	// AuditSystem is the entity of events about the namespace itself.
	AuditSystem = "$SYSTEM"
	// RetentionDays is the default retention of audit events in days.
	RetentionDays = 90

	attrEventID   = "event_id"
	attrPrincipal = "principal"

	// AttrTimestamp is the attribute with the time of an event.
	AttrTimestamp = "timestamp"
	// AttrDetails is the attribute with the details of an event.
	AttrDetails = "details"
)

// AuditResource is the entity of events about a resource.
func AuditResource(resource string) string { return "$RESOURCE:" + resource }

// AuditEvent is an event of the audit.
type AuditEvent struct {
	Namespace string
	// Entity is the subject of the change: an entity, [AuditSystem] or an [AuditResource].
	Entity string
	// ID is a ULID, see [NewULID]: the order of IDs is the order of events.
	ID string
	// Timestamp is the time of the change, formatted by [Timestamp].
	Timestamp string
	Action    string
	// Principal made the change; empty if unknown.
	Principal string
	// Resource is the resource concerned; empty if none in particular.
	Resource string
	// Details depend on the action. [EncodeMap] lists their types.
	Details map[string]any
	// TTL is the time from which DynamoDB may delete the item, in Unix seconds; 0 for never.
	TTL int64
	// Extra are all attributes that no field holds, as they were read.
	Extra Item
}

// Item returns the item as it is stored, or an error for details that cannot be stored.
func (e *AuditEvent) Item() (Item, error) {
	details, err := encodeMap(AttrDetails, e.Details, 1)
	if err != nil {
		return nil, err
	}
	item := newItem(e.Extra, AuditKey(e.Namespace, e.Entity, e.ID), e.Namespace)
	item[AttrEntity] = String(e.Entity)
	item[attrEventID] = String(e.ID)
	item[AttrTimestamp] = String(e.Timestamp)
	item[AttrAction] = String(e.Action)
	item[attrPrincipal] = StringOrNull(e.Principal)
	item[AttrResource] = StringOrNull(e.Resource)
	item[AttrDetails] = details
	setNumber(item, AttrTTL, e.TTL)
	return item, nil
}

// ParseAuditEvent decodes the item, or returns a [*MalformedError].
func ParseAuditEvent(item Item) (*AuditEvent, error) {
	r := newReader(item)
	ns, entity, err := ParseAuditPK(r.key.PK)
	r.keyError(err)
	id, ok := strings.CutPrefix(r.key.SK, SKAuditPrefix)
	if !ok {
		r.fail(AttrSK, "is not that of an audit event")
	}
	r.optionalSame(AttrEntity, entity)
	r.optionalSame(attrEventID, id)
	r.drop(AttrGSI4PK, AttrGSI4SK)
	e := &AuditEvent{
		Namespace: ns,
		Entity:    entity,
		ID:        id,
		Timestamp: optional(r, AttrTimestamp, text),
		Action:    required(r, AttrAction, text),
		Principal: optional(r, attrPrincipal, textOrNull),
		Resource:  optional(r, AttrResource, textOrNull),
		Details:   optional(r, AttrDetails, anyMap),
		TTL:       optional(r, AttrTTL, number),
	}
	if r.err != nil {
		return nil, r.err
	}
	e.Extra = r.extra()
	return e, nil
}

// The functions below return the details of each action as the Python library writes them.

// CreatedDetails returns the details of the creation of an entity.
func CreatedDetails(e *Entity) map[string]any {
	metadata := e.Metadata
	if metadata == nil {
		metadata = map[string]any{}
	}
	return map[string]any{
		AttrName: e.Name, AttrParent: orNil(e.Parent), AttrCascade: e.Cascade, AttrMetadata: metadata,
	}
}

// DeletedDetails returns the details of the deletion of an entity with a number of items; complete
// is false if some items are left.
func DeletedDetails(items int64, complete bool) map[string]any {
	return map[string]any{"records_deleted": items, "complete": complete}
}

// ParentChangedDetails returns the details of a change of parent that stamped a number of bucket
// items. Either parent may be empty.
func ParentChangedDetails(before string, e *Entity, buckets int64) map[string]any {
	return map[string]any{
		"old_parent_id": orNil(before), AttrParent: orNil(e.Parent), AttrPGen: e.Generation,
		"buckets_stamped": buckets,
	}
}

// LimitsDetails returns the details of setting the limits of an entity or a resource.
func LimitsDetails(limits []Limit) map[string]any {
	list := make([]any, len(limits))
	for i, l := range limits {
		list[i] = map[string]any{
			"name": l.Name, "capacity": l.Capacity,
			"refill_amount": l.Refill, "refill_period_seconds": l.Seconds,
		}
	}
	return map[string]any{"limits": list}
}

// SystemLimitsDetails returns the details of setting the limits of the namespace, with its
// on_unavailable; empty if it has none.
func SystemLimitsDetails(limits []Limit, onUnavailable string) map[string]any {
	details := LimitsDetails(limits)
	details[AttrOnUnavailable] = orNil(onUnavailable)
	return details
}

// SystemDeletedDetails returns the details of deleting the limits of the namespace. Deleting those
// of a resource or an entity has no details.
func SystemDeletedDetails(limits []Limit, onUnavailable string) map[string]any {
	list := make([]any, len(limits))
	for i, l := range limits {
		list[i] = l.Name
	}
	return map[string]any{"limits": list, AttrOnUnavailable: orNil(onUnavailable)}
}

// AccessDetails returns the details of a change of a level's access that stamped a number of bucket
// items. The action is [ActionLimitsSet].
func AccessDetails(access Access, buckets int64) map[string]any {
	var value any
	switch access {
	case AccessOff, AccessOn:
		value = access == AccessOff
	case AccessBypass:
		value = bypassed
	}
	return map[string]any{AttrDisabled: value, "buckets_stamped": buckets}
}

// CascadeDetails returns the details of a change of a level's cascade, nil if it is unset, that
// stamped a number of bucket items. The action is [ActionLimitsSet].
func CascadeDetails(cascade *bool, buckets int64) map[string]any {
	var value any
	if cascade != nil {
		value = *cascade
	}
	return map[string]any{AttrCascade: value, "buckets_stamped": buckets}
}

func orNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}
