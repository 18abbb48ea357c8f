package admin

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/bucketitem"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/dynamodb/internal/config"
	"github.com/weir-limiter/weir/internal/schema"
)

// MaxConfigsAtOnce is the number of configuration items that one transaction deletes. It leaves
// room for the other items.
const MaxConfigsAtOnce = 80

// deletedLately is the time in which a deletion may be repeated by a caller that got no answer.
const deletedLately = 10 * time.Minute

// DeleteEntity deletes an entity with its limits and its bucket items. The audit and the usage stay.
// The entity's record is deleted last, and before it the items by which the other items are found,
// so that a deletion that was interrupted can be repeated and makes progress each time.
func (a *Admin) DeleteEntity(ctx context.Context, now time.Time, name string) error {
	if err := a.running.Enter(); err != nil {
		return err
	}
	defer a.running.End()
	if err := a.checkClaim(ctx); err != nil {
		return err
	}
	if ended, err := a.buckets.Old.Ended(ctx); err != nil || !ended {
		return cmp.Or(err, error(client.Fault(weir.Unavailable, "entity", name,
			"cannot be deleted while the table is being migrated: its old items would be carried over "+
				"later; try again when weir table migrate has ended")))
	}
	d, err := a.deletable(ctx, name)
	if errors.Is(err, weir.NotFound) {
		return cmp.Or(a.finishDeletion(ctx, now, name), err)
	}
	if err != nil {
		return err
	}
	err = a.deleteDeclared(ctx, now, name, d)
	// Do this after an error too: bucket items may be gone, and a failed write may have been applied.
	return cmp.Or(err, a.forgetDeleted(ctx, now, name))
}

// forgetDeleted makes the process forget its state of an entity.
func (a *Admin) forgetDeleted(ctx context.Context, now time.Time, name string) error {
	return a.buckets.ApplyConfigChange(ctx, bucketitem.ConfigChange{
		Kind: bucketitem.EntityDeleted, At: weir.Subject{Entity: name}, Now: now,
	})
}

func (a *Admin) deleteDeclared(
	ctx context.Context, now time.Time, name string, d *config.Entity,
) error {
	deleted, err := a.deleteBuckets(ctx, name)
	if err != nil {
		return err
	}
	for len(d.Levels) > MaxConfigsAtOnce {
		n, err := a.deleteConfigs(ctx, now, name)
		if err != nil {
			return err
		}
		deleted += n
		if d, err = a.deletable(ctx, name); err != nil {
			return err
		}
	}
	err = a.ChangeConfig(ctx, now, func(ctx context.Context, t *Change) error {
		return a.planDelete(ctx, t, name, deleted)
	})
	if err != nil {
		return err
	}
	// A reservation in flight may have created a bucket item again, by the deleted limits.
	_, err = a.deleteBuckets(ctx, name)
	return err
}

// finishDeletion finishes the deletion of an entity that is no longer declared, if it was deleted
// lately: its caller may have got no answer. It does not delete the bucket items of an entity that
// was never declared.
func (a *Admin) finishDeletion(ctx context.Context, now time.Time, name string) error {
	in := client.Partition(schema.AuditPK(a.config.Namespace, auditOwner(weir.Subject{Entity: name})),
		schema.SKAuditPrefix, true)
	in.ScanIndexForward, in.Limit = new(false), new(int32(client.MaxParallel)) // unordered within a ms
	for page, err := range a.Client.QueryPages(ctx, in) {
		if err != nil {
			return err
		}
		for _, item := range page {
			e, err := readEvent(item)
			if err != nil {
				return client.Unreadable(err)
			}
			if e.Action != schema.ActionEntityDeleted || now.Sub(e.At).Abs() > deletedLately {
				continue
			}
			if _, err := a.deleteBuckets(ctx, name); err != nil {
				return err
			}
			return a.forgetDeleted(ctx, now, name)
		}
		break // older events do not count
	}
	return nil
}

// deletable reads an entity. It returns an error if the entity is not declared or has children.
func (a *Admin) deletable(ctx context.Context, name string) (*config.Entity, error) {
	d, err := a.config.ReadDefinition(ctx, name)
	if err != nil {
		return nil, err
	}
	if !d.Declared() {
		return nil, client.Fault(weir.NotFound, "entity", name, "is not declared")
	}
	if d.Entity != nil {
		// The index may not show the newest child yet.
		if err := a.notParentOf(ctx, name, client.TextOf(d.Entity.Extra, AttrNewestChild)); err != nil {
			return nil, err
		}
	}
	for child, err := range a.childNames(ctx, name, "") {
		if err != nil {
			return nil, err
		}
		// The index may not show either that a child has moved.
		if err := a.notParentOf(ctx, name, child); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// notParentOf returns an error if the entity is the parent of child, which may be empty.
func (a *Admin) notParentOf(ctx context.Context, name, child string) error {
	if child == "" {
		return nil
	}
	e, err := client.Get(ctx, a.Client, schema.MetaKey(a.config.Namespace, child), true,
		schema.ParseEntity)
	if err != nil {
		return err
	}
	if e != nil && e.Parent == name {
		return client.Fault(weir.Conflict, "entity", name, "is the parent of "+child)
	}
	return nil
}

// DeleteUsage deletes the usage of an entity, whether or not it is declared, and returns the number
// of items.
func (a *Admin) DeleteUsage(ctx context.Context, name string) (int64, error) {
	if err := a.running.Enter(); err != nil {
		return 0, err
	}
	defer a.running.End()
	pk := schema.EntityPK(a.config.Namespace, name)
	return a.deleteFound(ctx, client.KeysOnly(client.Partition(pk, schema.SKUsagePrefix, true)))
}

// deleteFound deletes the items of a query page by page, and returns their number.
func (a *Admin) deleteFound(ctx context.Context, in *ddb.QueryInput) (int64, error) {
	var deleted int64
	for page, err := range a.Client.QueryPages(ctx, in) {
		if err != nil {
			return deleted, err
		}
		keys := make([]schema.Key, len(page))
		for i, item := range page {
			if keys[i], err = schema.KeyOf(item); err != nil {
				return deleted, client.Unreadable(err)
			}
		}
		if err := a.Client.BatchDelete(ctx, keys); err != nil {
			return deleted, err
		}
		deleted += int64(len(keys))
	}
	return deleted, nil
}

// deleteBuckets deletes an entity's bucket items and the records of operations on them.
func (a *Admin) deleteBuckets(ctx context.Context, name string) (int64, error) {
	var deleted int64
	for group, err := range a.BucketGroups(ctx, name) {
		if err != nil {
			return deleted, err
		}
		n, err := a.deleteGroup(ctx, group)
		if deleted += n; err != nil {
			return deleted, err
		}
	}
	return deleted, nil
}

// deleteGroup deletes bucket items. The first shards are deleted last, because they lead to the
// other shards and to the records.
func (a *Admin) deleteGroup(ctx context.Context, group []storedBucket) (int64, error) {
	var firsts, others []schema.Key
	for _, b := range group {
		if b.ID.Shard == 0 {
			firsts = append(firsts, b.ID.Key())
		} else {
			others = append(others, b.ID.Key())
		}
	}
	var deleted atomic.Int64
	err := client.Parallel(len(firsts), func(i int) error {
		records := client.KeysOnly(client.Partition(firsts[i].PK, schema.SKOperationPrefix, true))
		n, err := a.deleteFound(ctx, records)
		deleted.Add(n)
		return err
	})
	for _, keys := range [][]schema.Key{others, firsts} {
		if err != nil {
			break
		}
		if err = a.Client.BatchDelete(ctx, keys); err == nil {
			deleted.Add(int64(len(keys)))
		}
	}
	return deleted.Load(), err
}

// deleteConfigs deletes as many configuration items of an entity as one transaction can.
func (a *Admin) deleteConfigs(ctx context.Context, now time.Time, name string) (int64, error) {
	var n int64
	err := a.ChangeConfig(ctx, now, func(ctx context.Context, t *Change) error {
		d, err := a.deletable(ctx, name)
		if err != nil {
			return err
		}
		resources := slices.Sorted(maps.Keys(d.Levels))
		resources = resources[:min(len(resources), MaxConfigsAtOnce)]
		n = int64(len(resources))
		return a.planConfigsGone(ctx, t, name, resources)
	})
	return n, err
}

// planDelete plans the last transaction of a deletion: the entity's remaining configuration and its
// record.
func (a *Admin) planDelete(ctx context.Context, t *Change, name string, deleted int64) error {
	d, err := a.deletable(ctx, name)
	if err != nil {
		return err
	}
	system, err := a.Client.GetItem(ctx, schema.SystemConfigKey(a.config.Namespace), false)
	if err != nil {
		return err
	}
	if err := t.setRetention(system); err != nil {
		return err
	}
	resources := slices.Sorted(maps.Keys(d.Levels))
	if err := a.planConfigsGone(ctx, t, name, resources); err != nil {
		return err
	}
	deleted += int64(len(resources))
	x := &client.Expression{}
	if d.Entity == nil {
		x.RequireAbsent(schema.AttrPK) // the declaration of a child may have created it
		t.Check(schema.MetaKey(a.config.Namespace, name), x)
	} else {
		x.RequireExists(schema.AttrPK)
		requireVersion(x, d.Entity)
		t.Remove(d.Entity.Key(), x)
		deleted++
	}
	return t.addAuditEvent(schema.ActionEntityDeleted, name, "", schema.DeletedDetails(deleted, true))
}

// planConfigsGone deletes configuration items of an entity, and takes them out of the registry.
func (a *Admin) planConfigsGone(
	ctx context.Context, t *Change, name string, resources []string,
) error {
	if len(resources) == 0 {
		return nil
	}
	registry, err := a.Client.GetItem(ctx, schema.EntityConfigResourcesKey(a.config.Namespace), true)
	if err != nil {
		return err
	}
	for _, resource := range resources {
		x := &client.Expression{}
		x.RequireExists(schema.AttrPK)
		t.Remove(schema.EntityConfigKey(a.config.Namespace, name, resource), x)
	}
	return t.unregister(registry, resources...)
}
