package dynamodb

import (
	"context"
	"slices"
	"sync"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/bucketitem"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
)

// writesCases returns rules of the writes that were broken once.
func writesCases() []mistakeCase {
	return slices.Concat(
		writesLeftovers(), writesRefills(), writesDefinitions(), writesForgotten(), writesNoCache(), writesOverflow(),
		writesClose(),
	)
}

// interrupted calls do once, before the first update that matches is sent.
func interrupted(matches func(u *bucketUpdate) bool, do func()) *wrong {
	var once sync.Once
	return &wrong{send: func(_ context.Context, u *bucketUpdate, send func() error) error {
		if matches(u) {
			once.Do(do)
		}
		return send()
	}}
}

// redefines reports whether an update changes the definition of a limit.
func (u *bucketUpdate) redefines() bool {
	return slices.ContainsFunc(u.sets, u.of(schema.FieldCapacity))
}

// adjusted returns what the Python library's adjust adds to an item.
func adjusted(limit string, units int64) map[string]int64 {
	return map[string]int64{
		schema.BucketAttribute(limit, schema.FieldBalance):  -units * 1000,
		schema.BucketAttribute(limit, schema.FieldConsumed): units * 1000,
	}
}

// add adds to numbers of a bucket item without a condition, as another program would.
func (w *tableWorld) add(entity string, numbers map[string]int64) {
	w.Helper()
	e := &client.Expression{}
	for attribute, n := range numbers {
		e.AddNumber(attribute, n)
	}
	in := &ddb.UpdateItemInput{
		TableName: &w.table.Name, Key: w.id(entity, 0).Key().Item(), UpdateExpression: e.Update(),
		ExpressionAttributeNames: e.Names, ExpressionAttributeValues: e.Values,
	}
	if _, err := w.eye.store.client.API.UpdateItem(w.Context(), in); err != nil {
		w.Fatalf("add: %v", err)
	}
}

// line returns a process's queue of the first shard of a bucket.
func (p *process) line(entity string) *bucketitem.Queue {
	s := p.store.buckets.Subject(weir.Subject{Entity: entity, Resource: testResource})
	defer s.Release()
	return s.Queue(0)
}
