package dynamodb

import (
	"context"
	"iter"
	"math/rand/v2"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
)

// The most that DynamoDB takes in one call.
const (
	maxBatchGet   = 100
	maxBatchWrite = 25
)

// The pauses before what a batch left undone is asked again.
const (
	firstPause   = 20 * time.Millisecond
	longestPause = time.Second
)

// getItem reads an item; nil if there is none.
func (c *tableClient) getItem(
	ctx context.Context, key schema.Key, consistent bool,
) (schema.Item, error) {
	out, err := c.api.GetItem(ctx, &ddb.GetItemInput{
		TableName: &c.table, Key: key.Item(), ConsistentRead: &consistent,
	})
	if err != nil {
		return nil, classify(err)
	}
	return out.Item, nil
}

// batchGet reads items by their keys. The answer has one for each key, in the order of the keys,
// and nil where there is no item. A key may occur twice.
func (c *tableClient) batchGet(
	ctx context.Context, keys []schema.Key, consistent bool,
) ([]schema.Item, error) {
	found := make(map[schema.Key]schema.Item, len(keys))
	var left []schema.Item
	for _, key := range keys {
		if _, twice := found[key]; !twice {
			found[key] = nil
			left = append(left, key.Item())
		}
	}
	for attempt := 0; len(left) > 0; {
		n := min(len(left), maxBatchGet)
		undone, err := c.batchGetOnce(ctx, left[:n], consistent, found)
		if err != nil {
			return nil, err
		}
		left = append(left[n:], undone...)
		if attempt, err = c.backOffAfter(ctx, attempt, len(undone) > 0); err != nil {
			return nil, err
		}
	}
	items := make([]schema.Item, len(keys))
	for i, key := range keys {
		items[i] = found[key]
	}
	return items, nil
}

// batchGetOnce reads the items of one call into found, and returns the keys that DynamoDB left out.
func (c *tableClient) batchGetOnce(
	ctx context.Context, keys []schema.Item, consistent bool, found map[schema.Key]schema.Item,
) ([]schema.Item, error) {
	out, err := c.api.BatchGetItem(ctx, &ddb.BatchGetItemInput{
		RequestItems: map[string]types.KeysAndAttributes{
			c.table: {Keys: keys, ConsistentRead: &consistent},
		},
	})
	if err != nil {
		return nil, classify(err)
	}
	for _, item := range out.Responses[c.table] {
		key, err := schema.KeyOf(item)
		if err != nil {
			return nil, unreadable(err)
		}
		found[key] = item
	}
	return out.UnprocessedKeys[c.table].Keys, nil
}

// batchDelete deletes items by their keys. What is not there is no mistake; nor is a key that
// occurs twice. It is not atomic: after an error, some are deleted.
func (c *tableClient) batchDelete(ctx context.Context, keys []schema.Key) error {
	known := make(map[schema.Key]bool, len(keys))
	var left []types.WriteRequest
	for _, key := range keys {
		if !known[key] {
			known[key] = true
			left = append(left, types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: key.Item()}})
		}
	}
	for attempt := 0; len(left) > 0; {
		n := min(len(left), maxBatchWrite)
		out, err := c.api.BatchWriteItem(ctx, &ddb.BatchWriteItemInput{
			RequestItems: map[string][]types.WriteRequest{c.table: left[:n]},
		})
		if err != nil {
			return classify(err)
		}
		undone := out.UnprocessedItems[c.table]
		left = append(left[n:], undone...)
		if attempt, err = c.backOffAfter(ctx, attempt, len(undone) > 0); err != nil {
			return err
		}
	}
	return nil
}

// backOffAfter waits after a call that left something undone, longer each time, and returns how
// many such calls there were by now.
func (*tableClient) backOffAfter(ctx context.Context, attempt int, undone bool) (int, error) {
	if !undone {
		return 0, nil
	}
	return attempt + 1, backOff(ctx, attempt)
}

// backOff waits before an attempt is repeated: somewhere between half of what is due and all of it,
// so that those who were refused together do not come again together.
func backOff(ctx context.Context, attempt int) error {
	due := min(longestPause, firstPause<<min(attempt, 10))
	t := time.NewTimer(due/2 + rand.N(due/2))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return &weir.Error{Code: weir.Unavailable, Reason: "the table is throttled", Err: ctx.Err()}
	}
}

// queryPages asks a query page by page. It ends with the first error.
func (c *tableClient) queryPages(
	ctx context.Context, in *ddb.QueryInput,
) iter.Seq2[[]schema.Item, error] {
	return func(yield func([]schema.Item, error) bool) {
		asked := *in
		asked.TableName = &c.table
		for {
			out, err := c.api.Query(ctx, &asked)
			if err != nil {
				yield(nil, classify(err))
				return
			}
			if !yield(out.Items, nil) || len(out.LastEvaluatedKey) == 0 {
				return
			}
			asked.ExclusiveStartKey = out.LastEvaluatedKey
		}
	}
}

// queryAll asks a query to its end.
func (c *tableClient) queryAll(ctx context.Context, in *ddb.QueryInput) ([]schema.Item, error) {
	var items []schema.Item
	for page, err := range c.queryPages(ctx, in) {
		if err != nil {
			return nil, err
		}
		items = append(items, page...)
	}
	return items, nil
}

// partition is the query for all items of one partition whose sort key begins with prefix.
func partition(pk, prefix string, consistent bool) *ddb.QueryInput {
	in := keyQuery(schema.AttrPK, pk, schema.AttrSK, prefix)
	in.ConsistentRead = &consistent
	return in
}

// indexed is the query for all items of one partition of an index whose sort key there begins with
// prefix. An index is always read eventually.
func indexed(index, pk, prefix string) *ddb.QueryInput {
	in := keyQuery(index+"PK", pk, index+"SK", prefix)
	in.IndexName = &index
	return in
}

func keyQuery(pkName, pk, skName, prefix string) *ddb.QueryInput {
	in := &ddb.QueryInput{
		KeyConditionExpression:    new("#n0 = :v0"),
		ExpressionAttributeNames:  map[string]string{"#n0": pkName},
		ExpressionAttributeValues: schema.Item{":v0": schema.String(pk)},
	}
	if prefix != "" {
		in.KeyConditionExpression = new("#n0 = :v0 AND begins_with(#n1, :v1)")
		in.ExpressionAttributeNames["#n1"] = skName
		in.ExpressionAttributeValues[":v1"] = schema.String(prefix)
	}
	return in
}

// unreadable is the error for an item that cannot be read: weir must not guess what it says.
func unreadable(err error) error {
	return &weir.Error{
		Code: weir.Unsupported, Reason: "the table has an item that weir cannot read", Err: err,
	}
}

// transaction collects writes that are made together or not at all.
type transaction struct {
	table string
	items []types.TransactWriteItem
}

// put writes a whole item; e, which may be nil, holds its condition.
func (t *transaction) put(item schema.Item, e *expression) {
	p := &types.Put{TableName: &t.table, Item: item}
	if e != nil {
		p.ConditionExpression = e.condition()
		p.ExpressionAttributeNames, p.ExpressionAttributeValues = e.names, e.values
	}
	t.items = append(t.items, types.TransactWriteItem{Put: p})
}

// update changes an item.
func (t *transaction) update(key schema.Key, e *expression) { t.updateBy(key, e.update(), e) }

// updateBy changes an item by an update expression of its own.
func (t *transaction) updateBy(key schema.Key, update *string, e *expression) {
	t.items = append(t.items, types.TransactWriteItem{Update: &types.Update{
		TableName: &t.table, Key: key.Item(), UpdateExpression: update,
		ConditionExpression:      e.condition(),
		ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
	}})
}

// remove deletes an item.
func (t *transaction) remove(key schema.Key, e *expression) {
	t.items = append(t.items, types.TransactWriteItem{Delete: &types.Delete{
		TableName: &t.table, Key: key.Item(), ConditionExpression: e.condition(),
		ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
	}})
}

// check requires something of an item that the transaction does not change.
func (t *transaction) check(key schema.Key, e *expression) {
	t.items = append(t.items, types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
		TableName: &t.table, Key: key.Item(), ConditionExpression: e.condition(),
		ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
	}})
}
