package stream

import (
	"context"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/aggregator"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
)

// dueDay reports whether the first day without an item has ended: all shards were read past its end.
func (r *Reader) dueDay() bool {
	end := weir.Daily.End(r.state.aggregator.Days)
	return !r.watermark().Before(end.Add(r.o.Grace))
}

// dueMonth reports whether all days of the first month without an item have one.
func (r *Reader) dueMonth() bool {
	return !r.state.aggregator.Days.Before(weir.Monthly.End(r.state.aggregator.Months))
}

// totalsDue reports whether a day or a month is to be written.
func (r *Reader) totalsDue() bool { return r.dueDay() || r.dueMonth() }

// writeTotals writes the days and months that have ended. It waits until the index by resource
// shows all of their parts.
func (r *Reader) writeTotals(ctx context.Context) error {
	for r.totalsDue() && r.o.Now().Sub(laterOf(r.began, r.wrote)) >= r.o.IndexLag {
		if err := r.writeNextTotal(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reader) writeNextTotal(ctx context.Context) error {
	a := r.state.aggregator
	of, at, attribute := weir.Daily, &a.Days, schema.AttrDays
	if r.dueMonth() {
		of, at, attribute = weir.Monthly, &a.Months, schema.AttrMonths
	}
	written := r.done.Totals
	for resource := range r.state.resources {
		if err := r.writeTotal(ctx, of, *at, resource); err != nil {
			return err
		}
	}
	was := *at
	*at = of.End(was)
	e := &client.Expression{}
	e.Set = append(e.Set, e.Name(attribute)+" = "+e.Value(schema.Instant(*at)))
	e.Conditions = append(e.Conditions, e.Name(attribute)+" < "+e.Value(schema.Instant(*at)))
	if err := update(ctx, r.tables.Client, schema.AggregatorKey(), e); err != nil {
		return err
	}
	r.log.Info("wrote the totals", "window", string(of), "of", schema.WindowKey(of, was), "items", r.done.Totals-written)
	return nil
}

// writeTotal writes the items of a day or a month for one resource.
func (r *Reader) writeTotal(
	ctx context.Context, of weir.UsageWindow, at time.Time, resource schema.CountedResource,
) error {
	n, err := r.namespace(ctx, resource.Namespace)
	if err != nil {
		return err
	}
	if n.skipped != "" && n.skipped != skippedDeleted { // a deleted one may be recovered
		return nil
	}
	in := client.KeysOnly(client.Indexed(schema.GSI2,
		schema.ResourcePK(resource.Namespace, resource.Resource), schema.UsagePrefix+schema.WindowKey(of, at)))
	listed, err := r.tables.QueryAll(ctx, in)
	if err != nil {
		return err
	}
	var keys []schema.Key
	for _, item := range partsOf(of, listed) {
		key, err := schema.KeyOf(item)
		if err != nil {
			return client.Unreadable(err)
		}
		keys = append(keys, key)
	}
	items, err := r.tables.BatchGet(ctx, keys, true)
	if err != nil {
		return err
	}
	return r.putTotals(ctx, of, at, items, n.days)
}

// partsOf returns the parts of a total among the usage items of its time, of which only the keys are
// used: the hours of a day, or the days of a month. If an entity has hours on a day that has no item,
// because the item could not be written, it has no parts in the month: the month would be less than
// what readers add up.
func partsOf(of weir.UsageWindow, items []schema.Item) []schema.Item {
	type day struct{ pk, resource, date string }
	const dateLength = len(time.DateOnly)
	days, lacking := make(map[day]bool), make(map[day]bool) // lacking is by a day without a date
	visit := func(each func(item schema.Item, on day, windowKey string)) {
		for _, item := range items {
			key, err := schema.KeyOf(item)
			if err != nil {
				continue
			}
			resource, windowKey, err := schema.ParseUsageSK(key.SK)
			if err == nil && len(windowKey) >= dateLength {
				each(item, day{key.PK, resource, windowKey[:dateLength]}, windowKey)
			}
		}
	}
	visit(func(_ schema.Item, on day, windowKey string) {
		days[on] = days[on] || len(windowKey) == dateLength
	})
	for on, has := range days {
		if !has {
			lacking[day{on.pk, on.resource, ""}] = true
		}
	}
	var parts []schema.Item
	visit(func(item schema.Item, on day, windowKey string) {
		isDay := len(windowKey) == dateLength
		if of == weir.Daily && !isDay || of == weir.Monthly && isDay && !lacking[day{on.pk, on.resource, ""}] {
			parts = append(parts, item)
		}
	})
	return parts
}

// putTotals writes the totals of parts, unless the table has newer ones. The number of events only
// grows, so it tells which one is newer.
func (r *Reader) putTotals(
	ctx context.Context, of weir.UsageWindow, at time.Time, items []schema.Item, days int64,
) error {
	if of == weir.Monthly && r.takenOverIn(at) {
		return nil
	}
	parts := items[:0]
	for _, item := range items {
		if item != nil {
			parts = append(parts, item)
		}
	}
	totals, faults := aggregator.Totals(of, at, parts)
	for _, f := range faults {
		r.log.Warn("total not written", "window", string(of), "of", schema.WindowKey(of, at), "error", f)
	}
	for _, u := range totals {
		u.TTL = r.o.Now().Unix() + days*secondsPerDay
		e := &client.Expression{}
		e.Conditions = append(e.Conditions, "(attribute_not_exists("+e.Name(schema.AttrPK)+") OR "+
			e.Name(schema.AttrTotalEvents)+" < "+e.Number(u.Events)+")")
		if err := put(ctx, r.tables.Client, u.Item(), e); err != nil {
			if !isolated(err) {
				return err
			}
			r.log.Error("total not written: the table does not accept it", "item", u.Key().String(), "error", err)
			continue
		}
		r.mu.Lock()
		r.done.Totals++
		r.wrote = r.o.Now()
		r.mu.Unlock()
	}
	return nil
}

// takenOverIn reports whether the table was taken over in the month that contains at. The days before
// that have no items that weir adds up, so the month has none either: it is the sum of its parts.
func (r *Reader) takenOverIn(at time.Time) bool {
	a := r.state.aggregator
	return !a.TakenOver.IsZero() && weir.Monthly.Start(at).Equal(weir.Monthly.Start(a.Since))
}

// amendTotals writes the totals of one entity again after a booking for a day, or a month, that has
// its item already. It reads the parts from the table itself.
func (r *Reader) amendTotals(ctx context.Context, b *aggregator.Booking) error {
	n, err := r.namespace(ctx, b.Namespace)
	if err != nil {
		return err
	}
	for _, total := range []struct {
		of    weir.UsageWindow
		until time.Time
	}{{weir.Daily, r.state.aggregator.Days}, {weir.Monthly, r.state.aggregator.Months}} {
		if !b.Hour.Before(total.until) {
			continue
		}
		in := client.Partition(schema.EntityPK(b.Namespace, b.Entity),
			schema.SKUsagePrefix+b.Resource+"#"+schema.WindowKey(total.of, b.Hour), true)
		items, err := r.tables.QueryAll(ctx, in)
		if err != nil {
			return err
		}
		if err := r.putTotals(ctx, total.of, b.Hour, partsOf(total.of, items), n.days); err != nil {
			return err
		}
	}
	return nil
}
