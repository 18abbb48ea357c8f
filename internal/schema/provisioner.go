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
)

// Provisioner is what declared limits are in charge of in a namespace.
type Provisioner struct {
	Namespace string
	// System is whether the namespace's own limits are declared.
	System bool
	// Resources are the resources whose limits are declared.
	Resources []string
	// Entities are the resources for which limits are declared, by entity.
	Entities map[string][]string
	// AppliedAt is when they were applied last, as [OffsetTimestamp] writes it.
	AppliedAt string
	// Hash is that of what was applied: "sha256:" and 64 hexadecimal digits.
	Hash string
	// Unlisted is true where the item is not in GSI4, as the Python library writes it: purging the
	// namespace there leaves it behind. weir writes it only where it was so.
	Unlisted bool
	// Extra are all attributes that the fields do not stand for, as they were read.
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

// ParseProvisioner reads the item. One that cannot be read is a [*MalformedError].
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

// textLists reads a map of lists of strings.
func textLists(value types.AttributeValue) (m map[string][]string, reason string) {
	v, ok := value.(*types.AttributeValueMemberM)
	if !ok {
		return nil, "is no map"
	}
	m = make(map[string][]string, len(v.Value))
	for _, name := range slices.Sorted(maps.Keys(v.Value)) {
		if m[name], reason = textList(v.Value[name]); reason != "" {
			return nil, "has under " + name + " what " + reason
		}
	}
	return m, ""
}
