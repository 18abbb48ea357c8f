package dynamodb

import (
	"context"
	"maps"
	"slices"

	"github.com/weir-limiter/weir/internal/schema"
)

// register counts an entity's first configuration on a resource.
func (t *configTransaction) register(resource string) {
	key := schema.EntityConfigResourcesKey(t.namespace)
	e := t.inNamespace(key)
	e.addNumber(resource, 1)
	t.update(key, e)
}

// unregister takes entities' configurations off the registry as it was read, which may be nil. A
// resource that nobody is left on goes.
func (t *configTransaction) unregister(read schema.Item, resources ...string) error {
	counts := map[string]int64{}
	if read != nil {
		r, err := schema.ParseEntityConfigResources(read)
		if err != nil {
			return unreadable(err)
		}
		counts = r.Counts
	}
	key := schema.EntityConfigResourcesKey(t.namespace)
	e := t.inNamespace(key)
	changes := false
	for _, resource := range resources {
		n, counted := counts[resource]
		switch {
		case !counted:
			continue // another program has not counted it
		case n > 1:
			e.addNumber(resource, -1)
			e.require(resource, ">", 1)
		default:
			e.removeAll(resource)
			e.require(resource, "<=", 1)
		}
		changes = true
	}
	if changes {
		t.update(key, e)
	}
	return nil
}

// listResource puts a resource on the list of those with limits, or takes it off.
func (t *configTransaction) listResource(resource string, listed bool) {
	key := schema.ResourcesKey(t.namespace)
	e := t.inNamespace(key)
	update := *e.update()
	clause := " DELETE "
	if listed {
		clause = " ADD "
	}
	update += clause + e.name(schema.AttrResources) + " " + e.value(schema.StringSet(resource))
	t.updateBy(key, &update, e)
}

// inNamespace begins the update of an item that may not be there yet, so that the namespace's index
// has it.
func (t *configTransaction) inNamespace(key schema.Key) *expression {
	e := &expression{}
	e.setIfAbsent(schema.AttrGSI4PK, schema.String(t.namespace))
	e.setIfAbsent(schema.AttrGSI4SK, schema.String(key.PK))
	return e
}

// ConfiguredResources returns, in order, the resources that have limits of their own.
func (s *Store) ConfiguredResources(ctx context.Context) ([]string, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.running.end()
	item, err := s.getItem(ctx, schema.ResourcesKey(s.namespace), consistent(ctx))
	if err != nil || item == nil {
		return nil, err
	}
	r, err := schema.ParseResources(item)
	if err != nil {
		return nil, unreadable(err)
	}
	return r.Names, nil
}

// EntityConfigResources returns, in order, the resources for which entities have limits of their
// own, [weir.DefaultResource] among them.
func (s *Store) EntityConfigResources(ctx context.Context) ([]string, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.running.end()
	item, err := s.getItem(ctx, schema.EntityConfigResourcesKey(s.namespace), consistent(ctx))
	if err != nil || item == nil {
		return nil, err
	}
	r, err := schema.ParseEntityConfigResources(item)
	if err != nil {
		return nil, unreadable(err)
	}
	maps.DeleteFunc(r.Counts, func(_ string, n int64) bool { return n <= 0 })
	return slices.Sorted(maps.Keys(r.Counts)), nil
}
