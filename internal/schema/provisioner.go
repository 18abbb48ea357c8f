package schema

import (
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const (
	attrManagedSystem    = "managed_system"
	attrManagedResources = "managed_resources"
	attrManagedEntities  = "managed_entities"
	attrLastApplied      = "last_applied"
	attrAppliedHash      = "applied_hash"

	// The attributes below are weir's own.
	attrDeclaredEntities = "weir_entities"
	attrDeclaredSettings = "weir_settings"
	attrDeclaredAgain    = "weir_again"
	attrDeclaredRevision = "weir_revision"
	attrAppliedBy        = "weir_applied_by"

	// AttrApplyID is the ID in an [ApplyMark].
	AttrApplyID = "apply_id"
	// AttrApplyAt is the time in an [ApplyMark].
	AttrApplyAt = "applying_at"
	attrApplyBy = "applying_by"

	settingPolicy    = "on_unavailable"
	settingRetention = "retention"
)

// Provisioner is the record of declared limits in a namespace.
type Provisioner struct {
	Namespace string
	// System reports whether the namespace's own limits are declared.
	System bool
	// Resources are the resources whose limits are declared.
	Resources []string
	// Entities are the resources for which limits are declared, by entity.
	Entities map[string][]string
	// AppliedAt is the time at which they were last applied, formatted by [OffsetTimestamp].
	AppliedAt string
	// Hash is the hash of the limits applied: "sha256:" and 64 hexadecimal digits.
	Hash string
	// Own are weir's own attributes; nil if the Python library wrote the item.
	Own *OwnDeclared
	// Unlisted is true if the item is not in GSI4, as the Python library writes it, so that a purge
	// by the library leaves it behind. weir writes the item so only if it was read so.
	Unlisted bool
	// Extra are all attributes that no field holds, as they were read.
	Extra Item
}

// Item returns the item as it is stored.
func (p *Provisioner) Item() Item {
	item := newItem(p.Extra, ProvisionerKey(p.Namespace), p.Namespace)
	if p.Unlisted {
		delete(item, AttrGSI4SK)
	}
	entities := make(Item, len(p.Entities))
	for entity, resources := range p.Entities {
		entities[entity] = stringList(resources)
	}
	item[attrManagedSystem] = Bool(p.System)
	item[attrManagedResources] = stringList(p.Resources)
	item[attrManagedEntities] = &types.AttributeValueMemberM{Value: entities}
	setText(item, attrLastApplied, p.AppliedAt)
	setText(item, attrAppliedHash, p.Hash)
	if p.Own != nil {
		p.Own.add(item)
	}
	return item
}

// ParseProvisioner decodes the item, or returns a [*MalformedError].
func ParseProvisioner(item Item) (*Provisioner, error) {
	r := newReader(item)
	ns := r.systemItem(SKProvisioner)
	_, listed := item[AttrGSI4SK]
	p := &Provisioner{
		Namespace: ns,
		System:    optional(r, attrManagedSystem, truth),
		Resources: optional(r, attrManagedResources, textList),
		Entities:  optional(r, attrManagedEntities, textLists),
		AppliedAt: optional(r, attrLastApplied, textOrNull),
		Hash:      optional(r, attrAppliedHash, textOrNull),
		Unlisted:  !listed,
		Own:       readOwnDeclared(r),
	}
	if r.err != nil {
		return nil, r.err
	}
	p.Extra = r.extra()
	return p, nil
}

// OwnDeclared has the attributes of declared limits that weir records and the Python library lacks.
type OwnDeclared struct {
	// Entities are the entities whose parent and cascade are declared, in order.
	Entities []string
	// Policy and Retention say that the system's on_unavailable and retention are declared.
	Policy, Retention bool
	// Again are the entities whose change must be made again, in order.
	Again []string
	// Revision is raised by each write. It is above 0.
	Revision int64
	// AppliedBy applied the limits last; empty if unknown.
	AppliedBy string
}

// ApplyMark is the item of an apply of declared limits that is under way. It is apart from the
// record because each change of the apply is made on condition of it, and DynamoDB charges a
// condition by the size of the item. Only weir writes and reads it.
type ApplyMark struct {
	Namespace string
	// ID is random.
	ID string
	// By is who applies; empty if unknown.
	By string
	// AtMS is when the apply last said that it is under way, in Unix milliseconds.
	AtMS int64
	// Extra are all attributes that no field holds, as they were read.
	Extra Item
}

// Item returns the item as it is stored.
func (m *ApplyMark) Item() Item {
	item := newItem(m.Extra, ApplyMarkKey(m.Namespace), m.Namespace)
	item[AttrApplyID] = String(m.ID)
	item[attrApplyBy] = StringOrNull(m.By)
	item[AttrApplyAt] = Number(m.AtMS)
	return item
}

// ParseApplyMark decodes the item, or returns a [*MalformedError].
func ParseApplyMark(item Item) (*ApplyMark, error) {
	r := newReader(item)
	m := &ApplyMark{
		Namespace: r.systemItem(SKApplyMark),
		ID:        required(r, AttrApplyID, text),
		By:        optional(r, attrApplyBy, textOrNull),
		AtMS:      required(r, AttrApplyAt, number),
	}
	if r.err != nil {
		return nil, r.err
	}
	m.Extra = r.extra()
	return m, nil
}

// add adds the attributes to an item.
func (o *OwnDeclared) add(item Item) {
	setSet := func(name string, values []string) {
		if len(values) > 0 { // DynamoDB has no empty sets
			item[name] = StringSet(values...)
		}
	}
	var settings []string
	if o.Policy {
		settings = append(settings, settingPolicy)
	}
	if o.Retention {
		settings = append(settings, settingRetention)
	}
	setSet(attrDeclaredEntities, o.Entities)
	setSet(attrDeclaredSettings, settings)
	setSet(attrDeclaredAgain, o.Again)
	item[attrDeclaredRevision] = Number(o.Revision)
	setText(item, attrAppliedBy, o.AppliedBy)
}

// readOwnDeclared decodes weir's own attributes; nil if there are none.
func readOwnDeclared(r *itemReader) *OwnDeclared {
	if _, ok := r.rest[attrDeclaredRevision]; !ok {
		return nil
	}
	settings := optional(r, attrDeclaredSettings, textSet)
	return &OwnDeclared{
		Entities:  optional(r, attrDeclaredEntities, textSet),
		Policy:    slices.Contains(settings, settingPolicy),
		Retention: slices.Contains(settings, settingRetention),
		Again:     optional(r, attrDeclaredAgain, textSet),
		Revision:  optional(r, attrDeclaredRevision, above0),
		AppliedBy: optional(r, attrAppliedBy, text),
	}
}

// RequireAsRead are the attributes that a writer of the record must find as it read them. The
// Python library writes the item again, without the revision.
func (*Provisioner) RequireAsRead() []string {
	return []string{attrAppliedHash, attrLastApplied, attrDeclaredRevision}
}

// textLists decodes a map of lists of strings.
func textLists(value types.AttributeValue) (m map[string][]string, reason string) {
	v, ok := value.(*types.AttributeValueMemberM)
	if !ok {
		return nil, "is not a map"
	}
	m = make(map[string][]string, len(v.Value))
	for _, name := range slices.Sorted(maps.Keys(v.Value)) {
		if m[name], reason = textList(v.Value[name]); reason != "" {
			return nil, "has under " + name + " what " + reason
		}
	}
	return m, ""
}
