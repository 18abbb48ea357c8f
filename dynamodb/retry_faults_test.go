package dynamodb

import (
	"context"
	"sync"
	"testing"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/testkit"
)

// faulty returns a client of a table with faults.
func faulty(t *testing.T, table *Table, seed uint64) (*client.Client, *testkit.Faults) {
	t.Helper()
	var rules []testkit.FaultRule
	for _, fault := range []testkit.Fault{
		testkit.LostAnswer, testkit.LostRequest, testkit.NoConnection, testkit.Throttle, testkit.Fail,
		testkit.FailAfter, testkit.Conflict, testkit.Cancel,
	} {
		rules = append(rules, testkit.FaultRule{Fault: fault, PerMille: 60, Match: writesItems})
	}
	faults := testkit.NewFaults(&testkit.FaultOptions{Seed: seed, Rules: rules})
	o := *table.Options
	o.HTTP = faults.HTTPClient()
	c, err := connect(t.Context(), table.Name, &o)
	if err != nil {
		t.Fatal(err)
	}
	return c, faults
}

func writesItems(r *testkit.FaultRequest) bool {
	return r.Operation == "UpdateItem" || r.Operation == "TransactWriteItems"
}

// TestFaultyWrites checks that a write reported as applied was applied once, one reported as failed
// was not applied, and one that may have been applied is reported as unknown. A transaction is
// repeated until its outcome is known, in nearly all cases.
func TestFaultyWrites(t *testing.T) {
	t.Parallel()
	table := madeTable(t)
	const writes, callers, seed = 400, 4, 20261121
	for name, add := range map[string]func(context.Context, *client.Client, schema.Key) error{
		"update": addOne, "transaction": addOneInTransaction,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, faults := faulty(t, table, seed)
			key := schema.Key{PK: "ns/" + name, SK: "#"}
			count := map[client.WriteKind]int64{}
			var mu sync.Mutex
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() {
					for range writes / callers {
						kind := client.OutcomeOf(add(t.Context(), c, key)).Kind
						mu.Lock()
						count[kind]++
						mu.Unlock()
					}
				})
			}
			wg.Wait()
			faults.Wait()
			item, err := connected(t, table).GetItem(t.Context(), key, true)
			if err != nil {
				t.Fatal(err)
			}
			got, err := schema.Int64(item["n"])
			if err != nil {
				t.Fatal(err)
			}
			done, unknown := count[client.WriteApplied], count[client.WriteUnknown]
			t.Logf("seed %d: of %d writes %d are done, %d unknown; the table counts %d; %d requests",
				seed, writes, done, unknown, got, faults.Asked())
			if got < done || got > done+unknown {
				t.Errorf("the table counts %d, want from %d to %d", got, done, done+unknown)
			}
			if name == "update" && (unknown == 0 || got == done+unknown || got == done) {
				t.Error("too few faults to show anything")
			}
			if name == "transaction" && unknown > writes/20 {
				t.Errorf("%d are unknown", unknown)
			}
			if done < writes/2 {
				t.Errorf("only %d are done", done)
			}
		})
	}
}

func addOne(ctx context.Context, c *client.Client, key schema.Key) error {
	_, err := c.API.UpdateItem(ctx, &ddb.UpdateItemInput{
		TableName: &c.TableName, Key: key.Item(), UpdateExpression: new("ADD #n0 :v0"),
		ExpressionAttributeNames:  map[string]string{"#n0": "n"},
		ExpressionAttributeValues: schema.Item{":v0": schema.Number(1)},
	})
	return err
}

func addOneInTransaction(ctx context.Context, c *client.Client, key schema.Key) error {
	_, err := c.API.TransactWriteItems(ctx, &ddb.TransactWriteItemsInput{
		TransactItems: []types.TransactWriteItem{{Update: &types.Update{
			TableName: &c.TableName, Key: key.Item(), UpdateExpression: new("ADD #n0 :v0"),
			ExpressionAttributeNames:  map[string]string{"#n0": "n"},
			ExpressionAttributeValues: schema.Item{":v0": schema.Number(1)},
		}}},
	})
	return err
}
