package stream

import (
	"context"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
)

// state is what is stored about the counting of a table.
type state struct {
	aggregator  *schema.Aggregator // nil before the first start
	checkpoints []*schema.Checkpoint
	gaps        []*schema.Gap
	resources   map[schema.CountedResource]bool
}

// readState reads everything that is stored about the counting of a table, with one query.
func readState(ctx context.Context, c *client.Client) (*state, error) {
	s := &state{resources: make(map[schema.CountedResource]bool)}
	pk := schema.SystemPK(schema.RegistryNamespace)
	items, err := c.QueryAll(ctx, client.Partition(pk, schema.SKAggregator, true))
	if err != nil {
		return nil, err
	}
	for _, item := range items {
		if err := s.add(item); err != nil {
			return nil, client.Unreadable(err)
		}
	}
	return s, nil
}

func (s *state) add(item schema.Item) error {
	key, err := schema.KeyOf(item)
	if err != nil {
		return err
	}
	switch {
	case key == schema.AggregatorKey():
		s.aggregator, err = schema.ParseAggregator(item)
	case schema.IsCheckpoint(key):
		var c *schema.Checkpoint
		c, err = schema.ParseCheckpoint(item)
		s.checkpoints = append(s.checkpoints, c)
	case schema.IsGap(key):
		var g *schema.Gap
		g, err = schema.ParseGap(item)
		s.gaps = append(s.gaps, g)
	case schema.IsCountedResource(key):
		var r schema.CountedResource
		r, err = schema.ParseCountedResource(key)
		s.resources[r] = true
	}
	return err // items of a later weir are ignored
}

// checkpoint returns the checkpoint of a shard; nil if there is none.
func (s *state) checkpoint(label, shard string) *schema.Checkpoint {
	for _, c := range s.checkpoints {
		if c.Label == label && c.Shard == shard {
			return c
		}
	}
	return nil
}

// put writes an item.
func put(ctx context.Context, c *client.Client, item schema.Item, e *client.Expression) error {
	in := &ddb.PutItemInput{TableName: &c.TableName, Item: item}
	if e != nil {
		in.ConditionExpression = e.Condition()
		in.ExpressionAttributeNames, in.ExpressionAttributeValues = e.Names, e.Values
	}
	return insist(ctx, func() error {
		_, err := c.API.PutItem(ctx, in)
		return err
	})
}

// update updates an item.
func update(ctx context.Context, c *client.Client, key schema.Key, e *client.Expression) error {
	in := &ddb.UpdateItemInput{
		TableName: &c.TableName, Key: key.Item(), UpdateExpression: e.Update(),
		ConditionExpression:      e.Condition(),
		ExpressionAttributeNames: e.Names, ExpressionAttributeValues: e.Values,
	}
	return insist(ctx, func() error {
		_, err := c.API.UpdateItem(ctx, in)
		return err
	})
}

// insist sends a write that may be applied twice until its outcome is known. A failed condition is
// no error: another aggregator was there first.
func insist(ctx context.Context, send func() error) error {
	for attempt := 0; ; attempt++ {
		err := send()
		switch client.OutcomeOf(err).Kind {
		case client.WriteApplied, client.WriteRefused:
			return nil
		case client.WriteUnknown, client.WriteConflicted, client.WriteThrottled:
			if waiting := client.BackOff(ctx, attempt); waiting != nil {
				return client.Classify(err)
			}
		default:
			return client.Classify(err)
		}
	}
}

// saveCheckpoint moves a checkpoint, unless the stored one is further.
func saveCheckpoint(ctx context.Context, c *client.Client, p *schema.Checkpoint) error {
	e := &client.Expression{}
	e.SetText(schema.AttrSequence, p.Sequence)
	e.SetText(schema.AttrPosition, p.Position)
	e.Set = append(e.Set, e.Name(schema.AttrUntil)+" = "+e.Value(schema.Instant(p.Until)))
	e.SetIfAbsent(schema.AttrDone, schema.Bool(false))
	a := e.Name(schema.AttrPosition)
	e.Conditions = append(e.Conditions,
		"(attribute_not_exists("+a+") OR "+a+" < "+e.Text(p.Position)+")")
	return update(ctx, c, p.Key(), e)
}

// doneKept is the time for which the checkpoint of a shard that was read to its end is kept. The
// stream lists the shard for a day.
const doneKept = 3 * 24 * time.Hour

// saveDone stores that a shard was read to its end.
func saveDone(ctx context.Context, c *client.Client, p *schema.Checkpoint, now time.Time) error {
	e := &client.Expression{}
	e.Set = append(e.Set, e.Name(schema.AttrDone)+" = "+e.Value(schema.Bool(true)),
		e.Name(schema.AttrUntil)+" = "+e.Value(schema.Instant(p.Until)))
	e.SetNumber(schema.AttrTTL, now.Add(doneKept).Unix())
	return update(ctx, c, p.Key(), e)
}

// gapKept is the time for which a gap is kept, beyond that of the usage items.
const gapKept = 40 * 24 * time.Hour

// saveGap stores a gap.
func saveGap(ctx context.Context, c *client.Client, g *schema.Gap, days int64) error {
	g.TTL = g.MarkedAt.Add(gapKept).Unix() + days*secondsPerDay
	return put(ctx, c, g.Item(), nil)
}

const secondsPerDay = 24 * 60 * 60
