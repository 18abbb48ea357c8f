package dynamodb

import (
	"context"
	"strings"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
)

// restamp tells every bucket of an entity whose charges it passes on, a few at a time. One that has
// been told already is left, so that a change that was cut short gets on when it is made again; one
// that knows of a later change keeps it.
func (s *Store) restamp(ctx context.Context, e *schema.Entity) error {
	own, err := s.readDefinition(ctx, e.ID)
	if err != nil {
		return err
	}
	c := &cascades{store: s, entity: e, own: own.levels, known: make(map[string]bool)}
	for range 2 { // the second time for what was made during the first
		for group, err := range s.bucketGroups(ctx, e.ID) {
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
				return s.stamp(ctx, b.id, e, cascade)
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
	store  *Store
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
			keys = append(keys, schema.ResourceConfigKey(c.store.namespace, b.id.Resource))
		}
	}
	items, err := c.store.batchGet(ctx, keys, true)
	if err != nil {
		return err
	}
	for i, resource := range resources {
		config := &subjectConfig{entity: c.entity}
		for _, place := range []string{resource, weir.DefaultResource} {
			if l := c.own[place]; l != nil {
				config.levels = append(config.levels, l)
			}
		}
		config.levels = append(config.levels, parseLevel(weir.LevelResource, items[i]))
		c.known[resource] = config.cascades()
	}
	return nil
}

// maxStamps is how often one bucket is told: the write says the same each time it is sent.
const maxStamps = 4

// stamp writes into one bucket whose charges are passed on to whom. One that is gone, or that knows
// of a later change, stays as it is.
func (s *Store) stamp(
	ctx context.Context, id schema.BucketID, e *schema.Entity, cascade bool,
) error {
	x := &expression{}
	x.requireGeneration(e)
	x.set = append(x.set, x.name(schema.AttrCascade)+" = "+x.value(schema.Bool(cascade)))
	x.setText(schema.AttrPInc, e.Mark())
	x.setNumber(schema.AttrPGen, e.Generation)
	if e.Parent == "" {
		x.removeAll(schema.AttrParent)
	} else {
		x.setText(schema.AttrParent, e.Parent)
	}
	in := &ddb.UpdateItemInput{
		TableName: &s.table, Key: id.Key().Item(), UpdateExpression: x.update(),
		ConditionExpression:      x.condition(),
		ExpressionAttributeNames: x.names, ExpressionAttributeValues: x.values,
	}
	var err error
	for attempt := range maxStamps {
		_, err = s.client.UpdateItem(ctx, in)
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
func (e *expression) requireGeneration(owner *schema.Entity) {
	mark, generation := e.name(schema.AttrPInc), e.name(schema.AttrPGen)
	e.exists(schema.AttrPK)
	e.conditions = append(e.conditions, "("+strings.Join([]string{
		"attribute_not_exists(" + mark + ")", mark + " <> " + e.text(owner.Mark()),
		"attribute_not_exists(" + generation + ")", generation + " <= " + e.number(owner.Generation),
	}, " OR ")+")")
}
