package admin

import (
	"context"
	"iter"
	"strings"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/dynamodb/internal/config"
	"github.com/weir-limiter/weir/internal/schema"
)

// storedBucket is a bucket item as it was read.
type storedBucket struct {
	ID   schema.BucketID
	item schema.Item
}

// BucketGroups yields the bucket items of an entity in groups of a few resources, each with all its
// shards, so that a caller that is interrupted has finished some of them. It ends at the first
// error.
func (a *Admin) BucketGroups(
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
		for id, err := range a.bucketsOf(ctx, entity) { // the shards of a resource are adjacent
			if err != nil {
				yield(nil, err)
				return
			}
			if len(group) == 0 || group[len(group)-1].Resource != id.Resource {
				if resources == client.MaxParallel && !flush() {
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

// readGroup reads bucket items and all other shards of their resources. The index may not show the
// newest shards yet, but the first shard of each resource has the shard count.
func (a *Admin) readGroup(ctx context.Context, ids []schema.BucketID) ([]storedBucket, error) {
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
		if b.ID.Shard != 0 {
			continue
		}
		first, err := schema.ParseBucket(b.item)
		if err != nil {
			return nil, client.Unreadable(err)
		}
		for shard := range first.Shards {
			ask(b.ID, shard)
		}
	}
	unseen, err := a.readExisting(ctx, asked)
	return append(found, unseen...), err
}

// readExisting reads bucket items and leaves out those that do not exist.
func (a *Admin) readExisting(
	ctx context.Context, ids []schema.BucketID,
) ([]storedBucket, error) {
	keys := make([]schema.Key, len(ids))
	for i, id := range ids {
		keys[i] = id.Key()
	}
	items, err := a.Client.BatchGet(ctx, keys, true)
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

// restamp stamps every bucket item of an entity, a few at a time. It skips an item that has the
// stamp already, so that a repeated change makes progress, and an item that has a later stamp.
func (a *Admin) restamp(ctx context.Context, e *schema.Entity) error {
	own, err := a.config.ReadDefinition(ctx, e.ID)
	if err != nil {
		return err
	}
	c := &cascades{admin: a, entity: e, own: own.Levels, known: make(map[string]bool)}
	for range 2 { // the second pass finds items created during the first
		for group, err := range a.BucketGroups(ctx, e.ID) {
			if err != nil {
				return err
			}
			if err := c.read(ctx, group); err != nil {
				return err
			}
			err := client.Parallel(len(group), func(i int) error {
				b := group[i]
				cascade := c.known[b.ID.Resource]
				if b.stamped(e, cascade) {
					return nil
				}
				return a.stamp(ctx, b.ID, e, cascade)
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// stamped reports whether a bucket item has the entity's parent and cascade.
func (b *storedBucket) stamped(e *schema.Entity, cascade bool) bool {
	read, err := schema.ParseBucket(b.item)
	return err == nil && read.Incarnation == e.Mark() && read.Generation == e.Generation &&
		read.Parent == e.Parent && read.Cascade == cascade
}

// cascades reports on which resources a charge on an entity also charges its parent.
type cascades struct {
	admin  *Admin
	entity *schema.Entity
	own    map[string]*config.Level
	known  map[string]bool // by resource
}

// read reads the setting for the resources of some bucket items.
func (c *cascades) read(ctx context.Context, group []storedBucket) error {
	var resources []string
	var keys []schema.Key
	for _, b := range group {
		if _, ok := c.known[b.ID.Resource]; !ok {
			c.known[b.ID.Resource] = false
			resources = append(resources, b.ID.Resource)
			keys = append(keys, schema.ResourceConfigKey(c.admin.config.Namespace, b.ID.Resource))
		}
	}
	items, err := c.admin.Client.BatchGet(ctx, keys, true)
	if err != nil {
		return err
	}
	for i, resource := range resources {
		of := &config.Subject{Entity: c.entity}
		for _, place := range []string{resource, weir.DefaultResource} {
			if l := c.own[place]; l != nil {
				of.Levels = append(of.Levels, l)
			}
		}
		of.Levels = append(of.Levels, config.ParseLevel(weir.LevelResource, items[i]))
		c.known[resource] = of.Cascades()
	}
	return nil
}

// maxStamps is the largest number of times that the stamp of one item is sent. It may be repeated,
// because each write sets the same values.
const maxStamps = 4

// stamp copies an entity's parent and cascade to one bucket item. An item that does not exist, or
// has a later stamp, stays as it is.
func (a *Admin) stamp(
	ctx context.Context, id schema.BucketID, e *schema.Entity, cascade bool,
) error {
	x := &client.Expression{}
	requireGeneration(x, e)
	x.Set = append(x.Set, x.Name(schema.AttrCascade)+" = "+x.Value(schema.Bool(cascade)))
	x.SetText(schema.AttrPInc, e.Mark())
	x.SetNumber(schema.AttrPGen, e.Generation)
	if e.Parent == "" {
		x.RemoveAll(schema.AttrParent)
	} else {
		x.SetText(schema.AttrParent, e.Parent)
	}
	in := &ddb.UpdateItemInput{
		TableName: &a.Client.TableName, Key: id.Key().Item(), UpdateExpression: x.Update(),
		ConditionExpression:      x.Condition(),
		ExpressionAttributeNames: x.Names, ExpressionAttributeValues: x.Values,
	}
	var err error
	for attempt := range maxStamps {
		_, err = a.Client.API.UpdateItem(ctx, in)
		switch client.OutcomeOf(err).Kind {
		case client.WriteApplied, client.WriteRefused:
			return nil
		case client.WriteFailed:
			return client.Classify(err)
		}
		if waiting := client.BackOff(ctx, attempt); waiting != nil {
			return client.Classify(err)
		}
	}
	return client.Classify(err)
}

// requireGeneration requires that the parent on a bucket item is not of a later generation than the
// entity's.
func requireGeneration(e *client.Expression, owner *schema.Entity) {
	mark, generation := e.Name(schema.AttrPInc), e.Name(schema.AttrPGen)
	e.RequireExists(schema.AttrPK)
	e.Conditions = append(e.Conditions, "("+strings.Join([]string{
		"attribute_not_exists(" + mark + ")", mark + " <> " + e.Text(owner.Mark()),
		"attribute_not_exists(" + generation + ")", generation + " <= " + e.Number(owner.Generation),
	}, " OR ")+")")
}
