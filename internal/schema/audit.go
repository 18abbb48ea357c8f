package schema

import "strings"

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
