package admin

import (
	"context"
	"iter"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
)

// ReadUsage yields the recorded usage, see [driver.UsageReader]. An item of a longer window stands
// for all shorter windows in it, so that nothing is counted twice.
func (a *Admin) ReadUsage(
	ctx context.Context, q *weir.UsageQuery, after *weir.Usage,
) iter.Seq2[weir.Usage, error] {
	return driver.SumUsage(a.shortWindows(ctx, q, after), q.Window)
}

// shortWindows yields the records of q's window, and the shorter ones in windows that have no record
// of their own yet.
func (a *Admin) shortWindows(
	ctx context.Context, q *weir.UsageQuery, after *weir.Usage,
) iter.Seq2[weir.Usage, error] {
	in, pages := a.usageQuery(q, after), a.fullPages
	if q.Entity != "" {
		pages = a.Client.QueryPages
	}
	return func(yield func(weir.Usage, error) bool) {
		// The loop is not counted as a task, because Close would wait for a caller that stops in the
		// middle of the loop.
		if err := a.running.Refusal(); err != nil {
			yield(weir.Usage{}, err)
			return
		}
		counted := make(map[weir.Subject]time.Time) // the end of the last window that was yielded
		for page, err := range pages(ctx, in) {
			if err != nil {
				yield(weir.Usage{}, err)
				return
			}
			for _, item := range page {
				u, err := readUsage(item)
				of := weir.Subject{Entity: u.Entity, Resource: u.Resource}
				if err == nil && (!wanted(&u, q) || u.Start.Before(counted[of])) {
					continue
				}
				if !yield(u, err) || err != nil {
					return
				}
				if counted[of] = u.End; q.Window == weir.Hourly {
					delete(counted, of)
				}
			}
		}
	}
}

// wanted reports whether a record is in the bounds of q and not of a longer window.
func wanted(u *weir.Usage, q *weir.UsageQuery) bool {
	if u.Window != q.Window && (u.Window == weir.Monthly || q.Window == weir.Hourly) {
		return false
	}
	return (q.Resource == "" || u.Resource == q.Resource) &&
		(q.From.IsZero() || !u.Start.Before(q.From)) && (q.To.IsZero() || u.Start.Before(q.To))
}

// usageQuery returns the query for the windows between two instants. If the resource comes before
// the window in the keys of the index, it is the query for all windows of the entity. It may find
// more records than were asked for.
func (a *Admin) usageQuery(q *weir.UsageQuery, after *weir.Usage) *ddb.QueryInput {
	in := &ddb.QueryInput{
		KeyConditionExpression:   new("#n0 = :v0 AND #n1 BETWEEN :v1 AND :v2"),
		ExpressionAttributeNames: map[string]string{"#n0": schema.AttrPK, "#n1": schema.AttrSK},
	}
	pk, prefix := schema.EntityPK(a.config.Namespace, q.Entity), schema.SKUsagePrefix+q.Resource+"#"
	from := q.From
	switch {
	case q.Entity == "":
		in.IndexName = new(schema.GSI2)
		in.ExpressionAttributeNames = map[string]string{"#n0": schema.AttrGSI2PK, "#n1": schema.AttrGSI2SK}
		pk, prefix = schema.ResourcePK(a.config.Namespace, q.Resource), schema.UsagePrefix
	case q.Resource == "":
		prefix = schema.SKUsagePrefix
	}
	// The key of a window is its start, or a prefix of that for a day or a month. So the key of the
	// month of from sorts before all windows in question, and q.To with afterNames after them.
	low, high := prefix, prefix+afterNames
	if after != nil && q.Entity != "" && q.Resource == "" {
		low += after.Resource + "#"
	}
	if after != nil {
		from = after.Start
	}
	if !from.IsZero() && low != schema.SKUsagePrefix {
		low += schema.WindowKey(weir.Monthly, from)
	}
	if !q.To.IsZero() && prefix != schema.SKUsagePrefix {
		high = prefix + schema.Timestamp(q.To) + afterNames
	}
	in.ExpressionAttributeValues = schema.Item{
		":v0": schema.String(pk), ":v1": schema.String(low), ":v2": schema.String(high),
	}
	return in
}

// fullPages runs a query on an index that may have keys only, and reads the items.
func (a *Admin) fullPages(ctx context.Context, in *ddb.QueryInput) iter.Seq2[[]schema.Item, error] {
	return func(yield func([]schema.Item, error) bool) {
		for page, err := range a.Client.QueryPages(ctx, in) {
			if err == nil {
				page, err = a.readFull(ctx, page)
			}
			if !yield(page, err) || err != nil {
				return
			}
		}
	}
}

// readFull reads the items of a page that has only their keys. It leaves out items that no longer
// exist.
func (a *Admin) readFull(ctx context.Context, page []schema.Item) ([]schema.Item, error) {
	var keys []schema.Key
	var places []int
	for i, item := range page {
		if _, whole := item[schema.AttrWindow]; whole {
			continue
		}
		key, err := schema.KeyOf(item)
		if err != nil {
			return nil, client.Unreadable(err)
		}
		keys, places = append(keys, key), append(places, i)
	}
	items, err := a.Client.BatchGet(ctx, keys, false)
	if err != nil {
		return nil, err
	}
	for i, item := range items {
		page[places[i]] = item
	}
	left := page[:0]
	for _, item := range page {
		if item != nil {
			left = append(left, item)
		}
	}
	return left, nil
}

func readUsage(item schema.Item) (weir.Usage, error) {
	u, err := schema.ParseUsage(item)
	if err != nil {
		return weir.Usage{}, client.Unreadable(err)
	}
	start, err := schema.ParseTimestamp(u.Start)
	if err != nil {
		return weir.Usage{}, client.Unreadable(err)
	}
	return weir.Usage{
		Entity: u.Entity, Resource: u.Resource, Window: u.Window, Start: start,
		End: u.Window.End(start), Events: u.Events, Units: u.Counters, Overdrawn: u.Overdrawn, Windows: 1,
	}, nil
}
