package admin

import (
	"context"
	"iter"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
)

// ReadUsage yields the recorded usage, later windows first on each resource. With a resource and no
// entity, later windows come first over all entities.
func (a *Admin) ReadUsage(ctx context.Context, q weir.Usage) iter.Seq2[weir.Usage, error] {
	if err := checkTime(&q); err != nil {
		return failing[weir.Usage](err)
	}
	in, pages := a.usageQuery(q), a.fullPages
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
		for page, err := range pages(ctx, in) {
			if err != nil {
				yield(weir.Usage{}, err)
				return
			}
			for _, item := range page {
				u, err := readUsage(item)
				if err != nil {
					yield(u, err)
					return
				}
				if wanted(&u, &q) && !yield(u, nil) {
					return
				}
			}
		}
	}
}

// lastYear is the last year of a key: keys sort by time as long as years have four digits.
const lastYear = 9999

// checkTime returns an error for an instant that a key cannot have.
func checkTime(q *weir.Usage) error {
	for _, bound := range []struct {
		field string
		at    time.Time
	}{{"start", q.Start}, {"end", q.End}} {
		if year := bound.at.UTC().Year(); year < 0 || year > lastYear {
			return client.Fault(weir.Invalid, bound.field, bound.at.UTC().Format(time.RFC3339),
				"must be in the years 0000 to 9999, in UTC")
		}
	}
	return nil
}

// wanted reports whether the query q asks for the record u.
func wanted(u, q *weir.Usage) bool {
	return (q.Resource == "" || u.Resource == q.Resource) && (q.Window == "" || u.Window == q.Window) &&
		(q.Start.IsZero() || !u.Start.Before(q.Start)) && (q.End.IsZero() || u.Start.Before(q.End))
}

// usageQuery returns the query for the windows between two instants. If the resource comes before
// the window in the keys of the index, it is the query for all windows of the entity. It may find
// more records than were asked for.
func (a *Admin) usageQuery(q weir.Usage) *ddb.QueryInput {
	in := &ddb.QueryInput{
		ScanIndexForward: new(false), KeyConditionExpression: new("#n0 = :v0 AND #n1 BETWEEN :v1 AND :v2"),
		ExpressionAttributeNames: map[string]string{"#n0": schema.AttrPK, "#n1": schema.AttrSK},
	}
	pk, prefix := schema.EntityPK(a.config.Namespace, q.Entity), schema.SKUsagePrefix+q.Resource+"#"
	switch {
	case q.Entity == "":
		in.IndexName = new(schema.GSI2)
		in.ExpressionAttributeNames = map[string]string{"#n0": schema.AttrGSI2PK, "#n1": schema.AttrGSI2SK}
		pk, prefix = schema.ResourcePK(a.config.Namespace, q.Resource), schema.UsagePrefix
	case q.Resource == "":
		return newestFirst(client.Partition(pk, schema.SKUsagePrefix, false))
	}
	// The key of a window is its start, or a prefix of that for a day or a month. So the key of the
	// month of q.Start sorts before all windows in question, and q.End with afterNames after them.
	low, high := prefix, prefix+afterNames
	if !q.Start.IsZero() {
		low += schema.Monthly.Key(q.Start)
	}
	if !q.End.IsZero() {
		high = prefix + schema.Timestamp(q.End) + afterNames
	}
	in.ExpressionAttributeValues = schema.Item{
		":v0": schema.String(pk), ":v1": schema.String(low), ":v2": schema.String(high),
	}
	return in
}

func newestFirst(in *ddb.QueryInput) *ddb.QueryInput {
	in.ScanIndexForward = new(false)
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
		Entity: u.Entity, Resource: u.Resource, Window: string(u.Window), Start: start,
		End: u.Window.End(start), Events: u.Events, Units: u.Counters, Overdrawn: u.Overdrawn, Windows: 1,
	}, nil
}
