package dynamodb

import (
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/limiter"
)

// migrateUntilBuckets migrates a table until weir can use it, and leaves all buckets.
func (w *oldTable) migrateUntilBuckets() {
	w.t.Helper()
	for {
		m, err := w.table().Migrate(w.t.Context(), true, nil)
		if err != nil {
			w.t.Fatal(err)
		}
		if m.Step == "buckets" {
			return
		}
		w.migrateKilledAt("buckets")
	}
}

// TestMigrateOnDemand checks that each way to write and to read a bucket finds the old items
// while the table is being migrated, and that a store stops looking for them when it has ended.
func TestMigrateOnDemand(t *testing.T) {
	t.Parallel()
	w := makeOldTable(t, "0.9.1", 4)
	w.migrateUntilBuckets()
	for name, o := range map[string]Options{
		"user-0": {}, "user-1": {Transactional: true}, "user-2": {NoSpeculation: true},
		"user-3": {ProcessLeases: true},
	} {
		var calls testkit.Counter
		o.Config, o.Client = w.options().Config, []func(*ddb.Options){calls.Install}
		s, err := Open(t.Context(), w.name, &o)
		if err != nil {
			t.Fatal(err)
		}
		l, err := limiter.New(s, &limiter.Options{Now: time.Now, StoreTimeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		left := map[string]int64{"user-0": 1499, "user-1": 1498, "user-2": 1497, "user-3": 1496}[name]
		status, err := l.Status(t.Context(), name, "gpt-4")
		if err != nil || status[0].Available != left {
			t.Errorf("%s: got %+v and %v, want %d left", name, status, err, left)
		}
		if n := calls.Snapshot().Writes(); n != 0 {
			t.Errorf("%s: a status made %d writes", name, n)
		}
		q := &weir.Request{Entity: name, Resource: "gpt-4", Costs: weir.Costs{"rpm": left + 1}}
		if _, err := l.Reserve(t.Context(), q); !isDenied(err) {
			t.Errorf("%s: got %v for one more than is left", name, err)
		}
		q.Costs["rpm"] = left
		if _, err := l.Reserve(t.Context(), q); err != nil {
			t.Errorf("%s: got %v for what is left", name, err)
		}
		if err := l.DeleteEntity(t.Context(), "acme"); !errors.Is(err, weir.Unavailable) {
			t.Errorf("%s: deleting an entity returned %v", name, err)
		}
		w.checkFallback(s, l, &calls)
		if err := errors.Join(l.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	}
	if m, err := w.table().Migrate(t.Context(), false, nil); err != nil || m.Step != "done" {
		t.Errorf("got %+v and %v", m, err)
	}
}

// checkFallback counts what a bucket that never existed costs while the table is migrated.
func (w *oldTable) checkFallback(s *Store, l *limiter.Limiter, calls *testkit.Counter) {
	w.t.Helper()
	if s.buckets.Old.Over() {
		w.t.Error("the store does not look for old items any more")
	}
	_, queries := w.reserveNew(l, calls)
	if queries != 1 {
		w.t.Errorf("a new bucket made %d queries, want 1", queries)
	}
}

// reserveNew reserves on a bucket that does not exist, and returns the number of reads and of
// queries.
func (w *oldTable) reserveNew(l *limiter.Limiter, calls *testkit.Counter) (gets, queries int64) {
	w.t.Helper()
	calls.Reset()
	_, err := l.Reserve(w.t.Context(), &weir.Request{
		Entity: "new-" + fmt.Sprint(time.Now().UnixNano()), Resource: "gpt-4", Costs: weir.Costs{"rpm": 1},
	})
	if err != nil {
		w.t.Error(err)
	}
	n := calls.Snapshot()
	return n["GetItem"].Calls, n["Query"].Calls
}

// TestMigrateFallbackEnds checks that a store that was opened during a migration makes no
// further call for old items once it has seen its end, and that one on another table never made
// any.
func TestMigrateFallbackEnds(t *testing.T) {
	t.Parallel()
	w := makeOldTable(t, "0.9.1", 1)
	w.migrateUntilBuckets()
	var calls testkit.Counter
	o := w.options()
	o.Client = append(o.Client, calls.Install)
	s, err := Open(t.Context(), w.name, o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := limiter.New(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if m, err := w.table().Migrate(t.Context(), false, nil); err != nil || m.Step != "done" {
		t.Fatalf("got %+v and %v", m, err)
	}
	for i, want := range [][2]int64{{1, 1}, {0, 0}, {0, 0}} {
		if gets, queries := w.reserveNew(l, &calls); gets != want[0] || queries != want[1] {
			t.Errorf("bucket %d: got %d reads and %d queries, want %v", i, gets, queries, want)
		}
	}
	if err := l.DeleteEntity(t.Context(), "bot"); err != nil {
		t.Error(err)
	}

	present := configured(t)
	calls.Reset()
	config := testkit.DynamoDB(t).Config()
	fresh, err := Open(t.Context(), present.client.TableName, &Options{
		Config: &config, Client: []func(*ddb.Options){calls.Install},
	})
	if err != nil || fresh.buckets.Old != nil {
		t.Errorf("got %v and %v", fresh, err)
	}
}

// TestMigrateStraggler checks that what a process of the old release admits after its bucket was
// carried over is charged, and that a bucket item from before is left alone.
func TestMigrateStraggler(t *testing.T) {
	t.Parallel()
	w := makeOldTable(t, "0.9.1", 2)
	w.migrateUntilBuckets()
	v, err := (&Table{Name: w.name, Options: w.options()}).Describe(t.Context())
	if err != nil || v.Schema != schema.MigratingSchema || v.Migration != "buckets" || v.Refused != nil {
		t.Errorf("got %+v and %v", v, err)
	}
	for _, entity := range []string{"user-0", "user-1"} {
		key := schema.Key{PK: "ENTITY#" + entity, SK: "#BUCKET#gpt-4"}
		old := w.item(key)
		w.reserve(entity)
		if entity == "user-1" { // as the process of the old release sees it: full, and five taken
			old[schema.AttrRF] = schema.Number(time.Now().Add(time.Minute).UnixMilli())
			old["b_rpm_tk"], old["b_rpm_tc"] = schema.Number(1_495_000), schema.Number(5000)
			old["b_tpm_tc"] = schema.Number(0)
		} else {
			old[schema.AttrRF] = schema.Number(1)
		}
		w.put(old)
	}
	usage := schema.NewUsage(schema.BucketID{Namespace: w.home(), Entity: "bot", Resource: "gpt-4"},
		weir.Monthly, time.Now())
	usage.WindowKey = usage.Start // as releases before 0.17 name it
	usage.Counters, usage.Events = map[string]int64{"tpm": 5, "rpm": 1}, 1
	w.put(usage.Item()) // weir's aggregator has counted in the same month
	if m, err := w.table().Migrate(t.Context(), false, nil); err != nil || m.Step != "done" {
		t.Fatalf("got %+v and %v", m, err)
	}
	sum, err := schema.ParseUsage(w.item(usage.Key()))
	if err != nil || sum.Counters["tpm"] != 755 || sum.Counters["rpm"] != 1 || sum.Events != 2 {
		t.Errorf("got %+v and %v of usage", sum, err)
	}
	after := w.newBalances()
	if got, want := after["user-0 gpt-4 rpm"], int64(1_499_000-1000); got != want {
		t.Errorf("user-0 has %d, want %d", got, want)
	}
	if got, want := after["user-1 gpt-4 rpm"], int64(1_498_000-1000-5000); got != want {
		t.Errorf("user-1 has %d, want %d", got, want)
	}
	if old := w.oldItems(); len(old) > 0 {
		t.Errorf("left: %v", schema.TypedJSON(old[0]))
	}
}

// item reads an item.
func (w *oldTable) item(key schema.Key) schema.Item {
	w.t.Helper()
	out, err := w.local.Client().GetItem(w.t.Context(),
		&ddb.GetItemInput{TableName: &w.name, Key: key.Item()})
	if err != nil {
		w.t.Fatal(err)
	}
	return out.Item
}

// put writes an item.
func (w *oldTable) put(item schema.Item) {
	w.t.Helper()
	_, err := w.local.Client().PutItem(w.t.Context(),
		&ddb.PutItemInput{TableName: &w.name, Item: item})
	if err != nil {
		w.t.Fatal(err)
	}
}

// reserve takes a unit of rpm.
func (w *oldTable) reserve(entity string) {
	w.t.Helper()
	s, err := Open(w.t.Context(), w.name, w.options())
	if err != nil {
		w.t.Fatal(err)
	}
	l, err := limiter.New(s, &limiter.Options{StoreTimeout: time.Minute})
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = l.Reserve(w.t.Context(), &weir.Request{
		Entity: entity, Resource: "gpt-4", Costs: weir.Costs{"rpm": 1},
	})
	if err := errors.Join(err, l.Close(), s.Close()); err != nil {
		w.t.Fatal(err)
	}
}

// TestMigrateLocks checks that no release opens a table that is being migrated, neither the one
// that made it nor the one of today.
func TestMigrateLocks(t *testing.T) {
	t.Parallel()
	for _, release := range []string{"0.9.1", "0.10.0"} {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			w := makeOldTable(t, release, 1)
			if answer := w.python(map[string]any{"reopen": true}); answer["admitted"] != true {
				t.Errorf("%s is kept out before the migration: %v", release, answer)
			}
			w.migrateUntilBuckets()
			for _, v := range []*testkit.Venv{testkit.OldZAE(t, release), testkit.ZAE(t)} {
				answer := w.pythonOf(v, map[string]any{"reopen": true})
				if answer["error"] != "IncompatibleSchemaError" {
					t.Errorf("got %v", answer)
				}
			}
		})
	}
}

// TestMigrateUsage checks that weir's aggregator counts what is used after a bucket was carried over,
// and not what the old release has used: its function counted that.
func TestMigrateUsage(t *testing.T) {
	t.Parallel()
	w := makeTableOf(t, "0.9.1", map[string]any{"entities": 2, "stream": true})
	w.migrateUntilBuckets()
	w.reserve("user-0")
	if m, err := w.table().Migrate(t.Context(), false, nil); err != nil || m.Step != "done" {
		t.Fatalf("got %+v and %v", m, err)
	}
	w.reserve("user-0")
	w.reserve("user-1")
	if _, err := w.table().Aggregate(t.Context(), &AggregateOptions{Once: true}); err != nil {
		t.Fatal(err)
	}
	hours := make(map[string]int64)
	for _, item := range w.items() {
		u, err := schema.ParseUsage(item)
		if err == nil && u.Window == weir.Hourly {
			for limit, n := range u.Counters {
				hours[u.Entity+" "+limit] += n
			}
		}
	}
	want := map[string]int64{"user-0 rpm": 2, "user-1 rpm": 1}
	if !maps.Equal(hours, want) {
		t.Errorf("got %v, want %v", hours, want)
	}
}
