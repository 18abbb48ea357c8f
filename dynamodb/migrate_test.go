package dynamodb

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/testkit"
)

// oldReleases are the newest release of each older layout, with what a dry run counts on the
// table that each makes, and one release of 0.8.
func oldReleases() map[string]Migration {
	plain := func(from string, indexes ...string) Migration {
		return Migration{
			Step: "indexes", From: from, Indexes: indexes, Entities: 3, Places: 6, Registries: 2, Buckets: 9,
			Usage: 2, Audit: 9,
		}
	}
	each := func(from string) Migration { // an event for each limit of the system, and no count of entities
		m := plain(from, "GSI3", "GSI4")
		m.Registries, m.Audit = 1, 10
		return m
	}
	return map[string]Migration{
		"0.6.1": each("1.0.0"), "0.7.0": each("0.7.0"),
		"0.8.1": plain("0.8.0", "GSI4"), "0.9.1": plain("0.8.0", "GSI4"),
		"0.10.0": {Step: "indexes", From: "0.8.0", Namespaces: true, Buckets: 10},
	}
}

// TestMigrate migrates the table of each release and checks that weir and the Python library
// 0.17 read what was on it.
func TestMigrate(t *testing.T) {
	t.Parallel()
	for release, counts := range oldReleases() {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			w := makeOldTable(t, release, 3)
			before, refilled := w.oldBalances(), w.oldRefills()
			w.checkDryRun(counts)
			m, err := w.table().Migrate(t.Context(), false, nil)
			want := counts
			if want.Step = "done"; err != nil || fmt.Sprint(*m) != fmt.Sprint(want) {
				t.Fatalf("got %+v and %v, want %+v", m, err, want)
			}
			w.checkItems(before)
			w.checkRefills(refilled)
			w.checkLock()
			s, err := Open(t.Context(), w.name, w.options())
			if err != nil {
				t.Fatal(err)
			}
			if s.buckets.Old != nil {
				t.Error("the store looks for old items on a table that was migrated")
			}
			w.checkPython(s)
			if m, err := w.table().Migrate(t.Context(), false, nil); err != nil || m.Step != "" {
				t.Errorf("got %+v and %v, want nothing to migrate", m, err)
			}
		})
	}
}

// checkDryRun checks that the table is refused, and that a dry run counts and changes nothing.
func (w *oldTable) checkDryRun(want Migration) {
	w.t.Helper()
	_, err := Open(w.t.Context(), w.name, w.options())
	if !errors.Is(err, weir.Unsupported) || !strings.Contains(err.Error(), "weir table migrate") {
		w.t.Errorf("got %v, want the command", err)
	}
	items := fmt.Sprint(w.typedItems())
	m, err := w.table().Migrate(w.t.Context(), true, nil)
	if err != nil || fmt.Sprint(*m) != fmt.Sprint(want) {
		w.t.Errorf("got %+v and %v, want %+v", m, err, want)
	}
	if fmt.Sprint(w.typedItems()) != items {
		w.t.Error("the dry run has changed items")
	}
}

// typedItems returns all items in a form that can be compared.
func (w *oldTable) typedItems() map[string]any {
	all := make(map[string]any)
	for _, item := range w.items() {
		key, err := schema.KeyOf(item)
		if err != nil {
			w.t.Fatal(err)
		}
		all[key.String()] = schema.TypedJSON(item)
	}
	return all
}

// checkItems checks that no old item is left, and that each balance is as it was. Two buckets
// have other limits than before: those releases ignored the default of the entity, or the
// caller brought the limits.
func (w *oldTable) checkItems(before balances) {
	w.t.Helper()
	if old := w.oldItems(); len(old) > 0 {
		w.t.Errorf("%d old items are left, such as %v", len(old), schema.TypedJSON(old[0]))
	}
	want := maps.Clone(before)
	switch w.release {
	case "0.6.1", "0.7.0":
		delete(want, "lone gpt-4 tpm")
		want["lone gpt-4 rpm"], want["lone gpt-4o rpm"] = 40_000, 40_000
	default:
		delete(want, "brought gpt-4 tokens")
		want["brought gpt-4 rpm"], want["brought gpt-4 tpm"] = 1_500_000, 100_000_000
	}
	if got := w.newBalances(); !maps.Equal(got, want) {
		w.t.Errorf("got  %v\nwant %v", got, want)
	}
	if before["deep gpt-4o rpm"] != -93_000 {
		w.t.Errorf("got %v, want a debt", before)
	}
	for _, b := range w.newBuckets() {
		for _, l := range b.Limits {
			if l.Consumed != 0 {
				w.t.Errorf("%s counts %d of %s as consumed", b.ID(), l.Consumed, l.Name)
			}
		}
		if cascades := b.Entity == "bot"; b.Cascade != cascades || (b.Parent == "acme") != cascades {
			w.t.Errorf("%s has parent %q and cascade %v", b.ID(), b.Parent, b.Cascade)
		}
	}
}

// oldRefills returns the times of the last refill by "entity resource".
func (w *oldTable) oldRefills() balances {
	all := make(balances)
	for _, item := range w.oldItems() {
		for _, name := range []string{"rf", "last_refill_ms"} {
			if item[name] != nil {
				key := client.TextOf(item, "entity_id") + " " + client.TextOf(item, "resource")
				all[key] = max(all[key], w.number(item, name))
			}
		}
	}
	return all
}

// checkRefills checks that no bucket that kept its limits was refilled.
func (w *oldTable) checkRefills(before balances) {
	w.t.Helper()
	for _, b := range w.newBuckets() {
		was := before[b.Entity+" "+b.Resource]
		if b.Entity != "lone" && b.Entity != "brought" && b.RefilledMS != was {
			w.t.Errorf("%s was refilled at %d, want %d", b.ID(), b.RefilledMS, was)
		}
	}
}

// checkLock checks that the old release does not admit anything more. The wheels of 0.6.1 and
// 0.7.0 do not know their version, and 0.10.0 finds its own keys: nothing on the table can stop
// them if the caller brings limits.
func (w *oldTable) checkLock() {
	w.t.Helper()
	if w.release == "0.10.0" {
		return
	}
	want := "IncompatibleSchemaError"
	if w.release == "0.6.1" || w.release == "0.7.0" {
		want = "ValidationError"
	}
	answer := w.python(map[string]any{"reopen": true})
	if answer["error"] != want {
		w.t.Errorf("got %v, want %s", answer, want)
	}
	if old := w.oldItems(); len(old) > 0 {
		w.t.Errorf("the release has written %v", schema.TypedJSON(old[0]))
	}
}

// checkPython checks what the library of today reads, and that it reserves.
func (w *oldTable) checkPython(s *Store) {
	w.t.Helper()
	step := func(method string, with map[string]any, want string) pythonStep {
		return pythonStep{pyStep: pyStep{method: method, with: with}, want: want}
	}
	on := func(entity, resource string) map[string]any {
		return map[string]any{"entity_id": entity, "resource": resource}
	}
	const slow = `,1,1000000000]`
	for method, want := range map[string][]string{ // in any order
		"get_limits": {`["rpm",300` + slow, `["tpm",9000` + slow},
		"get_buckets": {
			`{"limit_name":"rpm","tokens_milli":297000}`, `{"limit_name":"tpm","tokens_milli":8250000}`,
		},
	} {
		answer := s.python(w.t, pyStep{method: method, with: on("bot", "gpt-4")})[0]
		var got []any
		if err := json.Unmarshal(answer, &got); err != nil {
			w.t.Fatalf("%s: %s: %v", method, answer, err)
		}
		for _, text := range want {
			var one any
			if err := json.Unmarshal([]byte(text), &one); err != nil {
				w.t.Fatal(err)
			}
			has := slices.ContainsFunc(got, func(v any) bool { return within(one, v) })
			if !has || len(got) != len(want) {
				w.t.Errorf("%s: got %s, want %s", method, answer, text)
			}
		}
	}
	s.judgePython(w.t,
		step("get_system_defaults", nil, `[[["rpm",70`+slow+`],"allow"]`),
		step("get_resource_defaults", map[string]any{"resource": "gpt-4o"}, `[["rpm",77`+slow+`]`),
		step("get_limits", on("lone", "_default_"), `[["rpm",40`+slow+`]`),
		step("list_resources_with_entity_configs", nil, `["_default_","gpt-4"]`),
		step("list_resources_with_defaults", nil, `["gpt-4","gpt-4o"]`),
		step("list_entities_with_custom_limits", map[string]any{"resource": "gpt-4"},
			`[["acme","bot"],null]`),
		step("get_entity", map[string]any{"entity_id": "acme"},
			`{"name":"Acme","metadata":{"tier":"gold"}}`),
		step("get_children", map[string]any{"parent_id": "acme"}, `[{"id":"bot","cascade":true}]`),
		step("get_buckets", on("deep", "gpt-4o"), `[{"limit_name":"rpm","tokens_milli":-93000}]`),
		step("get_usage_snapshots", map[string]any{"entity_id": "bot"},
			`[[{"resource":"gpt-4","window_type":"monthly","counters":{"tpm":750}}],null]`),
		step("get_audit_events", map[string]any{"entity_id": "bot"},
			`[{"action":"limits_set"},{"action":"entity_created"}]`),
		step("acquire", map[string]any{
			"entity_id": "bot", "resource": "gpt-4", "consume": map[string]any{"rpm": 297},
		}, `"admitted"`),
		step("acquire", map[string]any{
			"entity_id": "bot", "resource": "gpt-4", "consume": map[string]any{"rpm": 1},
		}, `{"error":"RateLimitExceeded"}`),
		step("acquire", map[string]any{
			"entity_id": "deep", "resource": "gpt-4o", "consume": map[string]any{"rpm": 1},
		}, `{"error":"RateLimitExceeded"}`),
	)
}

// TestMigrateRefuses checks the tables that cannot be migrated, and that nothing on them changes.
func TestMigrateRefuses(t *testing.T) {
	t.Parallel()
	local := testkit.DynamoDB(t)
	options := func() *Options {
		cfg := testkit.LocalConfig(local.Endpoint())
		return &Options{Config: &cfg}
	}
	record := func(name string, key schema.Key, version string) {
		t.Helper()
		item := key.Item()
		item[schema.AttrSchemaVersion] = schema.String(version)
		if _, err := local.Client().PutItem(t.Context(),
			&ddb.PutItemInput{TableName: &name, Item: item}); err != nil {
			t.Fatal(err)
		}
	}
	plain := schema.Key{PK: "SYSTEM#", SK: "#VERSION"}
	for name, tc := range map[string]struct {
		prepare func(table string)
		code    weir.Code
		field   string
		words   string
	}{
		"an empty table": {nil, weir.NotFound, "store.table", "nothing to migrate"},
		"a newer table": {
			func(table string) { record(table, schema.VersionKey(), "0.11.0") },
			weir.Invalid, "", "",
		},
		"a newer major version": {
			func(table string) { record(table, schema.VersionKey(), "2.0.0") },
			weir.Unsupported, "schema_version", "newer",
		},
		"a record without namespaces that no release writes": {
			func(table string) { record(table, plain, "2.0.0") },
			weir.Unsupported, "schema_version", "not that of an older layout",
		},
		"a record that is no version": {
			func(table string) { record(table, plain, "new") },
			weir.Unsupported, "schema_version", "not that of an older layout",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := &Table{Name: local.Table(t, nil), Options: options()}
			if tc.prepare != nil {
				tc.prepare(table.Name)
			}
			for _, dry := range []bool{true, false} {
				m, err := table.Migrate(t.Context(), dry, nil)
				if tc.words == "" {
					if err != nil || m.Step != "" {
						t.Errorf("got %+v and %v, want nothing to do", m, err)
					}
					continue
				}
				wantError(t, err, tc.code, tc.field, tc.words)
			}
		})
	}
	missing := &Table{Name: "weir-missing", Options: options()}
	_, err := missing.Migrate(t.Context(), false, nil)
	wantError(t, err, weir.NotFound, "store.table", "does not exist")
}

// TestMigrateDenied checks that a caller who may not make one of the calls gets that error, and
// that another caller continues from there.
func TestMigrateDenied(t *testing.T) {
	t.Parallel()
	w := makeOldTable(t, "0.7.0", 1)
	for _, operation := range []string{
		"DescribeTable", "GetItem", "UpdateTable", "Scan", "TransactWriteItems", "UpdateTimeToLive",
	} {
		table := w.table()
		table.Options.HTTP = &http.Client{Transport: testkit.NewFaults(&testkit.FaultOptions{
			Rules: []testkit.FaultRule{{
				Fault: testkit.Refuse, PerMille: 1000, Code: "AccessDeniedException",
				Match: func(r *testkit.FaultRequest) bool { return r.Operation == operation },
			}},
		})}
		_, err := table.Migrate(t.Context(), false, nil)
		if !errors.Is(err, weir.PermissionDenied) {
			t.Errorf("%s: got %v", operation, err)
		}
	}
	if m, err := w.table().Migrate(t.Context(), false, nil); err != nil || m.Step != "done" {
		t.Errorf("got %+v and %v", m, err)
	}
	if old := w.oldItems(); len(old) > 0 {
		t.Errorf("%d old items are left", len(old))
	}
}

// TestMigratePresent checks that a table of the present layout costs two reads and is not
// changed.
func TestMigratePresent(t *testing.T) {
	t.Parallel()
	s := configured(t)
	var calls testkit.Counter
	table := &Table{Name: s.client.TableName, Options: &Options{
		Config: s.options.Config, Client: []func(*ddb.Options){calls.Install},
	}}
	for _, dry := range []bool{true, false} {
		calls.Reset()
		m, err := table.Migrate(t.Context(), dry, func(*Migration) { t.Error("progress") })
		if err != nil || m.Step != "" || m.From != "" {
			t.Errorf("got %+v and %v", m, err)
		}
		n := calls.Snapshot()
		if len(n) != 2 || n["DescribeTable"].Calls != 1 || n["GetItem"].Calls != 1 {
			t.Errorf("made these calls: %s", n)
		}
	}
}

// TestMigrateUnknown checks that items that are not understood stay where they are: of an unknown
// kind, and of a layout that is older than the table's.
func TestMigrateUnknown(t *testing.T) {
	t.Parallel()
	for release, unknown := range map[string]schema.Key{
		"0.9.1":  {PK: "ENTITY#x", SK: "#RESOURCE#gpt-4"},
		"0.10.0": {PK: "ENTITY#x", SK: "#BUCKET#gpt-4"},
	} {
		w := makeOldTable(t, release, 1)
		w.put(unknown.Item())
		dry, err := w.table().Migrate(t.Context(), true, nil)
		if err != nil || dry.Unknown != 1 {
			t.Errorf("%s: got %+v and %v", release, dry, err)
		}
		m, err := w.table().Migrate(t.Context(), false, nil)
		if err != nil || m.Step != "done" || m.Buckets != dry.Buckets {
			t.Errorf("%s: got %+v and %v", release, m, err)
		}
		if old := w.oldItems(); len(old) != 1 || client.TextOf(old[0], schema.AttrSK) != unknown.SK {
			t.Errorf("%s: got %d old items", release, len(old))
		}
	}
}

// TestMigrateTogether checks that several migrations of one table at once do no harm.
func TestMigrateTogether(t *testing.T) {
	t.Parallel()
	w := makeOldTable(t, "0.7.0", 20)
	before := w.oldBalances()
	errs := make(chan error)
	const all = 3
	for range all {
		go func() {
			_, err := w.table().Migrate(t.Context(), false, nil)
			errs <- err
		}()
	}
	for range all {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	w.checkItems(before)
	counts := w.item(schema.EntityConfigResourcesKey(w.home()))
	if w.number(counts, "gpt-4") != 2 || w.number(counts, "_default_") != 1 {
		t.Errorf("the registry counts %v", schema.TypedJSON(counts))
	}
}

// home returns the ID of the namespace "default".
func (w *oldTable) home() string {
	w.t.Helper()
	name := schema.NamespaceKey(schema.DefaultNamespace)
	return client.TextOf(w.item(name), schema.AttrNamespaceID)
}
