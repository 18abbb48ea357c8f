package testkit

import (
	"errors"
	"maps"
	"strings"
	"testing"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// A call is counted once, with the capacity that it consumed on the table and on each index. A put
// into a lean table's indexes is not cheaper, and a failed condition counts as no capacity.
func TestCounter(t *testing.T) {
	t.Parallel()
	d := DynamoDB(t)
	var counter Counter
	client := d.Client(counter.Install)
	table := d.Table(t, nil)
	if got := counter.Snapshot(); len(got) != 0 {
		t.Errorf("got %v, want no calls of other clients", got)
	}
	in := putItem(table, "a", true)
	if _, err := client.PutItem(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if in.ReturnConsumedCapacity != "" {
		t.Error("the caller's input was changed")
	}
	var taken *types.ConditionalCheckFailedException
	if _, err := client.PutItem(t.Context(), putItem(table, "a", true)); !errors.As(err, &taken) {
		t.Fatalf("got %v, want a failed condition", err)
	}
	get := &ddb.GetItemInput{TableName: &table, Key: itemKey("a")}
	for range 2 {
		if _, err := client.GetItem(t.Context(), get); err != nil {
			t.Fatal(err)
		}
	}
	batch := &ddb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
		table: {Keys: []map[string]types.AttributeValue{get.Key}},
	}}
	if _, err := client.BatchGetItem(t.Context(), batch); err != nil {
		t.Fatal(err)
	}

	got := counter.Snapshot()
	put := got["PutItem"]
	if put.Calls != 2 || put.Attempts != 2 || put.Errors["ConditionalCheckFailedException"] != 1 {
		t.Errorf("put: got %+v, want two calls in two attempts, one of them failed", put)
	}
	if want := (Capacity{WriteMilli: 2000}); put.Capacity != want {
		t.Errorf("put: got %+v, want %+v: the table and one index", put.Capacity, want)
	}
	if want := (Capacity{WriteMilli: 1000}); put.Tables != want || put.Indexes["GSI2"] != want {
		t.Errorf("put: got %+v and %v, want %+v each", put.Tables, put.Indexes, want)
	}
	if get := got["GetItem"]; get.Calls != 2 || get.Capacity != (Capacity{ReadMilli: 1000}) {
		t.Errorf("get: got %+v, want two calls of half a unit", get)
	}
	if b := got["BatchGetItem"]; b.Calls != 1 || b.Capacity != (Capacity{ReadMilli: 500}) {
		t.Errorf("batch: got %+v, want one call of half a unit", b)
	}
	if got.Reads() != 3 || got.Writes() != 2 {
		t.Errorf("got %d reads and %d writes, want 3 and 2", got.Reads(), got.Writes())
	}
	if row := "| PutItem | 2 | 2 | 1 | 0 | 2 | 1 |\n"; !strings.Contains(got.String(), row) {
		t.Errorf("got\n%swant the row %s", got, row)
	}
	if row := "| GetItem | 2 | 2 | 0 | 1 | 0 | 0 |\n"; !strings.Contains(got.String(), row) {
		t.Errorf("got\n%swant the row %s", got, row)
	}
	if total := got.Total(); total.Calls != 5 || total.Capacity != (Capacity{1500, 2000}) {
		t.Errorf("got %+v in all, want 5 calls", total)
	}
	counter.Reset()
	if got := counter.Snapshot(); len(got) != 0 {
		t.Errorf("got %v after a reset", got)
	}
}

// A retry of the SDK is another attempt of the same call.
func TestCounterAttempts(t *testing.T) {
	t.Parallel()
	d := DynamoDB(t)
	table := d.Table(t, nil)
	faults := NewFaults(&FaultOptions{Rules: []FaultRule{{Fault: Throttle, PerMille: 1000, Most: 2}}})
	var counter Counter
	client := d.Client(counter.Install, faults.Install)
	if _, err := client.PutItem(t.Context(), putItem(table, "a", true)); err != nil {
		t.Fatal(err)
	}
	got := counter.Snapshot()["PutItem"]
	if got.Calls != 1 || got.Attempts != 3 || len(got.Errors) != 0 {
		t.Errorf("got %+v, want one call in three attempts", got)
	}
}

func TestUnits(t *testing.T) {
	t.Parallel()
	got := map[int64]string{}
	want := map[int64]string{0: "0", 500: "0.5", 1000: "1", 10_000: "10", 12_345: "12.345"}
	for milli := range want {
		got[milli] = units(milli)
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
