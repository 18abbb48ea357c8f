package dynamodb

import (
	"fmt"
	"slices"
	"testing"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/admin"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/testkit"
)

// putAll stores items as another program would.
func (s *Store) putAll(t *testing.T, items []schema.Item) {
	t.Helper()
	for some := range slices.Chunk(items, client.MaxBatchWrite) {
		var writes []types.WriteRequest
		for _, item := range some {
			writes = append(writes, types.WriteRequest{PutRequest: &types.PutRequest{Item: item}})
		}
		out, err := s.client.API.BatchWriteItem(t.Context(), &ddb.BatchWriteItemInput{
			RequestItems: map[string][]types.WriteRequest{s.client.TableName: writes},
		})
		if err != nil || len(out.UnprocessedItems) > 0 {
			t.Fatalf("got %v, and %d left", err, len(out.UnprocessedItems))
		}
	}
}

// metas returns the METAs of declared entities.
func (s *Store) metas(t *testing.T, names ...string) []schema.Item {
	t.Helper()
	items := make([]schema.Item, len(names))
	for i, name := range names {
		e, err := admin.NewEntity(s.config.Namespace, name, configNow)
		if err != nil {
			t.Fatal(err)
		}
		if items[i], err = e.Item(); err != nil {
			t.Fatal(err)
		}
	}
	return items
}

// hoursOf returns the usage items of an entity for a number of hours.
func (s *Store) hoursOf(entity string, hours int) []schema.Item {
	id := schema.BucketID{Namespace: s.config.Namespace, Entity: entity, Resource: "gpt-4o"}
	items := make([]schema.Item, hours)
	for i := range items {
		at := configNow.Add(time.Duration(i) * time.Hour)
		items[i] = schema.NewUsage(id, weir.Hourly, at).Item()
	}
	return items
}

// TestListsSkipUsage checks that a list of entities skips their rows of usage, however many there
// are.
func TestListsSkipUsage(t *testing.T) {
	t.Parallel()
	const hours = 4 * admin.ManyRows
	s := configured(t)
	var items []schema.Item
	var want []string
	plain := func(prefix string, n int) {
		for i := range n {
			want = append(want, fmt.Sprintf("%s-%03d", prefix, i))
		}
		items = append(items, s.metas(t, want[len(want)-n:]...)...)
	}
	plain("a", admin.ManyRows+10)
	for i := range 3 { // declared, with much usage
		name := fmt.Sprintf("busy-%d", i)
		want = append(want, name)
		items = append(append(items, s.metas(t, name)...), s.hoursOf(name, hours)...)
		items = append(items, s.hoursOf(fmt.Sprintf("busy-%d-nobody", i), hours)...) // not declared
	}
	plain("c", 3)
	limits := &schema.Config{Namespace: s.config.Namespace, Entity: "python", Resource: "gpt-4o"}
	limits.SetLimits([]schema.Limit{{Name: "rpm", Capacity: 5, Refill: 5, Seconds: 60}})
	items, want = append(items, limits.Item()), append(want, "python") // declared by its limits
	items = append(items, s.hoursOf("python", hours)...)
	items = append(items, s.hoursOf("some", 3)...)
	plain("z", 3)
	items = append(items, s.hoursOf("zz", hours)...)
	s.putAll(t, items)

	calls := &testkit.Counter{}
	s.options.Client = append(s.options.Client, calls.Install)
	counted := s.behind(t, testkit.NewFaults(nil))
	for size, most := range map[int]int64{7: 40, 100: 20, 1000: 15} {
		calls.Reset()
		if got := counted.listed(t, weir.EntityQuery{Size: size}); !slices.Equal(got, want) {
			t.Errorf("pages of %d: got %v, want %v", size, got, want)
		}
		if n := calls.Snapshot()["Query"].Calls; n > most {
			t.Errorf("pages of %d: got %d queries, want at most %d", size, n, most)
		}
	}
	calls.Reset()
	busy := weir.EntityQuery{Size: 1000, After: "b"}
	if got := counted.listed(t, busy); !slices.Equal(got, want[slices.Index(want, "busy-0"):]) {
		t.Errorf("the busy ones: got %v", got)
	}
	if read := calls.Snapshot().Total().Capacity.ReadMilli; read > 25_000 { // all rows are 45 units
		t.Errorf("got %d thousandths of a read unit, want at most 25 units", read)
	}
	after := weir.EntityQuery{Size: 100, After: "busy-2-nobody"}
	if got := s.listed(t, after); !slices.Equal(got, want[slices.Index(want, "c-000"):]) {
		t.Errorf("after one that is not declared: got %v", got)
	}
}
