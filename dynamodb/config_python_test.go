package dynamodb

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/change"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/testkit"
)

// pyStep is a call of a method of the Python library's repository.
type pyStep struct {
	method string
	with   map[string]any
}

// MarshalJSON encodes a step for the script.
func (s pyStep) MarshalJSON() ([]byte, error) {
	with := s.with
	if with == nil {
		with = map[string]any{}
	}
	return json.Marshal([]any{s.method, with})
}

// pythonStep is a step and its expected result in JSON; empty if the result does not matter.
type pythonStep struct {
	pyStep

	want string
}

// python makes the Python library run steps on the store's table, and returns the results.
func (s *Store) python(t *testing.T, steps ...pyStep) []json.RawMessage {
	t.Helper()
	return s.pythonAt(t, *s.client.API.Options().BaseEndpoint, steps...)
}

// pythonAt is python with another address of DynamoDB Local.
func (s *Store) pythonAt(t *testing.T, endpoint string, steps ...pyStep) []json.RawMessage {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	local := testkit.DynamoDB(t)
	spec, err := json.Marshal(map[string]string{
		"endpoint": endpoint, "table": s.client.TableName, "namespace": s.options.Namespace,
	})
	if err != nil {
		t.Fatal(err)
	}
	in, err := json.Marshal(steps)
	if err != nil {
		t.Fatal(err)
	}
	cmd := testkit.ZAE(t).Command(ctx, "python", "testdata/config_steps.py", string(spec))
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), &stderr
	cmd.Env = append(slices.Concat(cmd.Env, local.Environment()), "HOME="+os.TempDir())
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("python: %v\n%s", err, stderr.String())
	}
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n")) // the aggregator logs to stdout too
	var answers []json.RawMessage
	if err := json.Unmarshal(lines[len(lines)-1], &answers); err != nil || len(answers) != len(steps) {
		t.Fatalf("python said %s: %v", out, err)
	}
	return answers
}

// judgePython compares the library's results with the expected ones: every field of an expected
// object, and any other value as a whole.
func (s *Store) judgePython(t *testing.T, questions ...pythonStep) {
	t.Helper()
	steps := make([]pyStep, len(questions))
	for i, q := range questions {
		steps[i] = q.pyStep
	}
	for i, answer := range s.python(t, steps...) {
		q := questions[i]
		if q.want == "" {
			if bytes.Contains(answer, []byte(`"error"`)) {
				t.Errorf("%s(%v): %s", q.method, q.with, answer)
			}
			continue
		}
		var got, want any
		if err := json.Unmarshal(answer, &got); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(q.want), &want); err != nil {
			t.Fatal(err)
		}
		if !within(want, got) {
			t.Errorf("%s(%v): got %s, want %s", q.method, q.with, answer, q.want)
		}
	}
}

// within reports whether got equals want, except that objects may have more fields.
func within(want, got any) bool {
	switch want := want.(type) {
	case map[string]any:
		object, ok := got.(map[string]any)
		for name, v := range want {
			ok = ok && within(v, object[name])
		}
		return ok
	case []any:
		list, ok := got.([]any)
		if !ok || len(list) != len(want) {
			return false
		}
		for i := range want {
			ok = ok && within(want[i], list[i])
		}
		return ok
	}
	return want == got
}

// withPython returns a store on a table with a name that the library accepts.
func withPython(t *testing.T, tune ...func(*Table)) *Store {
	t.Helper()
	testkit.ZAE(t)
	named := func(table *Table) { table.Name = "weir-" + rand.Text()[:16] }
	return configured(t, append(tune, named)...)
}

func pyLimit(name string, capacity, refill, seconds int64) map[string]any {
	return map[string]any{
		"name": name, "capacity": capacity, "refill_amount": refill, "refill_period_seconds": seconds,
	}
}

// TestPythonReadsConfig checks that the Python library understands the configuration that weir
// writes.
func TestPythonReadsConfig(t *testing.T) {
	t.Parallel()
	s := withPython(t)
	gpt := "gpt-4o"
	s.mustSet(t, weir.Subject{}, rate("rpm", 600))
	if err := s.admin.WritePolicy(t.Context(), configNow, weir.Allow); err != nil {
		t.Fatal(err)
	}
	kept := weir.Retention{UsageDays: new(int64(7)), AuditDays: new(int64(8)), TTLMultiplier: new(int64(9))}
	if err := s.WriteRetention(t.Context(), configNow.Add(time.Second), &kept); err != nil {
		t.Fatal(err)
	}
	s.mustSet(t, weir.Subject{Resource: gpt}, rate("rpm", 500), rate("t-p.m_cp", 1000))
	s.mustEntity(t, "acme", "", false)
	s.mustSet(t, weir.Subject{Entity: "bot", Resource: gpt}, rate("rpm", 100))
	s.mustSet(t, weir.Subject{Entity: "bot", Resource: weir.DefaultResource}, rate("rpm", 50))
	s.mustEntity(t, "bot", "acme", true)
	id := s.bucket(t, "bot", gpt, 0, 1)
	used := schema.NewUsage(id, weir.Daily, configNow)
	used.Events, used.Counters["rpm"] = 3, 12
	s.put(t, used.Item())
	entity := func(name string) map[string]any { return map[string]any{"entity_id": name} }
	s.judgePython(t,
		pythonStep{pyStep{"get_entity", entity("bot")},
			`{"id": "bot", "name": "bot", "parent_id": "acme", "cascade": true, "metadata": {}}`},
		pythonStep{pyStep{"get_entity", entity("nobody")}, `null`},
		pythonStep{pyStep{"get_children", map[string]any{"parent_id": "acme"}}, `[{"id": "bot"}]`},
		pythonStep{pyStep{"get_limits", map[string]any{"entity_id": "bot", "resource": gpt}}, `[["rpm", 100, 100, 60]]`},
		pythonStep{pyStep{"get_limits", entity("bot")}, `[["rpm", 50, 50, 60]]`},
		pythonStep{pyStep{"get_resource_defaults", map[string]any{"resource": gpt}},
			`[["rpm", 500, 500, 60], ["t-p.m_cp", 1000, 1000, 60]]`},
		pythonStep{pyStep{"get_system_defaults", nil}, `[[["rpm", 600, 600, 60]], "allow"]`},
		pythonStep{pyStep{"resolve_limits", map[string]any{"entity_id": "bot", "resource": "o"}},
			`[[["rpm", 50, 50, 60]], "allow", "entity_default"]`},
		pythonStep{pyStep{"resolve_limits", map[string]any{"entity_id": "x", "resource": "o"}},
			`[[["rpm", 600, 600, 60]], "allow", "system"]`},
		pythonStep{pyStep{"list_resources_with_defaults", nil}, `["gpt-4o"]`},
		pythonStep{pyStep{"list_resources_with_entity_configs", nil}, `["_default_", "gpt-4o"]`},
		pythonStep{pyStep{"list_entities_with_custom_limits", map[string]any{"resource": gpt}}, `[["bot"], null]`},
		pythonStep{pyStep{"get_audit_events", entity("$RESOURCE:" + gpt)}, `[{"action": "limits_set", "resource": "gpt-4o",
			"principal": "tester", "timestamp": "2026-03-04T05:06:07Z", "details": {"limits": [
			{"name": "rpm", "capacity": 500, "refill_amount": 500, "refill_period_seconds": 60},
			{"name": "t-p.m_cp", "capacity": 1000, "refill_amount": 1000, "refill_period_seconds": 60}]}}]`},
		pythonStep{pyStep{"get_audit_events", map[string]any{"entity_id": "$SYSTEM", "limit": 1}},
			`[{"action": "retention_set", "details": {"usage_retention_days": 7, "audit_retention_days": 8,
			"bucket_ttl_multiplier": 9}}]`},
		pythonStep{pyStep{"get_audit_events", entity("acme")}, `[{"action": "entity_created", "details":
			{"name": "acme", "parent_id": null, "cascade": false, "metadata": {}}}]`},
		pythonStep{pyStep{"get_usage_snapshots", entity("bot")}, `[[{"window_type": "daily", "resource": "gpt-4o",
			"window_start": "2026-03-04T00:00:00Z", "counters": {"rpm": 12}, "total_events": 3}], null]`},
		pythonStep{pyStep{"get_usage_snapshots", map[string]any{"resource": gpt, "window_type": "daily"}},
			`[[{"entity_id": "bot"}], null]`},
		// The library can go on from there: its own changes of the same items succeed.
		pythonStep{pyStep{"set_parent", map[string]any{"entity_id": "bot", "parent_id": nil}}, `{"error": "VersionMismatchError"}`},
		pythonStep{pyStep{"delete_limits", map[string]any{"entity_id": "bot", "resource": gpt}}, ""},
		pythonStep{pyStep{"list_resources_with_entity_configs", nil}, `["_default_"]`},
		pythonStep{pyStep{"delete_entity", entity("bot")}, ""},
		pythonStep{pyStep{"get_children", map[string]any{"parent_id": "acme"}}, `[]`},
	)
}

// TestConfigOfPython checks that weir understands the configuration that the Python library writes.
func TestConfigOfPython(t *testing.T) {
	t.Parallel()
	s := withPython(t)
	gpt := map[string]any{"resource": "gpt-4o"}
	// The library changes a parent only if it knows which functions are deployed.
	s.also(t, schema.VersionKey(), schema.Item{schema.AttrLambdaVersion: schema.String("0.17.0")})
	with := func(more map[string]any, also map[string]any) map[string]any {
		out := map[string]any{}
		for _, m := range []map[string]any{more, also} {
			maps.Copy(out, m)
		}
		return out
	}
	limits := func(l ...map[string]any) map[string]any { return map[string]any{"limits": l} }
	s.judgePython(t,
		pythonStep{pyStep{"set_system_defaults", with(limits(pyLimit("rpm", 75, 50, 60)), map[string]any{"on_unavailable": "block"})}, ""},
		pythonStep{pyStep{"set_resource_defaults", with(gpt, limits(pyLimit("rpm", 10, 10, 1), pyLimit("tph", 5000, 2500, 3600)))}, ""},
		pythonStep{pyStep{"create_entity", map[string]any{"entity_id": "acme", "name": "Acme Inc."}}, ""},
		pythonStep{pyStep{"create_entity", map[string]any{"entity_id": "bot", "parent_id": "acme", "cascade": true,
			"metadata": map[string]any{"team": "a", "n": 7, "deep": map[string]any{"list": []any{1, nil, true}}}}}, ""},
		pythonStep{pyStep{"create_entity", map[string]any{"entity_id": "top"}}, ""},
		pythonStep{pyStep{"set_limits", with(gpt, with(map[string]any{"entity_id": "bot"}, limits(pyLimit("rpm", 7, 7, 60))))}, ""},
		pythonStep{pyStep{"set_limits", with(map[string]any{"entity_id": "loose"}, limits(pyLimit("rpm", 9, 9, 60)))}, ""},
		pythonStep{pyStep{"set_parent", map[string]any{"entity_id": "acme", "parent_id": "top"}}, "0"},
		pythonStep{pyStep{"disable_entity", map[string]any{"entity_id": "top", "resource": "gpt-4o"}}, ""},
		pythonStep{pyStep{"count", map[string]any{"windows": []string{"hourly", "daily"}, "entity_id": "bot", "resource": "gpt-4o",
			"limit_name": "rpm", "tokens_delta": 12000, "timestamp_ms": configNow.UnixMilli()}}, ""},
	)
	ctx := t.Context()
	config, err := s.ReadConfig(ctx, weir.Subject{Entity: "bot", Resource: "gpt-4o"}, true)
	if err != nil {
		t.Fatal(err)
	}
	want := []weir.LevelLimits{
		{Level: weir.LevelEntity, Limits: []weir.Limit{rate("rpm", 7)}},
		{Level: weir.LevelResource, Limits: []weir.Limit{
			{Name: "rpm", Kind: weir.Bucket, Capacity: 10, RefillAmount: 10, RefillPeriod: time.Second},
			{Name: "tph", Kind: weir.Bucket, Capacity: 5000, RefillAmount: 2500, RefillPeriod: time.Hour},
		}},
		{Level: weir.LevelSystem, Limits: []weir.Limit{
			{Name: "rpm", Kind: weir.Bucket, Capacity: 75, RefillAmount: 50, RefillPeriod: time.Minute},
		}},
	}
	if !slices.EqualFunc(config.Levels, want, sameLevel) || config.Parent != "acme" || !config.Cascade ||
		config.OnUnavailable != weir.Block || !config.Known {
		t.Errorf("got %+v", config)
	}
	if _, err := s.ReadConfig(ctx, weir.Subject{Entity: "top", Resource: "gpt-4o"}, true); codeOf(err) != weir.PermissionDenied {
		t.Errorf("disabled: got %v", err)
	}
	if e := s.meta(t, "acme"); e.Parent != "top" || e.Generation == 0 {
		t.Errorf("moved: got %+v", e)
	}
	s.checkEntitiesOfPython(t)
	s.checkRecordsOfPython(t)
	s.editAfterPython(t)
}

func (s *Store) checkEntitiesOfPython(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	if got := s.listed(t, weir.EntityQuery{Size: 10}); !slices.Equal(got, []string{"acme", "bot", "loose", "top"}) {
		t.Errorf("entities: got %v", got)
	}
	if got := s.listed(t, weir.EntityQuery{Size: 10, Resource: "gpt-4o"}); !slices.Equal(got, []string{"bot"}) {
		t.Errorf("with limits of their own: got %v, want bot and not top, which is disabled there", got)
	}
	if got, err := s.admin.ConfiguredResources(ctx, true); err != nil || !slices.Equal(got, []string{"gpt-4o"}) {
		t.Errorf("resources with limits: got %v, %v", got, err)
	}
	if got, err := s.admin.EntityConfigResources(ctx, true); err != nil || !slices.Equal(got, []string{"_default_", "gpt-4o"}) {
		t.Errorf("resources with limits of entities: got %v, %v", got, err)
	}
	e, err := s.admin.ReadEntity(ctx, "acme")
	if err != nil || e.Name != "Acme Inc." || len(e.Metadata) != 0 {
		t.Errorf("got %+v, %v", e, err)
	}
	e, err = s.admin.ReadEntity(ctx, "bot")
	if err != nil || e.Name != "" || e.Metadata["team"] != "a" || e.Metadata["n"] != int64(7) {
		t.Errorf("got %+v, %v", e, err)
	}
}

func sameLevel(a, b weir.LevelLimits) bool {
	return a.Level == b.Level && slices.EqualFunc(a.Limits, b.Limits, weir.Limit.Same)
}

func (s *Store) checkRecordsOfPython(t *testing.T) {
	t.Helper()
	var actions []string
	for _, e := range s.audited(t, weir.Subject{Entity: "acme"}, "") {
		actions = append(actions, e.Action)
	}
	if want := []string{"entity_parent_changed", "entity_created"}; !slices.Equal(actions, want) {
		t.Errorf("audit: got %v, want %v", actions, want)
	}
	if e := s.audited(t, weir.Subject{}, ""); len(e) != 1 || e[0].Details["on_unavailable"] != "block" {
		t.Errorf("audit of the system: got %+v", e)
	}
	windows := map[string]int64{}
	for _, w := range []weir.UsageWindow{weir.Hourly, weir.Daily} {
		q := &weir.UsageQuery{Resource: "gpt-4o", Window: w}
		for u, err := range s.admin.ReadUsage(t.Context(), q, nil) {
			if err != nil {
				t.Fatal(err)
			}
			windows[u.Entity+" "+string(u.Window)] = u.Units["rpm"]
		}
	}
	if len(windows) != 2 || windows["bot hourly"] != 12 || windows["bot daily"] != 12 {
		t.Errorf("usage: got %v", windows)
	}
}

// editAfterPython changes items of the library with weir, which keeps the attributes that it does
// not know.
func (s *Store) editAfterPython(t *testing.T) {
	t.Helper()
	s.mustSet(t, weir.Subject{Entity: "bot", Resource: "gpt-4o"}, rate("rpm", 8))
	s.mustSet(t, weir.Subject{Entity: "top", Resource: "gpt-4o"}, rate("rpm", 8))
	if err := s.admin.DeleteEntity(t.Context(), configNow, "loose"); err != nil {
		t.Error(err)
	}
	s.mustEntity(t, "bot", "top", false)
	e, err := s.admin.ReadEntity(t.Context(), "bot")
	if err != nil {
		t.Fatal(err)
	}
	e.Metadata["n"] = int64(8)
	c := &change.Entity{Parent: e.Parent, Cascade: e.Cascade, Name: new("BOT"), Metadata: e.Metadata}
	o := change.Options{IfVersion: e.Version}
	if _, err := s.admin.ChangeEntity(t.Context(), configNow, "bot", c, o); err != nil {
		t.Error(err)
	}
	s.judgePython(t,
		pythonStep{pyStep{"get_entity", map[string]any{"entity_id": "bot"}}, `{"name": "BOT", "parent_id": "top", "cascade": false,
			"metadata": {"team": "a", "n": 8, "deep": {"list": [1, null, true]}}}`},
		pythonStep{pyStep{"get_entity_disabled", map[string]any{"entity_id": "top", "resource": "gpt-4o"}}, `true`},
		pythonStep{pyStep{"get_limits", map[string]any{"entity_id": "top", "resource": "gpt-4o"}}, `[["rpm", 8, 8, 60]]`},
		pythonStep{pyStep{"list_resources_with_entity_configs", nil}, `["gpt-4o"]`},
		pythonStep{pyStep{"get_children", map[string]any{"parent_id": "top"}}, `[{"id": "acme"}, {"id": "bot"}]`},
		pythonStep{pyStep{"delete_limits", map[string]any{"entity_id": "bot", "resource": "gpt-4o"}}, ""},
		pythonStep{pyStep{"delete_limits", map[string]any{"entity_id": "top", "resource": "gpt-4o"}}, ""},
		pythonStep{pyStep{"list_resources_with_entity_configs", nil}, `[]`},
		pythonStep{pyStep{"set_parent", map[string]any{"entity_id": "bot", "parent_id": nil}}, "0"},
	)
}

// TestPythonRefuses checks what the docs say that the Python library refuses on a table that weir
// made. There lambda_version is null, because the library's functions are not deployed. So the
// library refuses every change that these functions would have to respect, and writes none of it.
// Everything else works.
func TestPythonRefuses(t *testing.T) {
	t.Parallel()
	s := withPython(t)
	const refused = `{"error": "VersionMismatchError"}`
	soft, daily := pyLimit("rpm", 10, 10, 60), pyLimit("rpm", 10, 0, 60)
	soft["soft"] = true
	daily["reset_after"] = 86400
	plain := []map[string]any{pyLimit("rpm", 10, 10, 60)}
	set := func(limit map[string]any) pyStep {
		return pyStep{"set_limits", map[string]any{
			"entity_id": "acme", "resource": "gpt-4o", "limits": []map[string]any{limit},
		}}
	}
	s.judgePython(t,
		pythonStep{pyStep{"create_entity", map[string]any{"entity_id": "acme"}}, ""},
		pythonStep{pyStep{"create_entity", map[string]any{"entity_id": "acme-bot", "parent_id": "acme", "cascade": true}}, ""},
		pythonStep{pyStep{"set_resource_defaults", map[string]any{"resource": "gpt-4o", "limits": plain}}, ""},
		pythonStep{set(pyLimit("rpm", 10, 10, 60)), ""},
		pythonStep{pyStep{"disable_resource", map[string]any{"resource": "o3"}}, ""},
		pythonStep{pyStep{"bypass_resource", map[string]any{"resource": "gpt-4o"}}, refused},
		pythonStep{pyStep{"bypass_entity", map[string]any{"entity_id": "acme"}}, refused},
		pythonStep{set(soft), refused},
		pythonStep{set(daily), refused},
		pythonStep{pyStep{"set_resource_cascade", map[string]any{"resource": "gpt-4o", "cascade": true}}, refused},
		pythonStep{pyStep{"set_entity_cascade", map[string]any{"entity_id": "acme-bot", "cascade": false}}, refused},
		pythonStep{pyStep{"set_parent", map[string]any{"entity_id": "acme-bot", "parent_id": nil}}, refused},
	)
	if e := s.meta(t, "acme-bot"); e.Parent != "acme" || !e.Cascade {
		t.Errorf("a refused change was made: %+v", e)
	}
	if v := s.item(t, schema.VersionKey()); client.TextOf(v, schema.AttrLambdaVersion) != "" {
		t.Errorf("lambda_version is %q, want null", client.TextOf(v, schema.AttrLambdaVersion))
	}
}
