package stream_test

import (
	"testing"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// TestOldDoubling checks that the record of a doubling does not raise the count on the items of a
// bucket that was made again after it, and has fewer shards.
func TestOldDoubling(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.setLimit(divisible)
	w.putShard("acme", 0, 2)
	w.putShard("acme", 0, 4)
	_, err := w.c.API.DeleteItem(t.Context(), &ddb.DeleteItemInput{
		TableName: &w.table.Name, Key: w.shardID("acme", 0).Key().Item(),
	})
	if err != nil {
		t.Fatal(err)
	}
	w.putShard("acme", 0, 2)
	w.putShard("acme", 1, 2)
	w.count()
	w.judgeCounts("acme", 2, 0, 1)
}
