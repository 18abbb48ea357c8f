package dynamodb

import (
	"context"
	"iter"
	"strings"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
)

// storedBucket is a bucket item as it was read.
type storedBucket struct {
	id   schema.BucketID
	item schema.Item
}

// bucketGroups yields the buckets of an entity that are there, those of a few resources at a time with
// all shards, so that whoever is cut short has something done. It ends with the first error.
func (a *administration) bucketGroups(
	ctx context.Context, entity string,
) iter.Seq2[[]storedBucket, error] {
	return func(yield func([]storedBucket, error) bool) {
		var group []schema.BucketID
		resources := 0
		flush := func() bool {
			found, err := a.readGroup(ctx, group)
			group, resources = nil, 0
			return yield(found, err) && err == nil
		}
		for id, err := range a.bucketsOf(ctx, entity) { // a resource's shards stand side by side
			if err != nil {
				yield(nil, err)
				return
			}
			if len(group) == 0 || group[len(group)-1].Resource != id.Resource {
				if resources == maxParallel && !flush() {
					return
				}
				resources++
			}
			group = append(group, id)
		}
		if len(group) > 0 {
			flush()
		}
	}
}

// readGroup reads buckets, with all shards of their resources. The index may not show the newest ones
// yet, but the first one of each resource counts them.
func (a *administration) readGroup(ctx context.Context, ids []schema.BucketID) ([]storedBucket, error) {
	known := make(map[schema.BucketID]bool)
	var asked []schema.BucketID
	ask := func(id schema.BucketID, shard int) {
		id.Shard = shard
		if !known[id] {
			known[id] = true
			asked = append(asked, id)
		}
	}
	for _, id := range ids {
		ask(id, 0)
		ask(id, id.Shard)
	}
	found, err := a.readExisting(ctx, asked)
	if err != nil {
		return nil, err
	}
	asked = nil
	for _, b := range found {
		if b.id.Shard != 0 {
			continue
		}
		first, err := schema.ParseBucket(b.item)
		if err != nil {
			return nil, unreadable(err)
		}
		for shard := range first.Shards {
			ask(b.id, shard)
		}
	}
	unseen, err := a.readExisting(ctx, asked)
	return append(found, unseen...), err
}

// readExisting reads those of the buckets that are there.
func (a *administration) readExisting(
	ctx context.Context, ids []schema.BucketID,
) ([]storedBucket, error) {
	keys := make([]schema.Key, len(ids))
	for i, id := range ids {
		keys[i] = id.Key()
	}
	items, err := a.client.batchGet(ctx, keys, true)
	if err != nil {
		return nil, err
	}
	var found []storedBucket
	for i, item := range items {
		if item != nil {
			found = append(found, storedBucket{ids[i], item})
		}
	}
	return found, nil
}

// restamp tells every bucket of an entity whose charges it passes on, a few at a time. One that has
// been told already is left, so that a change that was cut short gets on when it is made again; one
// that knows of a later change keeps it.
func (a *administration) restamp(ctx context.Context, e *schema.Entity) error {
	own, err := a.config.readDefinition(ctx, e.ID)
	if err != nil {
		return err
	}
	c := &cascades{admin: a, entity: e, own: own.levels, known: make(map[string]bool)}
	for range 2 { // the second time for what was made during the first
		for group, err := range a.bucketGroups(ctx, e.ID) {
			if err != nil {
				return err
			}
			if err := c.read(ctx, group); err != nil {
				return err
			}
			err := parallel(len(group), func(i int) error {
				b := group[i]
				cascade := c.known[b.id.Resource]
				if b.stamped(e, cascade) {
					return nil
				}
				return a.stamp(ctx, b.id, e, cascade)
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// stamped reports whether a bucket has been told whose charges it passes on.
func (b *storedBucket) stamped(e *schema.Entity, cascade bool) bool {
	read, err := schema.ParseBucket(b.item)
	return err == nil && read.Incarnation == e.Mark() && read.Generation == e.Generation &&
		read.Parent == e.Parent && read.Cascade == cascade
}

// cascades says on which resources an entity's charges are ones on its parent too.
type cascades struct {
	admin  *administration
	entity *schema.Entity
	own    map[string]*levelConfig
	known  map[string]bool // by resource
}

// read makes known what holds for the resources of some buckets.
func (c *cascades) read(ctx context.Context, group []storedBucket) error {
	var resources []string
	var keys []schema.Key
	for _, b := range group {
		if _, ok := c.known[b.id.Resource]; !ok {
			c.known[b.id.Resource] = false
			resources = append(resources, b.id.Resource)
			keys = append(keys, schema.ResourceConfigKey(c.admin.config.namespace, b.id.Resource))
		}
	}
	items, err := c.admin.client.batchGet(ctx, keys, true)
	if err != nil {
		return err
	}
	for i, resource := range resources {
		of := &subjectConfig{entity: c.entity}
		for _, place := range []string{resource, weir.DefaultResource} {
			if l := c.own[place]; l != nil {
				of.levels = append(of.levels, l)
			}
		}
		of.levels = append(of.levels, parseLevel(weir.LevelResource, items[i]))
		c.known[resource] = of.cascades()
	}
	return nil
}

// maxStamps is how often one bucket is told: the write says the same each time it is sent.
const maxStamps = 4

// stamp writes into one bucket whose charges are passed on to whom. One that is gone, or that knows
// of a later change, stays as it is.
func (a *administration) stamp(
	ctx context.Context, id schema.BucketID, e *schema.Entity, cascade bool,
) error {
	x := &expression{}
	requireGeneration(x, e)
	x.set = append(x.set, x.name(schema.AttrCascade)+" = "+x.value(schema.Bool(cascade)))
	x.setText(schema.AttrPInc, e.Mark())
	x.setNumber(schema.AttrPGen, e.Generation)
	if e.Parent == "" {
		x.removeAll(schema.AttrParent)
	} else {
		x.setText(schema.AttrParent, e.Parent)
	}
	in := &ddb.UpdateItemInput{
		TableName: &a.client.table, Key: id.Key().Item(), UpdateExpression: x.update(),
		ConditionExpression:      x.condition(),
		ExpressionAttributeNames: x.names, ExpressionAttributeValues: x.values,
	}
	var err error
	for attempt := range maxStamps {
		_, err = a.client.api.UpdateItem(ctx, in)
		switch outcomeOf(err).kind {
		case writeApplied, writeRefused:
			return nil
		case writeFailed:
			return classify(err)
		}
		if waiting := backOff(ctx, attempt); waiting != nil {
			return classify(err)
		}
	}
	return classify(err)
}

// requireGeneration is the condition under which a bucket may take over the parent of an entity's generation.
func requireGeneration(e *expression, owner *schema.Entity) {
	mark, generation := e.name(schema.AttrPInc), e.name(schema.AttrPGen)
	e.exists(schema.AttrPK)
	e.conditions = append(e.conditions, "("+strings.Join([]string{
		"attribute_not_exists(" + mark + ")", mark + " <> " + e.text(owner.Mark()),
		"attribute_not_exists(" + generation + ")", generation + " <= " + e.number(owner.Generation),
	}, " OR ")+")")
}
