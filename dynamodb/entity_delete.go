package dynamodb

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
)

// maxConfigsAtOnce is how many configurations one transaction deletes, with room for the rest.
const maxConfigsAtOnce = 80

// DeleteEntity removes an entity with its limits, its buckets and its usage; the audit stays. The
// META goes last, so that what was cut short can be done again.
func (s *Store) DeleteEntity(ctx context.Context, now time.Time, name string) error {
	d, err := s.deletable(ctx, name)
	if err != nil {
		return err
	}
	deleted, err := s.deleteState(ctx, name)
	if err != nil {
		return err
	}
	for len(d.levels) > maxConfigsAtOnce {
		n, err := s.deleteConfigs(ctx, now, name)
		if err != nil {
			return err
		}
		deleted += n
		if d, err = s.deletable(ctx, name); err != nil {
			return err
		}
	}
	err = s.changeConfig(ctx, now, func(ctx context.Context, t *transaction) error {
		return s.planDelete(ctx, t, name, deleted)
	})
	if err != nil {
		return err
	}
	// A reservation on its way has perhaps made a bucket again, by limits that are gone.
	if _, err := s.deleteBuckets(ctx, name); err != nil {
		return err
	}
	return s.afterConfigChange(ctx, configChange{
		kind: entityDeleted, at: weir.Subject{Entity: name}, now: now,
	})
}

// deletable reads an entity, and refuses one that is not declared and one with children.
func (s *Store) deletable(ctx context.Context, name string) (*definition, error) {
	d, err := s.readDefinition(ctx, name)
	if err != nil {
		return nil, err
	}
	if !d.known() {
		return nil, fault(weir.NotFound, "entity", name, "is not declared")
	}
	for child, err := range s.childNames(ctx, name, "") {
		if err != nil {
			return nil, err
		}
		// The index may not know yet that the child has moved.
		item, err := s.getItem(ctx, schema.MetaKey(s.namespace, child), true)
		if err != nil {
			return nil, err
		}
		e, err := parseEntity(item)
		if err != nil {
			return nil, err
		}
		if e != nil && e.Parent == name {
			return nil, fault(weir.Conflict, "entity", name, "is the parent of "+child)
		}
	}
	return d, nil
}

// deleteState deletes all items of an entity but its META and its configurations. What others can
// only be found by goes last.
func (s *Store) deleteState(ctx context.Context, name string) (int64, error) {
	deleted, err := s.deleteBuckets(ctx, name)
	if err != nil {
		return 0, err
	}
	usage, err := s.queryAll(ctx, keysOnly(
		partition(schema.EntityPK(s.namespace, name), schema.SKUsagePrefix, true)))
	if err != nil {
		return 0, err
	}
	n, err := s.deleteAll(ctx, usage)
	return deleted + n, err
}

// deleteBuckets deletes an entity's buckets with the records of operations on them.
func (s *Store) deleteBuckets(ctx context.Context, name string) (int64, error) {
	ids, err := s.shardsOf(ctx, name)
	if err != nil {
		return 0, err
	}
	var records []schema.Item
	keys := make([]schema.Key, len(ids))
	for i, id := range ids {
		keys[i] = id.Key()
		if id.Shard != 0 {
			continue
		}
		found, err := s.queryAll(ctx, keysOnly(partition(id.PK(), schema.SKOperationPrefix, true)))
		if err != nil {
			return 0, err
		}
		records = append(records, found...)
	}
	n, err := s.deleteAll(ctx, records)
	if err != nil {
		return n, err
	}
	return n + int64(len(keys)), s.batchDelete(ctx, keys)
}

func (s *Store) deleteAll(ctx context.Context, items []schema.Item) (int64, error) {
	keys := make([]schema.Key, len(items))
	for i, item := range items {
		key, err := schema.KeyOf(item)
		if err != nil {
			return 0, unreadable(err)
		}
		keys[i] = key
	}
	return int64(len(keys)), s.batchDelete(ctx, keys)
}

// deleteConfigs deletes as many configurations of an entity as one transaction may.
func (s *Store) deleteConfigs(ctx context.Context, now time.Time, name string) (int64, error) {
	var n int64
	err := s.changeConfig(ctx, now, func(ctx context.Context, t *transaction) error {
		d, err := s.deletable(ctx, name)
		if err != nil {
			return err
		}
		resources := slices.Sorted(maps.Keys(d.levels))
		resources = resources[:min(len(resources), maxConfigsAtOnce)]
		n = int64(len(resources))
		return s.planConfigsGone(ctx, t, name, resources)
	})
	return n, err
}

// planDelete says what has to be written, so that an entity of which the rest is gone is gone too.
func (s *Store) planDelete(ctx context.Context, t *transaction, name string, deleted int64) error {
	d, err := s.deletable(ctx, name)
	if err != nil {
		return err
	}
	system, err := s.getItem(ctx, schema.SystemConfigKey(s.namespace), false)
	if err != nil {
		return err
	}
	if err := t.keepFor(system); err != nil {
		return err
	}
	resources := slices.Sorted(maps.Keys(d.levels))
	if err := s.planConfigsGone(ctx, t, name, resources); err != nil {
		return err
	}
	deleted += int64(len(resources))
	if d.entity != nil {
		x := &expression{}
		x.exists(schema.AttrPK)
		t.remove(d.entity.Key(), x)
		deleted++
	}
	return t.record(schema.ActionEntityDeleted, name, "", schema.DeletedDetails(deleted, true))
}

// planConfigsGone takes configurations of an entity away, and off the registry.
func (s *Store) planConfigsGone(
	ctx context.Context, t *transaction, name string, resources []string,
) error {
	if len(resources) == 0 {
		return nil
	}
	registry, err := s.getItem(ctx, schema.EntityConfigResourcesKey(s.namespace), true)
	if err != nil {
		return err
	}
	for _, resource := range resources {
		x := &expression{}
		x.exists(schema.AttrPK)
		t.remove(schema.EntityConfigKey(s.namespace, name, resource), x)
	}
	return t.unregister(registry, resources...)
}
