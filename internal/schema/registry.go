package schema

import (
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Resources is the registry of the resources that have limits.
type Resources struct {
	Namespace string
	Names     []string // in order
	// Extra are all attributes that the fields do not stand for, as they were read.
	Extra Item
}

// Item returns the item as it is stored. An empty set is left out, since DynamoDB knows none.
func (r *Resources) Item() Item {
	item := newItem(r.Extra, ResourcesKey(r.Namespace), r.Namespace)
	if len(r.Names) > 0 {
		item[AttrResources] = StringSet(r.Names...)
	}
	return item
}

// StringSet is a set of strings as DynamoDB has it, in order.
func StringSet(values ...string) types.AttributeValue {
	return &types.AttributeValueMemberSS{Value: slices.Sorted(slices.Values(values))}
}

// ParseResources reads the registry of resources. One that cannot be read is a [*MalformedError].
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
	// Counts is how many entities have limits, by resource.
	Counts map[string]int64
	// Extra are all attributes that are no counts, as they were read.
	Extra Item
}

// Item returns the item as it is stored. A resource that [RegistryKeeps] is left out.
func (c *EntityConfigResources) Item() Item {
	item := newItem(c.Extra, EntityConfigResourcesKey(c.Namespace), c.Namespace)
	for resource, n := range c.Counts {
		if !RegistryKeeps(resource) {
			item[resource] = Number(n)
		}
	}
	return item
}

// RegistryKeeps reports whether the registry of resources for which entities have limits has the
// attribute for itself, so that no resource of this name can be counted there.
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

// ParseEntityConfigResources reads the registry of resources for which entities have limits. One
// that cannot be read is a [*MalformedError].
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

// systemItem checks the key of one of a namespace's own items and returns the namespace.
func (r *reader) systemItem(sk string) (ns string) {
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
