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
	out, err := c.client.GetItem(ctx, &ddb.GetItemInput{
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
	out, err := c.client.BatchGetItem(ctx, &ddb.BatchGetItemInput{
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
		out, err := c.client.BatchWriteItem(ctx, &ddb.BatchWriteItemInput{
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
			out, err := c.client.Query(ctx, &asked)
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
