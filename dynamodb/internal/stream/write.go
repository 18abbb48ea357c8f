package stream

import (
	"context"
	"maps"
	"slices"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir/aggregator"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
)

// write writes the bookings of a batch: those of one entity and resource in their order, others at
// the same time. If some cannot be written, the others are, and the error is an
// [*aggregator.UnfinishedError].
func (r *Reader) write(
	ctx context.Context, records []*aggregator.Record, bookings []*aggregator.Booking,
) error {
	type subject struct{ namespace, entity, resource string }
	groups := make(map[subject][]*aggregator.Booking)
	var order []subject
	for _, b := range bookings {
		of := subject{b.Namespace, b.Entity, b.Resource}
		if groups[of] == nil {
			order = append(order, of)
		}
		groups[of] = append(groups[of], b)
	}
	for _, of := range order {
		if err := r.register(ctx, schema.CountedResource{Namespace: of.namespace, Resource: of.resource}); err != nil {
			return err
		}
	}
	var failed failures
	givenUp := client.Parallel(len(order), func(i int) error {
		group := groups[order[i]]
		for k, b := range group {
			if err := r.writeAll(ctx, b); err != nil {
				return failed.add(err, group[k:])
			}
		}
		return nil
	})
	return failed.error(records, givenUp)
}

// writeAll writes a booking, and the totals that it changes. If the table does not accept it, the
// hour is marked as incomplete.
func (r *Reader) writeAll(ctx context.Context, b *aggregator.Booking) error {
	err := r.writeBooking(ctx, b)
	switch {
	case isolated(err):
		r.log.Error("usage not counted: the table does not accept it", "item", b.Key().String(),
			"records", b.Records(), "error", err)
		r.skip("refused by the table", int64(b.Records()))
		return r.markLost(ctx, b.Namespace, b.Hour, "the table refused a part of the usage")
	case err != nil:
		return err
	}
	return r.amendTotals(ctx, b)
}

// writeBooking writes the part of a booking that the usage item does not have yet.
func (r *Reader) writeBooking(ctx context.Context, b *aggregator.Booking) error {
	n, err := r.namespace(ctx, b.Namespace)
	if err != nil {
		return err
	}
	for attempt := 0; ; {
		in := r.usageUpdate(b.Update(), n.days)
		_, err := r.tables.API.UpdateItem(ctx, in)
		outcome := client.OutcomeOf(err)
		switch outcome.Kind {
		case client.WriteApplied:
			r.mu.Lock()
			defer r.mu.Unlock()
			r.done.Hours++
			r.done.Counted += int64(b.Records())
			r.wrote = r.o.Now()
			return nil
		case client.WriteRefused:
			if b = b.Rest(outcome.Image); b == nil {
				return nil // an earlier attempt, or another reader, has counted it
			}
		case client.WriteUnknown, client.WriteConflicted, client.WriteThrottled:
			if waiting := client.BackOff(ctx, attempt); waiting != nil {
				return client.Classify(err)
			}
			attempt++
		default:
			return client.Classify(err)
		}
	}
}

// usageUpdate returns the call that writes an update, on the condition that all its records are
// beyond those that the item has. DynamoDB returns the item if the condition fails.
func (r *Reader) usageUpdate(u *aggregator.Update, days int64) *ddb.UpdateItemInput {
	e := &client.Expression{}
	counters := map[string]bool{schema.AttrPK: true, schema.AttrSK: true, schema.AttrTotalEvents: true}
	e.AddNumber(schema.AttrTotalEvents, u.Usage.Events)
	for _, limit := range slices.Sorted(maps.Keys(u.Usage.Counters)) {
		e.AddNumber(limit, u.Usage.Counters[limit])
		counters[limit] = true
	}
	for _, limit := range slices.Sorted(maps.Keys(u.Usage.Overdrawn)) {
		e.AddNumber(schema.OverdrawnAttribute(limit), u.Usage.Overdrawn[limit])
		counters[schema.OverdrawnAttribute(limit)] = true
	}
	u.Usage.TTL = r.o.Now().Unix() + days*secondsPerDay
	item := u.Usage.Item()
	for _, name := range slices.Sorted(maps.Keys(item)) {
		if !counters[name] {
			e.SetIfAbsent(name, item[name])
		}
	}
	for _, s := range u.Shards {
		position := schema.PositionAttribute(s.Shard)
		e.SetText(position, string(s.Last))
		e.SetText(schema.CountedAttribute(s.Shard), s.Counts.String())
		a := e.Name(position)
		e.Conditions = append(e.Conditions,
			"(attribute_not_exists("+a+") OR "+a+" < "+e.Text(string(s.First))+")")
	}
	return &ddb.UpdateItemInput{
		TableName: &r.tables.TableName, Key: u.Usage.Key().Item(),
		UpdateExpression: e.Update(), ConditionExpression: e.Condition(),
		ExpressionAttributeNames: e.Names, ExpressionAttributeValues: e.Values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}
