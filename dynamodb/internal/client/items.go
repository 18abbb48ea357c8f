package client

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

// The largest numbers of items that DynamoDB accepts in one call.
const (
	MaxBatchGet   = 100
	MaxBatchWrite = 25
)

// The bounds of the pause before a batch asks again for what DynamoDB left out.
const (
	firstPause   = 20 * time.Millisecond
	longestPause = time.Second
)

// GetItem reads an item; nil if it does not exist.
func (c *Client) GetItem(
	ctx context.Context, key schema.Key, consistent bool,
) (schema.Item, error) {
	out, err := c.API.GetItem(ctx, &ddb.GetItemInput{
		TableName: &c.TableName, Key: key.Item(), ConsistentRead: &consistent,
	})
	if err != nil {
		return nil, Classify(err)
	}
	return out.Item, nil
}

// BatchGet reads items by their keys. It returns one item for each key, in the order of the keys;
// nil if an item does not exist. A key may occur twice.
func (c *Client) BatchGet(
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
		n := min(len(left), MaxBatchGet)
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
func (c *Client) batchGetOnce(
	ctx context.Context, keys []schema.Item, consistent bool, found map[schema.Key]schema.Item,
) ([]schema.Item, error) {
	out, err := c.API.BatchGetItem(ctx, &ddb.BatchGetItemInput{
		RequestItems: map[string]types.KeysAndAttributes{
			c.TableName: {Keys: keys, ConsistentRead: &consistent},
		},
	})
	if err != nil {
		return nil, Classify(err)
	}
	for _, item := range out.Responses[c.TableName] {
		key, err := schema.KeyOf(item)
		if err != nil {
			return nil, Unreadable(err)
		}
		found[key] = item
	}
	return out.UnprocessedKeys[c.TableName].Keys, nil
}

// BatchDelete deletes items by their keys. A missing item and a repeated key are no errors. The
// deletion is not atomic: after an error, a part of the items is deleted.
func (c *Client) BatchDelete(ctx context.Context, keys []schema.Key) error {
	known := make(map[schema.Key]bool, len(keys))
	var left []types.WriteRequest
	for _, key := range keys {
		if !known[key] {
			known[key] = true
			left = append(left, types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: key.Item()}})
		}
	}
	for attempt := 0; len(left) > 0; {
		n := min(len(left), MaxBatchWrite)
		out, err := c.API.BatchWriteItem(ctx, &ddb.BatchWriteItemInput{
			RequestItems: map[string][]types.WriteRequest{c.TableName: left[:n]},
		})
		if err != nil {
			return Classify(err)
		}
		undone := out.UnprocessedItems[c.TableName]
		left = append(left[n:], undone...)
		if attempt, err = c.backOffAfter(ctx, attempt, len(undone) > 0); err != nil {
			return err
		}
	}
	return nil
}

// backOffAfter waits after a call that left something undone, longer each time. It returns the
// number of such calls in a row.
func (*Client) backOffAfter(ctx context.Context, attempt int, undone bool) (int, error) {
	if !undone {
		return 0, nil
	}
	return attempt + 1, BackOff(ctx, attempt)
}

// BackOff waits before an attempt is repeated: a random time between half of the full pause and all
// of it, so that callers that were refused together do not return together.
func BackOff(ctx context.Context, attempt int) error {
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

// QueryPages yields the pages of a query. It ends at the first error.
func (c *Client) QueryPages(
	ctx context.Context, in *ddb.QueryInput,
) iter.Seq2[[]schema.Item, error] {
	return func(yield func([]schema.Item, error) bool) {
		asked := *in
		asked.TableName = &c.TableName
		for {
			out, err := c.API.Query(ctx, &asked)
			if err != nil {
				yield(nil, Classify(err))
				return
			}
			if !yield(out.Items, nil) || len(out.LastEvaluatedKey) == 0 {
				return
			}
			asked.ExclusiveStartKey = out.LastEvaluatedKey
		}
	}
}

// Query yields the parsed items of a query. It ends at the first error, which is from [Unreadable]
// if an item cannot be parsed.
func Query[T any](
	ctx context.Context, c *Client, in *ddb.QueryInput, parse func(schema.Item) (T, error),
) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		for page, err := range c.QueryPages(ctx, in) {
			if err != nil {
				yield(none, err)
				return
			}
			for _, item := range page {
				v, err := parse(item)
				if err != nil {
					yield(none, Unreadable(err))
					return
				}
				if !yield(v, nil) {
					return
				}
			}
		}
	}
}

// QueryAll returns all items of a query.
func (c *Client) QueryAll(ctx context.Context, in *ddb.QueryInput) ([]schema.Item, error) {
	var items []schema.Item
	for page, err := range c.QueryPages(ctx, in) {
		if err != nil {
			return nil, err
		}
		items = append(items, page...)
	}
	return items, nil
}

// Partition returns the query for all items of one partition whose sort key begins with prefix.
func Partition(pk, prefix string, consistent bool) *ddb.QueryInput {
	in := keyQuery(schema.AttrPK, pk, schema.AttrSK, prefix)
	in.ConsistentRead = &consistent
	return in
}

// Indexed returns the query for all items of one partition of an index whose sort key there begins
// with prefix. Reads of an index are eventually consistent.
func Indexed(index, pk, prefix string) *ddb.QueryInput {
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

// Parse parses an item; nil if there is none. The error is from [Unreadable].
func Parse[T any](item schema.Item, parse func(schema.Item) (*T, error)) (*T, error) {
	if item == nil {
		return nil, nil
	}
	v, err := parse(item)
	if err != nil {
		return nil, Unreadable(err)
	}
	return v, nil
}

// Get reads an item by its key and parses it; nil if it does not exist.
func Get[T any](
	ctx context.Context, c *Client, key schema.Key, consistent bool, parse func(schema.Item) (*T, error),
) (*T, error) {
	item, err := c.GetItem(ctx, key, consistent)
	if err != nil {
		return nil, err
	}
	return Parse(item, parse)
}

// Unreadable returns the error for an item that cannot be parsed: weir does not guess what it
// means.
func Unreadable(err error) error {
	return &weir.Error{
		Code: weir.Unsupported, Reason: "the table has an item that weir cannot read", Err: err,
	}
}

// Transaction collects writes that are made together or not at all.
type Transaction struct {
	Table string
	Items []types.TransactWriteItem
}

// Put adds the put of an item under the condition of e, which may be nil.
func (t *Transaction) Put(item schema.Item, e *Expression) {
	p := &types.Put{TableName: &t.Table, Item: item}
	if e != nil {
		p.ConditionExpression = e.Condition()
		p.ExpressionAttributeNames, p.ExpressionAttributeValues = e.Names, e.Values
	}
	t.Items = append(t.Items, types.TransactWriteItem{Put: p})
}

// Update adds the update of an item.
func (t *Transaction) Update(key schema.Key, e *Expression) { t.UpdateBy(key, e.Update(), e) }

// UpdateBy adds the update of an item with the given update expression and the condition of e.
func (t *Transaction) UpdateBy(key schema.Key, update *string, e *Expression) {
	t.Items = append(t.Items, types.TransactWriteItem{Update: &types.Update{
		TableName: &t.Table, Key: key.Item(), UpdateExpression: update,
		ConditionExpression:      e.Condition(),
		ExpressionAttributeNames: e.Names, ExpressionAttributeValues: e.Values,
	}})
}

// Remove adds the deletion of an item.
func (t *Transaction) Remove(key schema.Key, e *Expression) {
	t.Items = append(t.Items, types.TransactWriteItem{Delete: &types.Delete{
		TableName: &t.Table, Key: key.Item(), ConditionExpression: e.Condition(),
		ExpressionAttributeNames: e.Names, ExpressionAttributeValues: e.Values,
	}})
}

// Check adds a condition on an item that the transaction does not change.
func (t *Transaction) Check(key schema.Key, e *Expression) {
	t.Items = append(t.Items, types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
		TableName: &t.Table, Key: key.Item(), ConditionExpression: e.Condition(),
		ExpressionAttributeNames: e.Names, ExpressionAttributeValues: e.Values,
	}})
}

// TextOf returns a string attribute of an item; empty if it has none.
func TextOf(item schema.Item, attribute string) string {
	v, ok := item[attribute].(*types.AttributeValueMemberS)
	if !ok {
		return ""
	}
	return v.Value
}

// KeysOnly restricts a query to the keys of its items.
func KeysOnly(in *ddb.QueryInput) *ddb.QueryInput {
	in.ProjectionExpression = new("#k0, #k1")
	in.ExpressionAttributeNames["#k0"] = schema.AttrPK
	in.ExpressionAttributeNames["#k1"] = schema.AttrSK
	return in
}
