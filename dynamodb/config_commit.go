package dynamodb

import (
	"context"
	"errors"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
)

// Bounds of a change of the configuration.
const (
	// maxPlans is how often a change is planned anew because what it was planned on has changed.
	maxPlans = 8
	// maxSends is how often one transaction is sent.
	maxSends = 6
)

// configTransaction is a change of the configuration with its audit: whole or nothing.
type configTransaction struct {
	table     string
	namespace string
	now       time.Time
	principal string
	// retention is how many days an audit event is kept; a plan that records something sets it.
	retention int64
	events    int
	items     []types.TransactWriteItem
}

// put writes a whole item.
func (t *configTransaction) put(item schema.Item, e *expression) {
	p := &types.Put{TableName: &t.table, Item: item}
	if e != nil {
		p.ConditionExpression = e.condition()
		p.ExpressionAttributeNames, p.ExpressionAttributeValues = e.names, e.values
	}
	t.items = append(t.items, types.TransactWriteItem{Put: p})
}

// update changes an item.
func (t *configTransaction) update(key schema.Key, e *expression) { t.updateBy(key, e.update(), e) }

// updateBy changes an item by an expression of its own.
func (t *configTransaction) updateBy(key schema.Key, update *string, e *expression) {
	t.items = append(t.items, types.TransactWriteItem{Update: &types.Update{
		TableName: &t.table, Key: key.Item(), UpdateExpression: update,
		ConditionExpression:      e.condition(),
		ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
	}})
}

// remove deletes an item.
func (t *configTransaction) remove(key schema.Key, e *expression) {
	t.items = append(t.items, types.TransactWriteItem{Delete: &types.Delete{
		TableName: &t.table, Key: key.Item(), ConditionExpression: e.condition(),
		ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
	}})
}

// check requires something of an item that the transaction does not change.
func (t *configTransaction) check(key schema.Key, e *expression) {
	t.items = append(t.items, types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
		TableName: &t.table, Key: key.Item(), ConditionExpression: e.condition(),
		ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
	}})
}

// errMoved says that what a transaction was planned on has changed meanwhile.
var errMoved = errors.New("the configuration has changed meanwhile")

// changeConfig plans a change from what it reads and writes it. Where others were faster it is
// planned anew. A plan without items is done already.
func (s *Store) changeConfig(
	ctx context.Context, now time.Time, plan func(ctx context.Context, t *configTransaction) error,
) error {
	principal, err := s.principal(ctx)
	if err != nil {
		return err
	}
	for attempt := range maxPlans {
		t := &configTransaction{table: s.table, namespace: s.namespace, now: now, principal: principal}
		if err := plan(ctx, t); err != nil {
			return err
		}
		if len(t.items) == 0 {
			return nil
		}
		if err := s.send(ctx, now, t); !errors.Is(err, errMoved) {
			return err
		}
		if err := backOff(ctx, attempt); err != nil {
			return err
		}
	}
	return &weir.Error{
		Code: weir.Unavailable, Reason: "others keep changing the same part of the configuration", Err: errMoved,
	}
}

// send writes a transaction. Its token makes it safe to send again where an answer was lost.
func (s *Store) send(ctx context.Context, now time.Time, t *configTransaction) error {
	token := weir.NewLeaseID(now).String()
	in := &ddb.TransactWriteItemsInput{TransactItems: t.items, ClientRequestToken: &token}
	var err error
	for attempt := range maxSends {
		_, err = s.client.TransactWriteItems(ctx, in)
		switch outcomeOf(err).kind {
		case writeApplied:
			return nil
		case writeRefused:
			return errMoved
		case writeConflicted, writeThrottled:
			if waiting := backOff(ctx, attempt); waiting != nil {
				return classify(err)
			}
		default:
			return classify(err) // the SDK has sent it as often as may help
		}
	}
	return classify(err)
}
