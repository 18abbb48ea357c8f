package admin

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"slices"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/change"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/dynamodb/internal/config"
	"github.com/weir-limiter/weir/internal/schema"
)

// A version is a hash of the content of items. It is checked against a consistent read, and the
// transaction of the change requires the items to be as they were read. The attributes of a META
// are known, so the transaction names all of them. Those of a configuration item are not: its
// limits may have any names, and DynamoDB cannot require that an item has no others. So a change
// on condition marks the item with an edition before it reads it for good, and the transaction
// requires the edition; see [schema.Config.Edition].

// ReadPlace returns the limits at a place with their version, by a consistent read. It leaves out
// limits that weir does not support, and reports them to Options.OnError.
func (a *Admin) ReadPlace(ctx context.Context, at weir.Subject) (*change.Place, error) {
	if err := a.running.Enter(); err != nil {
		return nil, err
	}
	defer a.running.End()
	key := (&schema.Config{Namespace: a.config.Namespace, Entity: at.Entity, Resource: at.Resource}).Key()
	item, err := a.Client.GetItem(ctx, key, true)
	if err != nil {
		return nil, err
	}
	level := config.ParseLevel("", item)
	a.report(level.Fault)
	return &change.Place{Limits: level.Limits, Version: placeVersion(item)}, nil
}

// placeVersion returns the version of a place's item, which may be nil; empty if it has no
// limits.
func placeVersion(item schema.Item) string {
	if !config.ParseLevel("", item).HasLimits() {
		return ""
	}
	return schema.PlaceVersion(item)
}

// mark returns a configuration item as it is in the table, with an edition. item is how it was
// read; it may be nil. If the item is gone, mark returns nil.
func (a *Admin) mark(ctx context.Context, key schema.Key, item schema.Item) (schema.Item, error) {
	if item == nil || client.TextOf(item, schema.AttrEdition) != "" {
		return item, nil
	}
	edition, err := schema.NewEdition(rand.Reader)
	if err != nil {
		return nil, err
	}
	x := &client.Expression{}
	x.RequireExists(schema.AttrPK)
	x.SetIfAbsent(schema.AttrEdition, schema.String(edition))
	in := &ddb.UpdateItemInput{
		TableName: &a.Client.TableName, Key: key.Item(), UpdateExpression: x.Update(),
		ConditionExpression: x.Condition(), ExpressionAttributeNames: x.Names,
		ExpressionAttributeValues: x.Values, ReturnValues: types.ReturnValueAllNew,
	}
	for attempt := range maxSends {
		var out *ddb.UpdateItemOutput
		out, err = a.Client.API.UpdateItem(ctx, in)
		switch client.OutcomeOf(err).Kind {
		case client.WriteApplied:
			return out.Attributes, nil
		case client.WriteRefused:
			return nil, nil
		case client.WriteConflicted, client.WriteThrottled:
			if waiting := client.BackOff(ctx, attempt); waiting != nil {
				return nil, client.Classify(err)
			}
		default:
			return nil, client.Classify(err) // the SDK has retried already
		}
	}
	return nil, client.Classify(err)
}

// RemoveEntity is [Admin.DeleteEntity] on condition that the entity is as o requires. Then the
// entity's record is deleted first, together with its limits, so that nothing is deleted if it is
// not.
func (a *Admin) RemoveEntity(
	ctx context.Context, now time.Time, name string, o change.Options,
) error {
	if o.IsZero() {
		return a.DeleteEntity(ctx, now, name)
	}
	if err := a.running.Enter(); err != nil {
		return err
	}
	defer a.running.End()
	d, err := a.config.ReadDefinition(ctx, name)
	if err != nil {
		return err
	}
	if !d.Declared() { // an earlier call may have been interrupted
		if err := a.finishDeletion(ctx, now, name); err != nil {
			return err
		}
	}
	if err := o.Check(d.Version(), "the entity "+name); err != nil {
		return err
	}
	if len(d.Levels) > MaxConfigsAtOnce {
		return client.Fault(weir.Unsupported, "version", o.IfVersion,
			"cannot be required here: the entity has more limits than one transaction can delete: delete it without a version")
	}
	err = a.ChangeConfig(ctx, now, func(ctx context.Context, t *Change) error {
		return a.planRemove(ctx, t, name, o)
	})
	if err == nil {
		_, err = a.deleteBuckets(ctx, name)
	}
	// Do this after an error too: a failed write may have been applied.
	return errors.Join(err, a.forgetDeleted(ctx, now, name))
}

// planRemove plans the deletion of an entity with all its limits if it is as o requires.
func (a *Admin) planRemove(ctx context.Context, t *Change, name string, o change.Options) error {
	d, err := a.config.ReadDefinition(ctx, name)
	if err != nil {
		return err
	}
	if err := o.Check(d.Version(), "the entity "+name); err != nil {
		return err
	}
	resources := slices.Sorted(maps.Keys(d.Items))
	err = client.Parallel(len(resources), func(i int) error {
		key := schema.EntityConfigKey(a.config.Namespace, name, resources[i])
		_, err := a.mark(ctx, key, d.Items[resources[i]])
		return err
	})
	if err != nil {
		return err
	}
	if d, err = a.deletable(ctx, name); errors.Is(err, weir.NotFound) {
		return o.Check("", "the entity "+name)
	}
	if err != nil {
		return err
	}
	if err := o.Check(d.Version(), "the entity "+name); err != nil {
		return err
	}
	return a.planDeleteAsRead(ctx, t, name, d)
}

// planDeleteAsRead plans the deletion of an entity's record and limits, on condition that they
// are as they were read.
func (a *Admin) planDeleteAsRead(
	ctx context.Context, t *Change, name string, d *config.Entity,
) error {
	items, err := a.Client.BatchGet(ctx, []schema.Key{
		schema.SystemConfigKey(a.config.Namespace), schema.EntityConfigResourcesKey(a.config.Namespace),
	}, true)
	if err != nil {
		return err
	}
	if err := t.setRetention(items[0]); err != nil {
		return err
	}
	resources := slices.Sorted(maps.Keys(d.Items))
	for _, resource := range resources {
		x := &client.Expression{}
		x.RequireExists(schema.AttrPK)
		for _, attribute := range []string{schema.AttrEdition, schema.AttrDisabled, schema.AttrCascade} {
			x.RequireUnchanged(d.Items[resource], attribute)
		}
		t.Remove(schema.EntityConfigKey(a.config.Namespace, name, resource), x)
	}
	if len(resources) > 0 {
		if err := t.unregister(items[1], resources...); err != nil {
			return err
		}
	}
	deleted := int64(len(resources))
	x := &client.Expression{}
	key := schema.MetaKey(a.config.Namespace, name)
	if d.Entity == nil {
		x.RequireAbsent(schema.AttrPK) // the declaration of a child may have created it
		t.Check(key, x)
	} else {
		x.RequireExists(schema.AttrPK)
		requireVersion(x, d.Entity)
		for _, attribute := range schema.EntityVersionAttributes() {
			x.RequireUnchanged(d.Meta, attribute)
		}
		t.Remove(key, x)
		deleted++
	}
	return t.addAuditEvent(schema.ActionEntityDeleted, name, "", schema.DeletedDetails(deleted, true))
}

// ListResources returns, in order, the resources that have limits, of their own or of an entity,
// and those of the bucket items. It reads the two registries of resources, and the rows of all
// bucket items in an index.
func (a *Admin) ListResources(ctx context.Context) ([]string, error) {
	names, err := a.ConfiguredResources(ctx, true)
	if err != nil {
		return nil, err
	}
	ofEntities, err := a.EntityConfigResources(ctx, true)
	if err != nil {
		return nil, err
	}
	if err := a.running.Enter(); err != nil {
		return nil, err
	}
	defer a.running.End()
	found := make(map[string]bool)
	for _, name := range slices.Concat(names, ofEntities) {
		found[name] = true
	}
	delete(found, weir.DefaultResource)
	in := client.KeysOnly(client.Indexed(schema.GSI4, a.config.Namespace, schema.BucketPrefix))
	for id, err := range client.Query(ctx, a.Client, in, bucketID) {
		if err != nil {
			return nil, err
		}
		found[id.Resource] = true
	}
	return slices.Sorted(maps.Keys(found)), nil
}
