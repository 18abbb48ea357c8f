package dynamodb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/change"
	"github.com/weir-limiter/weir/dynamodb/internal/admin"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/limiter"
)

func (s *Store) meta(t *testing.T, name string) *schema.Entity {
	t.Helper()
	e, err := client.Parse(s.item(t, schema.MetaKey(s.config.Namespace, name)), schema.ParseEntity)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// bucket puts a bucket item with units in use on the table.
func (s *Store) bucket(t *testing.T, entity, resource string, shard, shards int) schema.BucketID {
	t.Helper()
	id := schema.BucketID{Namespace: s.config.Namespace, Entity: entity, Resource: resource, Shard: shard}
	b, err := schema.NewBucket(id, configNow.UnixMilli(), []schema.Limit{{Name: "rpm", Capacity: 5, Refill: 5, Seconds: 60}})
	if err != nil {
		t.Fatal(err)
	}
	b.Shards, b.Limits[0].Balance = shards, 0
	s.put(t, b.Item())
	return id
}

func (s *Store) mustBucket(t *testing.T, id schema.BucketID) *schema.Bucket {
	t.Helper()
	b, err := schema.ParseBucket(s.item(t, id.Key()))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestEntityWritten(t *testing.T) {
	t.Parallel()
	s := configured(t, func(table *Table) { table.PythonBefore = true })
	s.mustEntity(t, "top", "", false)
	s.mustEntity(t, "acme", "top", true)
	e := s.meta(t, "acme")
	if e.Name != "acme" || e.Parent != "top" || !e.Cascade || e.Generation != configNow.UnixMilli() ||
		len(e.Incarnation) != 16 || e.CreatedAt != "2026-03-04T05:06:07Z" || e.Version != 0 {
		t.Errorf("created: got %+v", e)
	}
	if v := s.item(t, schema.VersionKey()); client.TextOf(v, schema.AttrClientMin) == admin.MovesSince {
		t.Error("a creation has raised client_min_version")
	}
	s.mustEntity(t, "acme", "top", true) // changes nothing
	if again := s.meta(t, "acme"); again.Generation != e.Generation || again.Version != 0 {
		t.Errorf("the same again: got %+v", again)
	}
	s.mustEntity(t, "acme", "top", false)
	s.mustEntity(t, "acme", "", false)
	moved := s.meta(t, "acme")
	if moved.Parent != "" || moved.Cascade || moved.Generation != e.Generation+2 || moved.Version != 2 ||
		moved.Incarnation != e.Incarnation || moved.CreatedAt != e.CreatedAt {
		t.Errorf("moved: got %+v", moved)
	}
	if item := s.item(t, e.Key()); item[schema.AttrGSI1PK] != nil || item[schema.AttrGSI1SK] != nil {
		t.Errorf("still a child in the index: %v", item)
	}
	if v := s.item(t, schema.VersionKey()); client.TextOf(v, schema.AttrClientMin) != admin.MovesSince {
		t.Errorf("client_min_version: got %q, want %s", client.TextOf(v, schema.AttrClientMin), admin.MovesSince)
	}
}

// TestEntityCycleOfAnotherProgram checks that a cycle of parents stored by another program is
// reported as a cycle: by a reservation that would cascade through it, and by giving an entity a
// parent in it.
func TestEntityCycleOfAnotherProgram(t *testing.T) {
	t.Parallel()
	for name, entities := range map[string][]string{
		"itself": {"a"}, "two": {"a", "b"}, "three": {"a", "b", "c"}, "four": {"a", "b", "c", "d"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := configured(t)
			s.mustSet(t, weir.Subject{}, perSecond("rpm", 10, 1))
			for i, e := range entities {
				s.mustEntity(t, e, "", false)
				s.also(t, schema.MetaKey(s.config.Namespace, e), schema.Item{
					schema.AttrParent:  schema.String(entities[(i+1)%len(entities)]),
					schema.AttrCascade: schema.Bool(true),
				})
			}
			l, err := limiter.New(s, &limiter.Options{StoreTimeout: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			_, err = l.Reserve(t.Context(), rpmOf("a", 1))
			wantError(t, err, weir.Invalid, "entity", "cycle of parents")
			err = l.SetEntity(t.Context(), "new", "a", true)
			wantError(t, err, weir.Invalid, "parent", "cycle")
			err = l.SetEntity(t.Context(), "new", "a", false)
			wantError(t, err, weir.Invalid, "parent", "cycle")
		})
	}
	s := configured(t) // a long chain is not a cycle
	s.mustSet(t, weir.Subject{}, perSecond("rpm", 10, 1))
	for _, e := range [][2]string{{"c", ""}, {"b", "c"}, {"a", "b"}} {
		s.mustEntity(t, e[0], e[1], e[1] != "")
	}
	l, err := limiter.New(s, &limiter.Options{StoreTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	_, err = l.Reserve(t.Context(), rpmOf("a", 1))
	wantError(t, err, weir.Invalid, "entity", "further than 1 levels, to \"c\"")
	err = l.SetEntity(t.Context(), "new", "b", true)
	wantError(t, err, weir.Invalid, "cascade", "levels that are allowed")
}

// TestUndeclaredResource checks that a limiter that knows only declared resources gives back what a
// cold reservation has taken from the bucket item of another one.
func TestUndeclaredResource(t *testing.T) {
	t.Parallel()
	s := configured(t)
	s.mustSet(t, weir.Subject{}, weir.Limit{
		Name: "rpm", Kind: weir.Bucket, Capacity: 10, RefillAmount: 1, RefillPeriod: 24 * time.Hour,
	})
	open := func(declared bool) *limiter.Limiter {
		l, err := limiter.New(s, &limiter.Options{
			StoreTimeout: time.Minute, DeclaredResources: declared,
		})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	request := &weir.Request{Entity: "a", Resource: "invented", Costs: weir.Costs{"rpm": 3}}
	if _, err := open(false).Reserve(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	_, err := open(true).Reserve(t.Context(), request)
	wantError(t, err, weir.NotFound, "resource", "has no limits of its own")
	statuses, err := open(false).Status(t.Context(), "a", "invented")
	if err != nil || statuses[0].Available != 7 {
		t.Errorf("got %+v, %v, want 7 of 10 left", statuses, err)
	}
}

func TestEntityRefused(t *testing.T) {
	t.Parallel()
	s := configured(t)
	s.mustEntity(t, "a", "", false)
	s.mustEntity(t, "b", "a", true)
	s.mustEntity(t, "c", "b", false)
	err := s.admin.WriteEntity(t.Context(), configNow, "a", "c", false)
	wantError(t, err, weir.Invalid, "entities.a.parent", "cycle")
	err = s.admin.WriteEntity(t.Context(), configNow, "a", "nobody", false)
	wantError(t, err, weir.Invalid, "entities.a.parent", "not declared")
	err = s.admin.DeleteEntity(t.Context(), configNow, "nobody")
	wantError(t, err, weir.NotFound, "entity", "not declared")
	err = s.admin.DeleteEntity(t.Context(), configNow, "b")
	wantError(t, err, weir.Conflict, "entity", "parent of c")
	if e := s.meta(t, "a"); e.Parent != "" || e.Version != 1 { // it has a child
		t.Errorf("a refused change was made: %+v", e)
	}
	// Lambda functions of another version would write the old parent back.
	s.also(t, schema.VersionKey(), schema.Item{schema.AttrLambdaVersion: schema.String("0.16.2")})
	err = s.admin.WriteEntity(t.Context(), configNow, "c", "a", false)
	wantError(t, err, weir.Unsupported, "lambda_version", "0.17.0")
	s.also(t, schema.VersionKey(), schema.Item{schema.AttrLambdaVersion: schema.String("0.17.0")})
	s.mustEntity(t, "c", "a", false)
}

// TestEntityByItsLimits checks entities that the Python library has given limits and no META: they
// are declared.
func TestEntityByItsLimits(t *testing.T) {
	t.Parallel()
	s := configured(t)
	s.put(t, (&schema.Config{
		Namespace: s.config.Namespace, Entity: "py", Resource: "gpt-4o",
		Limits: []schema.Limit{{Name: "rpm", Capacity: 5, Refill: 5, Seconds: 60}},
	}).Item())
	config, err := s.ReadConfig(t.Context(), weir.Subject{Entity: "py", Resource: "gpt-4o"}, false)
	if err != nil || !config.Known {
		t.Errorf("got %+v, %v; want it known", config, err)
	}
	if e, err := s.admin.ReadEntity(t.Context(), "py"); err != nil || e == nil || len(e.Limits["gpt-4o"]) != 1 {
		t.Errorf("got %+v, %v", e, err)
	}
	s.mustEntity(t, "child", "py", true)
	if e := s.meta(t, "py"); e == nil {
		t.Error("the parent has no META")
	}
	own := weir.Subject{Entity: "own", Resource: "gpt-4o"}
	s.mustSet(t, own, rate("rpm", 1))
	e := s.meta(t, "own")
	if e == nil || e.Parent != "" {
		t.Errorf("setting limits declared %+v", e)
	}
	s.mustSet(t, own, rate("rpm", 2))
	if again := s.meta(t, "own"); again.Incarnation != e.Incarnation {
		t.Error("setting limits again made another entity")
	}
	s.mustSet(t, own)
	if s.meta(t, "own") == nil {
		t.Error("an entity went with its limits")
	}
}

// TestBucketsAreStamped checks that a change of parent stamps every shard, and overwrites no later
// stamp.
func TestBucketsAreStamped(t *testing.T) {
	t.Parallel()
	s := configured(t)
	s.mustEntity(t, "top", "", false)
	s.mustEntity(t, "acme", "", false)
	first := s.bucket(t, "acme", "gpt-4o", 0, 2)
	second := s.bucket(t, "acme", "gpt-4o", 1, 2)
	quiet := s.bucket(t, "acme", "quiet", 0, 1)
	later := s.bucket(t, "acme", "later", 0, 1)
	s.also(t, schema.ResourceConfigKey(s.config.Namespace, "quiet"), schema.Item{"cascade": truthOf(false)})
	e := s.meta(t, "acme")
	s.also(t, later.Key(), schema.Item{
		schema.AttrPInc: schema.String(e.Incarnation), schema.AttrPGen: schema.Number(e.Generation + 100),
		schema.AttrParent: schema.String("newer"),
	})
	s.mustEntity(t, "acme", "top", true)
	for id, want := range map[schema.BucketID]bool{first: true, second: true, quiet: false} {
		b := s.mustBucket(t, id)
		if b.Parent != "top" || b.Cascade != want || b.Generation != e.Generation+1 || b.Incarnation != e.Incarnation {
			t.Errorf("%v: got parent %q, cascade %t, generation %d", id, b.Parent, b.Cascade, b.Generation)
		}
	}
	if b := s.mustBucket(t, later); b.Parent != "newer" || b.Generation != e.Generation+100 {
		t.Errorf("a later change was undone: %+v", b)
	}
	s.mustEntity(t, "acme", "", false)
	if b := s.mustBucket(t, first); b.Parent != "" || b.Cascade {
		t.Errorf("taken away: got %+v", b)
	}
}

func TestEntityDeleted(t *testing.T) {
	t.Parallel()
	s := configured(t)
	s.mustSet(t, weir.Subject{Entity: "stays", Resource: "gpt-4o"}, rate("rpm", 1))
	acme := weir.Subject{Entity: "acme", Resource: "gpt-4o"}
	for range 2 {
		s.mustSet(t, acme, rate("rpm", 1))
		s.mustSet(t, weir.Subject{Entity: "acme", Resource: weir.DefaultResource}, rate("rpm", 1))
		id := s.bucket(t, "acme", "gpt-4o", 0, 1)
		s.bucket(t, "acme", "gpt-4o", 1, 1) // a shard that the first does not count yet
		usage := schema.NewUsage(id, weir.Hourly, configNow)
		s.put(t, usage.Item())
		record := operationKey(id, "once")
		s.also(t, record, nil)
		if err := s.admin.DeleteEntity(t.Context(), configNow, "acme"); err != nil {
			t.Fatal(err)
		}
		for _, prefix := range []string{schema.EntityPK(s.config.Namespace, "acme"), id.PK()} {
			left, err := s.client.QueryAll(t.Context(), client.Partition(prefix, "#", true))
			left = slices.DeleteFunc(left, func(item schema.Item) bool {
				return reflect.DeepEqual(item, usage.Item()) // it stays
			})
			if err != nil || len(left) != 0 {
				t.Errorf("left: %v, %v", left, err)
			}
		}
		if n, err := s.admin.DeleteUsage(t.Context(), "acme"); err != nil || n != 1 {
			t.Errorf("usage: deleted %d, %v, want 1", n, err)
		}
		ids, err := s.shardsOf(t.Context(), "acme")
		if err != nil || len(ids) != 0 {
			t.Errorf("left: %v, %v", ids, err)
		}
		registry := s.item(t, schema.EntityConfigResourcesKey(s.config.Namespace))
		if n, err := schema.Int64(registry["gpt-4o"]); err != nil || n != 1 || registry[weir.DefaultResource] != nil {
			t.Errorf("registry: got %v, want gpt-4o once", registry)
		}
		if err := s.admin.DeleteEntity(t.Context(), configNow, "acme"); !errors.Is(err, weir.NotFound) {
			t.Errorf("again: got %v, want not found", err)
		}
	}
	deletions := 0
	for e, err := range s.admin.ReadAudit(t.Context(), &weir.AuditQuery{At: weir.Subject{Entity: "acme"}}, false) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Action != schema.ActionEntityDeleted {
			continue
		}
		deletions++ // of two buckets, one record, two configurations and META
		if e.Details["records_deleted"] != int64(6) || e.Details["complete"] != true {
			t.Errorf("audit: got %+v", e)
		}
	}
	if deletions != 2 {
		t.Errorf("got %d deletions in the audit, want 2", deletions)
	}
}

// TestManyConfigsDeleted deletes more configurations than a transaction can hold.
func TestManyConfigsDeleted(t *testing.T) {
	t.Parallel()
	s := configured(t)
	const n = admin.MaxConfigsAtOnce + 5
	counted := schema.EntityConfigResourcesKey(s.config.Namespace)
	counts := schema.Item{
		schema.AttrGSI4PK: schema.String(s.config.Namespace), schema.AttrGSI4SK: schema.String(counted.PK),
	}
	for i := range n {
		c := schema.Config{Namespace: s.config.Namespace, Entity: "acme", Resource: fmt.Sprintf("r%d", i)}
		c.SetLimits([]schema.Limit{{Name: "rpm", Capacity: 1, Refill: 1, Seconds: 60}})
		s.put(t, c.Item())
		counts[c.Resource] = schema.Number(1)
	}
	s.also(t, counted, counts)
	if err := s.admin.DeleteEntity(t.Context(), configNow, "acme"); err != nil {
		t.Fatal(err)
	}
	d, err := s.config.ReadDefinition(t.Context(), "acme")
	if err != nil || d.Declared() || len(d.Levels) != 0 {
		t.Errorf("left: %+v, %v", d, err)
	}
	if registry := s.item(t, counted); len(registry) != 4 {
		t.Errorf("left in the registry: %v", registry)
	}
}

// TestEntityMetadata changes an entity's name and metadata from several writers, each of which
// changes what it has read.
func TestEntityMetadata(t *testing.T) {
	t.Parallel()
	s := configured(t)
	ctx := t.Context()
	s.mustEntity(t, "acme", "", false)
	const editors = 5
	var all sync.WaitGroup
	for i := range editors {
		all.Go(func() {
			s.editMetadata(t, func(m map[string]any) {
				m[fmt.Sprintf("k%d", i)] = []any{int64(i), nil, true, json.Number("0.5")}
			})
		})
	}
	all.Wait()
	e, err := s.admin.ReadEntity(ctx, "acme")
	if err != nil || e.Name != "Acme Inc." || len(e.Metadata) != editors {
		t.Errorf("got %+v, %v; want an edit of each of %d", e, err, editors)
	}
	list, _ := e.Metadata["k3"].([]any)
	if want := []any{int64(3), nil, true, json.Number("0.5")}; !slices.Equal(list, want) {
		t.Errorf("got %v, want %v", list, want)
	}
	if e := s.meta(t, "acme"); e.Version != editors {
		t.Errorf("version: got %d, want %d", e.Version, editors)
	}
	s.mustEntity(t, "acme", "", false) // the name and the metadata stay
	if again, err := s.admin.ReadEntity(ctx, "acme"); err != nil || again.Version != e.Version {
		t.Errorf("got %+v, %v; want no change", again, err)
	}
}

// editMetadata changes the metadata of acme, again and again until nobody else is quicker.
func (s *Store) editMetadata(t *testing.T, edit func(m map[string]any)) {
	t.Helper()
	for {
		e, err := s.admin.ReadEntity(t.Context(), "acme")
		if err != nil {
			t.Error(err)
			return
		}
		c := &change.Entity{Name: new("Acme Inc."), Metadata: maps.Clone(e.Metadata)}
		if c.Metadata == nil {
			c.Metadata = map[string]any{}
		}
		edit(c.Metadata)
		version, err := s.admin.ChangeEntity(t.Context(), configNow, "acme", c, change.Options{IfVersion: e.Version})
		if errors.Is(err, weir.Conflict) {
			continue
		}
		if err != nil || version == e.Version {
			t.Errorf("got version %q after %q, %v", version, e.Version, err)
		}
		return
	}
}

// TestConcurrentParentChanges checks that of two changes that would make a cycle together, one
// fails.
func TestConcurrentParentChanges(t *testing.T) {
	t.Parallel()
	s := configured(t)
	for range 5 {
		s.mustEntity(t, "a", "", false)
		s.mustEntity(t, "b", "", false)
		var all sync.WaitGroup
		errs := make([]error, 2)
		for i, pair := range [][2]string{{"a", "b"}, {"b", "a"}} {
			all.Go(func() {
				errs[i] = s.admin.WriteEntity(context.WithoutCancel(t.Context()), configNow, pair[0], pair[1], false)
			})
		}
		all.Wait()
		if s.meta(t, "a").Parent != "" && s.meta(t, "b").Parent != "" {
			t.Fatalf("a cycle: %v", errs)
		}
		if s.meta(t, "a").Parent == "" && s.meta(t, "b").Parent == "" {
			t.Errorf("both changes failed: %v", errs)
		}
		s.mustEntity(t, "a", "", false)
		s.mustEntity(t, "b", "", false)
	}
}

// shardsOf returns the bucket items of an entity, shard by shard.
func (s *Store) shardsOf(ctx context.Context, entity string) ([]schema.BucketID, error) {
	var ids []schema.BucketID
	for group, err := range s.admin.BucketGroups(ctx, entity) {
		if err != nil {
			return nil, err
		}
		for _, b := range group {
			ids = append(ids, b.ID)
		}
	}
	return ids, nil
}
