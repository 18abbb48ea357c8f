package testkit

import (
	"context"
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// A batch is performed in part, and repeating the rest completes it.
func TestFaultUnprocessed(t *testing.T) {
	t.Parallel()
	d := DynamoDB(t)
	for _, n := range []int{1, 2, 5} {
		t.Run(fmt.Sprintf("%d items", n), func(t *testing.T) {
			t.Parallel()
			table := d.Table(t, nil)
			twice := func(operation string) FaultRule {
				return FaultRule{
					Fault: Unprocessed, PerMille: 1000, Most: 2,
					Match: func(r *FaultRequest) bool { return r.Operation == operation },
				}
			}
			faults := NewFaults(&FaultOptions{
				Rules: []FaultRule{twice("BatchWriteItem"), twice("BatchGetItem")},
			})
			client := d.Client(noRetry, faults.Install)
			var writes []types.WriteRequest
			var keys []map[string]types.AttributeValue
			for i := range n {
				item := putItem(table, fmt.Sprint(i), false).Item
				writes = append(writes, types.WriteRequest{PutRequest: &types.PutRequest{Item: item}})
				keys = append(keys, itemKey(fmt.Sprint(i)))
			}
			if rounds := writeAll(t, client, map[string][]types.WriteRequest{table: writes}); rounds < 2 {
				t.Errorf("got %d rounds of writing, want several", rounds)
			}
			if got := count(t, d, table); got != int32(n) {
				t.Errorf("got %d items written, want %d", got, n)
			}
			read, rounds := readAll(t, client, map[string]types.KeysAndAttributes{
				table: {Keys: keys, ConsistentRead: aws.Bool(true)},
			})
			if read != n || rounds < 2 {
				t.Errorf("got %d items read in %d rounds, want %d in several", read, rounds, n)
			}
		})
	}
}

// writeAll repeats the unprocessed writes until there are none. It returns the number of requests.
func writeAll(t *testing.T, client *ddb.Client, all map[string][]types.WriteRequest) int {
	t.Helper()
	for round := range 10 {
		out, err := client.BatchWriteItem(t.Context(), &ddb.BatchWriteItemInput{RequestItems: all})
		if err != nil {
			t.Fatal(err)
		}
		if all = out.UnprocessedItems; len(all) == 0 {
			return round + 1
		}
	}
	t.Fatal("there is always something left to write")
	return 0
}

// readAll repeats the unprocessed reads until there are none. It returns the number of items and of
// requests.
func readAll(
	t *testing.T, client *ddb.Client, all map[string]types.KeysAndAttributes,
) (items, rounds int) {
	t.Helper()
	for rounds < 10 {
		out, err := client.BatchGetItem(t.Context(), &ddb.BatchGetItemInput{RequestItems: all})
		if err != nil {
			t.Fatal(err)
		}
		rounds++
		for _, part := range out.Responses {
			items += len(part)
		}
		if all = out.UnprocessedKeys; len(all) == 0 {
			return items, rounds
		}
	}
	t.Fatal("there is always something left to read")
	return 0, 0
}

// A caller that reads only one page misses the later items; a caller that reads all pages gets all.
func TestFaultShortPage(t *testing.T) {
	t.Parallel()
	d := DynamoDB(t)
	table := d.Table(t, nil)
	for i := range 3 {
		if _, err := d.Client().PutItem(t.Context(), putItem(table, fmt.Sprint(i), true)); err != nil {
			t.Fatal(err)
		}
	}
	client := d.Client(noRetry, NewFaults(&FaultOptions{
		Rules: []FaultRule{{Fault: ShortPage, PerMille: 1000}},
	}).Install)
	in := &ddb.QueryInput{
		TableName: &table, IndexName: aws.String("GSI2"),
		KeyConditionExpression:    aws.String("GSI2PK = :v0"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":v0": text("res")},
	}
	items, pages := 0, 0
	for p := ddb.NewQueryPaginator(client, in); p.HasMorePages() && pages < 10; pages++ {
		out, err := p.NextPage(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if len(out.Items) > 1 {
			t.Errorf("got %d items in a page, want one at most", len(out.Items))
		}
		items += len(out.Items)
	}
	if items != 3 || pages < 3 {
		t.Errorf("got %d items in %d pages, want 3 in at least as many", items, pages)
	}
}
