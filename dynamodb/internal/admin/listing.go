package admin

import (
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/dynamodb/internal/config"
	"github.com/weir-limiter/weir/internal/schema"
)

// afterNames sorts after every character of a name, and beforeNames before every one.
const (
	afterNames  = "~"
	beforeNames = " "
)

// ListEntities returns a page of names in order: entities with a META or with limits of their own.
// The index shows a new entity after a moment.
func (a *Admin) ListEntities(ctx context.Context, q *weir.EntityQuery) (*weir.EntityPage, error) {
	if err := a.running.Enter(); err != nil {
		return nil, err
	}
	defer a.running.End()
	names := a.declaredNames(ctx, q.After, q.Size+1) // one more shows whether there is another page
	switch {
	case q.Parent != "":
		names = a.childNames(ctx, q.Parent, q.After)
	case q.Resource != "":
		names = a.customNames(ctx, q.Resource, q.After)
	}
	if q.Resource != "" {
		names = a.withLimitsOn(ctx, q.Resource, names)
	}
	page := &weir.EntityPage{}
	for name, err := range names {
		if err != nil {
			return nil, err
		}
		if len(page.Names) == q.Size {
			page.Next = page.Names[q.Size-1]
			break
		}
		page.Names = append(page.Names, name)
	}
	return page, nil
}

// Resources returns, in order, the resources on which an entity has units in use or limits of its
// own.
func (a *Admin) Resources(ctx context.Context, now time.Time, entity string) ([]string, error) {
	if err := a.running.Enter(); err != nil {
		return nil, err
	}
	defer a.running.End()
	found, err := a.namesInUse(ctx, now, a.bucketsOf(ctx, entity), func(of weir.Subject) string { return of.Resource })
	if err != nil {
		return nil, err
	}
	for of := range a.buckets.RemovedInUse(now) {
		if of.Entity == entity {
			found[of.Resource] = true
		}
	}
	own, err := a.config.ReadDefinition(ctx, entity)
	if err != nil {
		return nil, err
	}
	for resource, level := range own.Levels {
		if resource != weir.DefaultResource && level.HasLimits() {
			found[resource] = true
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// Entities returns, in order, the entities that have units in use on a resource or limits of their
// own.
func (a *Admin) Entities(ctx context.Context, now time.Time, resource string) ([]string, error) {
	if err := a.running.Enter(); err != nil {
		return nil, err
	}
	defer a.running.End()
	// The index of a lean table has keys only.
	pk := schema.ResourcePK(a.config.Namespace, resource)
	in := client.KeysOnly(client.Indexed(schema.GSI2, pk, schema.BucketPrefix))
	buckets := client.Query(ctx, a.Client, in, bucketID)
	found, err := a.namesInUse(ctx, now, buckets, func(of weir.Subject) string { return of.Entity })
	if err != nil {
		return nil, err
	}
	for name, err := range a.withLimitsOn(ctx, resource, a.customNames(ctx, resource, "")) {
		if err != nil {
			return nil, err
		}
		found[name] = true
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// namesInUse returns the set of names (entity or resource) of the subjects that have units in use
// in the buckets.
func (a *Admin) namesInUse(
	ctx context.Context, now time.Time, buckets iter.Seq2[schema.BucketID, error], name func(weir.Subject) string,
) (map[string]bool, error) {
	var ids []schema.BucketID
	for id, err := range buckets {
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	used, err := a.buckets.SubjectsInUse(ctx, now, ids)
	if err != nil {
		return nil, err
	}
	found := make(map[string]bool)
	for of := range used {
		found[name(of)] = true
	}
	return found, nil
}

// bucketsOf yields the bucket items of an entity, shard by shard.
func (a *Admin) bucketsOf(ctx context.Context, entity string) iter.Seq2[schema.BucketID, error] {
	in := client.Indexed(schema.GSI3, schema.EntityPK(a.config.Namespace, entity), schema.BucketPrefix)
	return client.Query(ctx, a.Client, in, bucketID)
}

// bucketID returns the bucket item that a row of an index stands for.
func bucketID(row schema.Item) (schema.BucketID, error) {
	return schema.ParseBucketPK(client.TextOf(row, schema.AttrPK))
}

// childNames yields the children of an entity whose names sort after the given one, in order.
func (a *Admin) childNames(ctx context.Context, parent, after string) iter.Seq2[string, error] {
	in := a.namesAfter(schema.GSI1, schema.ParentPK(a.config.Namespace, parent), schema.ChildPrefix, after)
	return a.names(ctx, in, func(item schema.Item) (string, error) {
		return schema.ParseChildSK(client.TextOf(item, schema.AttrGSI1SK))
	})
}

// customNames yields the entities with a configuration item on a resource whose names sort after
// the given one, in order.
func (a *Admin) customNames(ctx context.Context, resource, after string) iter.Seq2[string, error] {
	in := a.namesAfter(schema.GSI3, schema.EntityConfigPK(a.config.Namespace, resource), "", after)
	return a.names(ctx, in, func(item schema.Item) (string, error) {
		return client.TextOf(item, schema.AttrGSI3SK), nil
	})
}

// namesAfter returns the query for the items of an index whose sort key is prefix and a name that
// sorts after the given one.
func (a *Admin) namesAfter(index, pk, prefix, after string) *ddb.QueryInput {
	low := prefix + after
	if after != "" || low == "" { // DynamoDB refuses an empty key
		low += beforeNames
	}
	return &ddb.QueryInput{
		IndexName:                &index,
		KeyConditionExpression:   new("#n0 = :v0 AND #n1 BETWEEN :v1 AND :v2"),
		ExpressionAttributeNames: map[string]string{"#n0": index + "PK", "#n1": index + "SK"},
		ExpressionAttributeValues: schema.Item{
			":v0": schema.String(pk), ":v1": schema.String(low), ":v2": schema.String(prefix + afterNames),
		},
	}
}

// names yields the names of a query's items. A name that repeats the one before is left out.
func (a *Admin) names(
	ctx context.Context, in *ddb.QueryInput, nameOf func(schema.Item) (string, error),
) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		last := ""
		for name, err := range client.Query(ctx, a.Client, in, nameOf) {
			if err == nil && name == last {
				continue
			}
			if last = name; !yield(name, err) {
				return
			}
		}
	}
}

// withLimitsOn yields those names whose configuration on a resource has limits. An item may exist
// only for a flag.
func (a *Admin) withLimitsOn(
	ctx context.Context, resource string, names iter.Seq2[string, error],
) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		var batch []string
		flush := func() bool {
			kept, err := a.filterWithLimits(ctx, resource, batch)
			if err != nil {
				yield("", err)
				return false
			}
			batch = batch[:0]
			for _, name := range kept {
				if !yield(name, nil) {
					return false
				}
			}
			return true
		}
		for name, err := range names {
			if err != nil {
				yield("", err)
				return
			}
			if batch = append(batch, name); len(batch) == client.MaxBatchGet && !flush() {
				return
			}
		}
		flush()
	}
}

// filterWithLimits returns those entities that have limits of their own on a resource.
func (a *Admin) filterWithLimits(
	ctx context.Context, resource string, names []string,
) ([]string, error) {
	keys := make([]schema.Key, len(names))
	for i, name := range names {
		keys[i] = schema.EntityConfigKey(a.config.Namespace, name, resource)
	}
	items, err := a.Client.BatchGet(ctx, keys, false)
	if err != nil {
		return nil, err
	}
	var kept []string
	for i, item := range items {
		if config.ParseLevel(weir.LevelEntity, item).HasLimits() {
			kept = append(kept, names[i])
		}
	}
	return kept, nil
}
