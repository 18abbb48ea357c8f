package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/tables"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/namespace"
)

func register(t *testing.T, table *Table, name string) *namespace.Namespace {
	t.Helper()
	n, made, err := table.RegisterNamespace(t.Context(), name)
	if err != nil || !made {
		t.Fatalf("register %s: made %t, %v", name, made, err)
	}
	return n
}

func TestNamespaceLife(t *testing.T) {
	t.Parallel()
	table := madeTable(t)
	ctx := t.Context()
	first := register(t, table, "prod")
	again, made, err := table.RegisterNamespace(ctx, "prod")
	if err != nil || made || *again != *first {
		t.Errorf("again: got %+v, %t, %v; want %+v", again, made, err, first)
	}
	if n, err := table.Namespace(ctx, "prod"); err != nil || *n != *first {
		t.Errorf("show: got %+v, %v", n, err)
	}
	all, err := table.Namespaces(ctx)
	if err != nil || len(all) != 2 || all[0].Name != "default" || all[1] != *first {
		t.Errorf("list: got %+v, %v", all, err)
	}
	if _, err := table.RecoverNamespace(ctx, first.ID); err == nil {
		t.Error("an active namespace was recovered")
	}
	_, err = table.PurgeNamespace(ctx, first.ID, false, nil)
	wantError(t, err, weir.Conflict, "namespace_id", "weir namespace delete prod")

	deleted, err := table.DeleteNamespace(ctx, "prod")
	if err != nil || deleted.ID != first.ID || deleted.Status != "deleted" || deleted.DeletedAt == "" {
		t.Errorf("delete: got %+v, %v", deleted, err)
	}
	_, err = table.DeleteNamespace(ctx, "prod")
	wantError(t, err, weir.NotFound, "namespace", "is not registered")
	_, err = table.Namespace(ctx, "prod")
	wantError(t, err, weir.NotFound, "namespace", "is not registered")
	if all, err := table.OrphanNamespaces(ctx); err != nil || len(all) != 1 || all[0] != *deleted {
		t.Errorf("orphans: got %+v, %v; want %+v", all, err, deleted)
	}

	recovered, err := table.RecoverNamespace(ctx, first.ID)
	if err != nil || *recovered != *first {
		t.Errorf("recover: got %+v, %v; want %+v", recovered, err, first)
	}
	if n, err := table.Namespace(ctx, "prod"); err != nil || *n != *first {
		t.Errorf("show: got %+v, %v", n, err)
	}
	if all, err := table.OrphanNamespaces(ctx); err != nil || len(all) != 0 {
		t.Errorf("orphans: got %+v, %v", all, err)
	}
}

// TestNamespaceRegisteredAgain checks that a name that was deleted and registered again leads to an
// empty namespace, and that the old namespace cannot be recovered under it.
func TestNamespaceRegisteredAgain(t *testing.T) {
	t.Parallel()
	table := madeTable(t)
	first := register(t, table, "prod")
	if _, err := table.DeleteNamespace(t.Context(), "prod"); err != nil {
		t.Fatal(err)
	}
	if second := register(t, table, "prod"); second.ID == first.ID {
		t.Error("the ID is the same")
	}
	_, err := table.RecoverNamespace(t.Context(), first.ID)
	wantError(t, err, weir.Conflict, "namespace_id", "was registered again")
	_, err = table.RecoverNamespace(t.Context(), "AAAAAAAAAAA")
	wantError(t, err, weir.NotFound, "namespace_id", "weir namespace orphans")
	_, err = table.PurgeNamespace(t.Context(), "AAAAAAAAAAA", true, nil)
	wantError(t, err, weir.NotFound, "namespace_id", "weir namespace orphans")
}

func TestNamespaceNames(t *testing.T) {
	t.Parallel()
	table := madeTable(t)
	for _, good := range []string{"a", "team:a@b.c-d_e", strings.Repeat("x", 256), "0"} {
		register(t, table, good)
	}
	for name, words := range map[string]string{
		"":                       "must not be empty",
		"_":                      "reserved",
		strings.Repeat("x", 257): "at most 256",
		"a/b":                    "must begin with", "a#b": "must begin with", "-a": "must begin with",
		"a b": "must begin with", "ä": "must begin with", "a\n": "must begin with",
		"_a": "must begin with",
	} {
		_, made, err := table.RegisterNamespace(t.Context(), name)
		wantError(t, err, weir.Invalid, "namespace", words)
		if made {
			t.Errorf("%q was registered", name)
		}
	}
}

func TestNamespaceRegisteredConcurrently(t *testing.T) {
	t.Parallel()
	table := madeTable(t)
	var mu sync.Mutex
	ids, made := map[string]bool{}, 0
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			n, isNew, err := table.RegisterNamespace(t.Context(), "prod")
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			ids[n.ID] = true
			if isNew {
				made++
			}
		})
	}
	wg.Wait()
	if len(ids) != 1 || made != 1 {
		t.Errorf("got IDs %v, made %d times; want one, once", ids, made)
	}
}

// TestNamespaceLost checks a deletion that was interrupted between its two writes, as the Python
// library's can be: it leaves an active namespace without a name. The namespace is listed and can
// be recovered.
func TestNamespaceLost(t *testing.T) {
	t.Parallel()
	table := madeTable(t)
	n := register(t, table, "prod")
	c := connected(t, table)
	if err := c.BatchDelete(t.Context(), []schema.Key{schema.NamespaceKey("prod")}); err != nil {
		t.Fatal(err)
	}
	all, err := table.OrphanNamespaces(t.Context())
	if err != nil || len(all) != 1 || all[0].ID != n.ID || all[0].Status != "lost" {
		t.Errorf("got %+v, %v", all, err)
	}
	if back, err := table.RecoverNamespace(t.Context(), n.ID); err != nil || *back != *n {
		t.Errorf("got %+v, %v; want %+v", back, err, n)
	}
}

// fill writes n items of every kind into a namespace, and three that no index lists, as the Python
// library's provisioner writes them.
func fill(t *testing.T, c *tables.Table, ns string, n int) {
	t.Helper()
	var items []schema.Item
	for i := range n {
		id := schema.BucketID{Namespace: ns, Entity: fmt.Sprint("e", i), Resource: "gpt-4", Shard: 0}
		item := id.Key().Item()
		item[schema.AttrGSI4PK], item[schema.AttrGSI4SK] = schema.String(ns), schema.String(id.GSI4SK())
		items = append(items, item)
	}
	managed := &schema.Provisioner{
		Namespace: ns, Resources: []string{"hidden"}, Entities: map[string][]string{"acme": {"gpt-4"}},
		Unlisted: true,
	}
	items = append(items, managed.Item())
	for _, key := range []schema.Key{
		schema.ResourceConfigKey(ns, "hidden"), schema.EntityConfigKey(ns, "acme", "gpt-4"),
		schema.SystemConfigKey(ns),
	} {
		item := key.Item()
		item[schema.AttrGSI4PK] = schema.String(ns)
		items = append(items, item)
	}
	for _, item := range items {
		putItem(t, c.Client, item)
	}
}

// under counts the items under an ID, whether or not an index lists them.
func under(t *testing.T, c *tables.Table, ns string) int {
	t.Helper()
	n := 0
	in := &ddb.ScanInput{TableName: &c.TableName}
	for {
		out, err := c.API.Scan(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range out.Items {
			key, err := schema.KeyOf(item)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(key.PK, ns+"/") {
				n++
			}
		}
		if in.ExclusiveStartKey = out.LastEvaluatedKey; len(in.ExclusiveStartKey) == 0 {
			return n
		}
	}
}

// TestNamespacePurge checks that a purge deletes all items of a namespace and no others.
func TestNamespacePurge(t *testing.T) {
	t.Parallel()
	table := madeTable(t)
	c := connected(t, table)
	doomed, other := register(t, table, "doomed"), register(t, table, "other")
	const items = 60
	fill(t, c, doomed.ID, items)
	fill(t, c, other.ID, items)
	stray := schema.MetaKey(other.ID, "x").Item() // with the index key of another namespace
	stray[schema.AttrGSI4PK], stray[schema.AttrGSI4SK] = schema.String(doomed.ID), schema.String("x")
	putItem(t, c.Client, stray)
	if _, err := table.DeleteNamespace(t.Context(), "doomed"); err != nil {
		t.Fatal(err)
	}
	if got := under(t, c, doomed.ID); got != items+4 {
		t.Fatalf("the deletion of the name left %d items, want %d", got, items+4)
	}
	var told int64
	got, err := table.PurgeNamespace(t.Context(), doomed.ID, false, func(n int64) { told = n })
	if err != nil || got != items+4 || told != got {
		t.Errorf("got %d deleted (progress %d), %v; want %d", got, told, err, items+4)
	}
	if left := under(t, c, doomed.ID); left != 0 {
		t.Errorf("%d items stayed", left)
	}
	if kept := under(t, c, other.ID); kept != items+5 {
		t.Errorf("the other namespace has %d items, want %d", kept, items+5)
	}
	if all, err := table.OrphanNamespaces(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("orphans: got %+v, %v", all, err)
	}
}

// TestNamespacePurgeResumes checks that a purge that was interrupted cannot be undone and is
// finished by the next one, and that items of an ID that is no longer registered are deleted too.
func TestNamespacePurgeResumes(t *testing.T) {
	t.Parallel()
	table := madeTable(t)
	c := connected(t, table)
	n := register(t, table, "doomed")
	fill(t, c, n.ID, 5)
	if _, err := table.DeleteNamespace(t.Context(), "doomed"); err != nil {
		t.Fatal(err)
	}
	p := &tables.Purge{Table: c, ID: n.ID}
	if _, err := p.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := table.RecoverNamespace(t.Context(), n.ID)
	wantError(t, err, weir.Conflict, "namespace_id", "cannot be undone")
	all, err := table.OrphanNamespaces(t.Context())
	if err != nil || len(all) != 1 || all[0].Status != "purging" {
		t.Errorf("orphans: got %+v, %v", all, err)
	}
	if got, err := table.PurgeNamespace(t.Context(), n.ID, false, nil); err != nil || got != 9 {
		t.Errorf("got %d, %v; want 9", got, err)
	}
	fill(t, c, n.ID, 2)
	stray := schema.EntityConfigKey(n.ID, "forgotten", "r").Item() // no other item names it
	putItem(t, c.Client, stray)
	if got, err := table.PurgeNamespace(t.Context(), n.ID, true, nil); err != nil || got != 7 {
		t.Errorf("with scan: got %d, %v; want 7", got, err)
	}
	if left := under(t, c, n.ID); left != 0 {
		t.Errorf("%d items stayed", left)
	}
}

// TestNamespacePurgeStops checks that a purge on the table of a store stops when its context ends,
// that the error has the number of items, and that the next purge finishes it.
func TestNamespacePurgeStops(t *testing.T) {
	t.Parallel()
	table := madeTable(t)
	store, err := Open(t.Context(), table.Name, table.Options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	of := store.Table()
	n := register(t, of, "doomed")
	c := connected(t, of)
	if c.Client != store.client {
		t.Error("the table has another client than its store")
	}
	fill(t, c, n.ID, 60)
	if _, err := of.DeleteNamespace(t.Context(), "doomed"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	deleted, err := of.PurgeNamespace(ctx, n.ID, false, func(int64) { cancel() })
	wantError(t, err, weir.Unavailable, "", fmt.Sprintf("(%d items deleted so far)", deleted))
	if left := under(t, c, n.ID); deleted == 0 || left == 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("got %d items deleted, %d left, and %v", deleted, left, err)
	}
	if _, err := of.RecoverNamespace(t.Context(), n.ID); !errors.Is(err, weir.Conflict) {
		t.Errorf("recover: got %v, want a conflict", err)
	}
	if _, err := of.PurgeNamespace(t.Context(), n.ID, false, nil); err != nil {
		t.Error(err)
	}
	if left := under(t, c, n.ID); left != 0 {
		t.Errorf("%d items stayed", left)
	}
}
