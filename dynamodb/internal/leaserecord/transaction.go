package leaserecord

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
)

// Transacted is the write of a slot as a part of transactions, which does not go through a queue.
type Transacted struct {
	*Write
	store     *Store
	key       schema.Key
	keptUntil int64
}

// Transacted returns the write of a slot as a part of transactions. It waits until the slice of the
// record is registered.
func (s *Store) Transacted(ctx context.Context, w *Write) (*Transacted, error) {
	t := &Transacted{Write: w, store: s}
	t.key, w.slot = schema.LeaseRecordKey(s.namespace, w.ID)
	r := s.register(ctx, schema.LeaseSlice(w.ID))
	select {
	case <-r.done:
		return t, r.err
	case <-ctx.Done():
		return nil, client.AbandonedError(ctx)
	}
}

// Item returns the part of the next transaction.
func (t *Transacted) Item() types.TransactWriteItem {
	e := expression([]*Write{t.Write}, t.keptUntil)
	return types.TransactWriteItem{Update: &types.Update{
		TableName: &t.store.client.TableName, Key: t.key.Item(),
		UpdateExpression: e.Update(), ConditionExpression: e.Condition(),
		ExpressionAttributeNames: e.Names, ExpressionAttributeValues: e.Values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}

// Refused reports by the reason of a cancelled transaction whether the slot is taken, and what it
// holds. If it is not, the transaction can be sent again with a new part.
func (t *Transacted) Refused(reason *types.CancellationReason) (found *schema.Lease, err error) {
	t.keptUntil = keptUntil(reason.Item)
	return parse(reason.Item, t.ID)
}
