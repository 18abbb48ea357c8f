package schema

import (
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Resources is the registry of the resources that have limits.
type Resources struct {
	Namespace string
	Names     []string // in order
	// Extra are all attributes that no field holds, as they were read.
	Extra Item
}

// StringSet returns a string set, in order.
func StringSet(values ...string) types.AttributeValue {
	return &types.AttributeValueMemberSS{Value: slices.Sorted(slices.Values(values))}
}

// ParseResources decodes the registry of resources, or returns a [*MalformedError].
func ParseResources(item Item) (*Resources, error) {
	r := newReader(item)
	ns := r.systemItem(SKResources)
	names := optional(r, AttrResources, textSet)
	if r.err != nil {
		return nil, r.err
	}
	return &Resources{ns, names, r.extra()}, nil
}

// EntityConfigResources is the registry of the resources for which entities have limits of their
// own.
type EntityConfigResources struct {
	Namespace string
	// Counts are the numbers of entities with limits, by resource.
	Counts map[string]int64
	// Extra are all attributes that are not counts, as they were read.
	Extra Item
}

// RegistryKeeps reports whether a name is an attribute of the registry itself, so that the registry
// cannot count a resource with this name.
func RegistryKeeps(resource string) bool {
	switch resource {
	case AttrPK, AttrSK, AttrTTL,
		AttrGSI1PK, AttrGSI1SK, AttrGSI2PK, AttrGSI2SK,
		AttrGSI3PK, AttrGSI3SK, AttrGSI4PK, AttrGSI4SK,
		"LSI1SK", "LSI2SK", "LSI3SK", "LSI4SK", "LSI5SK":
		return true
	}
	return false
}

// ParseEntityConfigResources decodes the registry of resources for which entities have limits, or
// returns a [*MalformedError].
func ParseEntityConfigResources(item Item) (*EntityConfigResources, error) {
	r := newReader(item)
	c := &EntityConfigResources{Namespace: r.systemItem(SKEntityConfigResources)}
	c.Counts = make(map[string]int64)
	for _, name := range r.names() {
		if _, ok := r.rest[name].(*types.AttributeValueMemberN); ok && !RegistryKeeps(name) {
			c.Counts[name] = optional(r, name, number)
		}
	}
	if r.err != nil {
		return nil, r.err
	}
	c.Extra = r.extra()
	return c, nil
}

// systemItem checks the key of an item in the system partition and returns the namespace.
func (r *itemReader) systemItem(sk string) (ns string) {
	ns, rest, err := SplitNamespace(r.key.PK)
	r.keyError(err)
	if rest != systemPart {
		r.fail(AttrPK, "is not "+sk+"'s")
	}
	if r.key.SK != sk {
		r.fail(AttrSK, "is not "+sk)
	}
	r.drop(AttrGSI4PK, AttrGSI4SK)
	return ns
}

const (
	attrManagedSystem    = "managed_system"
	attrManagedResources = "managed_resources"
	attrManagedEntities  = "managed_entities"
	attrLastApplied      = "last_applied"
	attrAppliedHash      = "applied_hash"
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
	}
	if r.err != nil {
		return nil, r.err
	}
	p.Extra = r.extra()
	return p, nil
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
