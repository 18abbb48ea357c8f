package schema

import (
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
