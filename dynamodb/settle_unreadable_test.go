package dynamodb

import (
	"context"
	"sync"
	"testing"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-limiter/weir"
)

// TestRefundWithUnreadableAnswer has another program write an attribute that weir cannot read just
// before a refund, and remove it a moment later. The refund must not be made twice.
func TestRefundWithUnreadableAnswer(t *testing.T) {
	t.Parallel()
	inTableWorld(t, madeTable(t), nil, func(w *tableWorld) {
		w.system(noRefill("n", 100))
		var once sync.Once
		p := w.hooked(processOptions{}, &wrong{send: func(_ context.Context, u *bucketUpdate, send func() error) error {
			if u.refund() {
				once.Do(func() { w.edit(testEntity, 0, map[string]int64{"cascade": 1}) })
			}
			return send()
		}})
		l := p.admit(testEntity, weir.Costs{"n": 30})
		p.admit(testEntity, weir.Costs{"n": 30})
		_, err := l.Cancel(w.Context())
		w.Logf("cancel: %v, balance %+v", err, w.raw(testEntity, 0)["b_n_tk"])
		remove := "REMOVE #c"
		if _, err := w.eye.store.client.API.UpdateItem(w.Context(), &ddb.UpdateItemInput{
			TableName: &w.table.Name, Key: w.id(testEntity, 0).Key().Item(), UpdateExpression: &remove,
			ExpressionAttributeNames: map[string]string{"#c": "cascade"},
		}); err != nil {
			w.Fatalf("%v", err)
		}
		p.quiet()
		equal(w, "balance", w.stored(testEntity, 0, "n").Balance, 70_000)
	})
}
