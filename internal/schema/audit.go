package schema

import (
	"strings"
)

// Actions that the audit knows.
const (
	ActionEntityCreated       = "entity_created"
	ActionEntityDeleted       = "entity_deleted"
	ActionEntityParentChanged = "entity_parent_changed"
	ActionLimitsSet           = "limits_set"
	ActionLimitsDeleted       = "limits_deleted"
	ActionBucketReset         = "bucket_reset"
	ActionBucketToppedUp      = "bucket_topped_up"
)

const (
	// AuditSystem stands for the namespace itself where the audit names an entity.
	AuditSystem = "$SYSTEM"
	// RetentionDays is how long audit events are kept where nothing is said.
	RetentionDays = 90

	attrEventID   = "event_id"
	attrTimestamp = "timestamp"
	attrPrincipal = "principal"
	attrDetails   = "details"
)

// AuditResource stands for a resource where the audit names an entity.
func AuditResource(resource string) string { return "$RESOURCE:" + resource }

// AuditEvent is an event of the audit.
type AuditEvent struct {
	Namespace string
	// Entity is what was changed: an entity, [AuditSystem] or an [AuditResource].
	Entity string
	// ID is a ULID, see [NewULID]: events are in the order of their IDs.
	ID string
	// Timestamp is when it was, as [Timestamp] writes it.
	Timestamp string
	Action    string
	// Principal is who did it; empty if nobody knows.
	Principal string
	// Resource is what it was about; empty if nothing particular.
	Resource string
	// Details depend on the action; values as [EncodeMap] takes them.
	Details map[string]any
	// TTL is when DynamoDB may delete the item, in Unix seconds; 0 for never.
	TTL int64
	// Extra are all attributes that the fields do not stand for, as they were read.
	Extra Item
}

// Item returns the item as it is stored. Details that cannot be stored are an error.
func (e *AuditEvent) Item() (Item, error) {
	details, err := encodeMap(attrDetails, e.Details, 1)
	if err != nil {
		return nil, err
	}
	item := newItem(e.Extra, AuditKey(e.Namespace, e.Entity, e.ID), e.Namespace)
	item[AttrEntity] = String(e.Entity)
	item[attrEventID] = String(e.ID)
	item[attrTimestamp] = String(e.Timestamp)
	item[AttrAction] = String(e.Action)
	item[attrPrincipal] = StringOrNull(e.Principal)
	item[AttrResource] = StringOrNull(e.Resource)
	item[attrDetails] = details
	setNumber(item, AttrTTL, e.TTL)
	return item, nil
}

// ParseAuditEvent reads the item. One that cannot be read is a [*MalformedError].
func ParseAuditEvent(item Item) (*AuditEvent, error) {
	r := newReader(item)
	ns, entity, err := ParseAuditPK(r.key.PK)
	r.keyError(err)
	id, ok := strings.CutPrefix(r.key.SK, SKAuditPrefix)
	if !ok {
		r.fail(AttrSK, "is no audit event's")
	}
	r.optionalSame(AttrEntity, entity)
	r.optionalSame(attrEventID, id)
	r.drop(AttrGSI4PK, AttrGSI4SK)
	e := &AuditEvent{
		Namespace: ns,
		Entity:    entity,
		ID:        id,
		Timestamp: optional(r, attrTimestamp, text),
		Action:    required(r, AttrAction, text),
		Principal: optional(r, attrPrincipal, textOrNull),
		Resource:  optional(r, AttrResource, textOrNull),
		Details:   optional(r, attrDetails, anyMap),
		TTL:       optional(r, AttrTTL, number),
	}
	if r.err != nil {
		return nil, r.err
	}
	e.Extra = r.extra()
	return e, nil
}

// The details of audit events, as the Python library has them for each action.

// CreatedDetails are those of an entity that was made.
func CreatedDetails(e *Entity) map[string]any {
	metadata := e.Metadata
	if metadata == nil {
		metadata = map[string]any{}
	}
	return map[string]any{
		AttrName: e.Name, AttrParent: orNil(e.Parent), AttrCascade: e.Cascade, AttrMetadata: metadata,
	}
}

// DeletedDetails are those of an entity of which some items were deleted; complete is false where
// some are left.
func DeletedDetails(items int64, complete bool) map[string]any {
	return map[string]any{"records_deleted": items, "complete": complete}
}

// ParentChangedDetails are those of an entity with another parent, of which some bucket items know.
// Either parent may be empty.
func ParentChangedDetails(before string, e *Entity, buckets int64) map[string]any {
	return map[string]any{
		"old_parent_id": orNil(before), AttrParent: orNil(e.Parent), AttrPGen: e.Generation,
		"buckets_stamped": buckets,
	}
}

// LimitsDetails are those of limits that were set for an entity or a resource.
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

// SystemLimitsDetails are those of limits that were set for the namespace, with what is to be done
// while the table does not answer: empty if nothing was said.
func SystemLimitsDetails(limits []Limit, onUnavailable string) map[string]any {
	details := LimitsDetails(limits)
	details[AttrOnUnavailable] = orNil(onUnavailable)
	return details
}

// SystemDeletedDetails are those of the namespace's limits that were deleted. Deleting those of a
// resource or an entity has no details.
func SystemDeletedDetails(limits []Limit, onUnavailable string) map[string]any {
	list := make([]any, len(limits))
	for i, l := range limits {
		list[i] = l.Name
	}
	return map[string]any{"limits": list, AttrOnUnavailable: orNil(onUnavailable)}
}

// AccessDetails are those of a level that says something else about access, of which some bucket
// items know. The action is [ActionLimitsSet].
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

// CascadeDetails are those of a level that says something else about cascade; nil if it does not
// say any more. The action is [ActionLimitsSet].
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
