package dynamodb

import (
	"context"
	"strings"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
)

// restamp tells every bucket of an entity whose charges it passes on. A bucket that knows of a
// later change keeps it.
func (s *Store) restamp(ctx context.Context, e *schema.Entity) error {
	cascades := make(map[string]bool)
	stamped := make(map[schema.BucketID]bool)
	for range 2 { // the second time for what was made during the first
		ids, err := s.shardsOf(ctx, e.ID)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if stamped[id] {
				continue
			}
			cascade, ok := cascades[id.Resource]
			if !ok {
				c, err := s.readSubject(ctx, weir.Subject{Entity: e.ID, Resource: id.Resource}, true)
				if err != nil {
					return err
				}
				c.entity = e
				cascade = c.cascades()
				cascades[id.Resource] = cascade
			}
			if err := s.stamp(ctx, id, e, cascade); err != nil {
				return err
			}
			stamped[id] = true
		}
	}
	return nil
}

// shardsOf returns the buckets that an entity has, shard by shard. The index may not show the
// newest shards yet, but the first one of each resource counts them.
func (s *Store) shardsOf(ctx context.Context, entity string) ([]schema.BucketID, error) {
	var ids []schema.BucketID
	known := make(map[schema.BucketID]bool)
	var firsts []schema.Key
	for id, err := range s.bucketsOf(ctx, entity) {
		if err != nil {
			return nil, err
		}
		first := id
		first.Shard = 0
		if !known[id] {
			known[id] = true
			ids = append(ids, id)
		}
		firsts = append(firsts, first.Key()) // a key may occur twice
	}
	items, err := s.batchGet(ctx, firsts, true)
	if err != nil {
		return nil, err
	}
	var unseen []schema.BucketID
	for _, item := range items {
		if item == nil {
			continue
		}
		b, err := schema.ParseBucket(item)
		if err != nil {
			return nil, unreadable(err)
		}
		for shard := range b.Shards {
			id := schema.BucketID{Namespace: b.Namespace, Entity: b.Entity, Resource: b.Resource, Shard: shard}
			if !known[id] {
				known[id] = true
				unseen = append(unseen, id)
			}
		}
	}
	return s.appendExisting(ctx, ids, unseen)
}

// appendExisting appends those of the buckets that are there.
func (s *Store) appendExisting(
	ctx context.Context, ids, candidates []schema.BucketID,
) ([]schema.BucketID, error) {
	keys := make([]schema.Key, len(candidates))
	for i, id := range candidates {
		keys[i] = id.Key()
	}
	items, err := s.batchGet(ctx, keys, true)
	if err != nil {
		return nil, err
	}
	for i, item := range items {
		if item != nil {
			ids = append(ids, candidates[i])
		}
	}
	return ids, nil
}

// maxStamps is how often one bucket is told: the write says the same each time it is sent.
const maxStamps = 4

// stamp writes into one bucket whose charges are passed on to whom. One that is gone, or that knows
// of a later change, stays as it is.
func (s *Store) stamp(
	ctx context.Context, id schema.BucketID, e *schema.Entity, cascade bool,
) error {
	x := &expression{}
	x.pinned(e)
	x.set = append(x.set, x.name(schema.AttrCascade)+" = "+x.value(schema.Bool(cascade)),
		x.name(schema.AttrPInc)+" = "+x.text(e.Mark()))
	x.setNumber(schema.AttrPGen, e.Generation)
	if e.Parent == "" {
		x.removeAll(schema.AttrParent)
	} else {
		x.set = append(x.set, x.name(schema.AttrParent)+" = "+x.text(e.Parent))
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

// pinned is the condition under which a bucket may take over the parent of an entity's generation.
func (e *expression) pinned(owner *schema.Entity) {
	mark, generation := e.name(schema.AttrPInc), e.name(schema.AttrPGen)
	e.exists(schema.AttrPK)
	e.conditions = append(e.conditions, "("+strings.Join([]string{
		"attribute_not_exists(" + mark + ")", mark + " <> " + e.text(owner.Mark()),
		"attribute_not_exists(" + generation + ")", generation + " <= " + e.number(owner.Generation),
	}, " OR ")+")")
}
