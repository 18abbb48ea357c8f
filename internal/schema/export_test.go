package schema

// In production, updates of one name or count write the registries. Tests write them as a whole, to
// check that a reader loses nothing.

// Item returns the item as it is stored. DynamoDB has no empty sets, so an empty set is left out.
func (r *Resources) Item() Item {
	item := newItem(r.Extra, ResourcesKey(r.Namespace), r.Namespace)
	if len(r.Names) > 0 {
		item[AttrResources] = StringSet(r.Names...)
	}
	return item
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
