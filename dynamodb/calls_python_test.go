package dynamodb

import (
	"bytes"
	"net/http/httptest"
	"testing"

	"github.com/weir-limiter/weir/dynamodb/internal/admin"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/internal/testkit/calls"
)

// TestPythonCalls records what the Python library's clients call, by what they want, so that the
// policies of a stack are for them too.
func TestPythonCalls(t *testing.T) {
	t.Parallel()
	s := withPython(t)
	functions := schema.Item{schema.AttrLambdaVersion: schema.String(admin.MovesSince)}
	s.also(t, schema.VersionKey(), functions) // otherwise the library refuses to change a parent
	for _, part := range pythonParts() {
		proxy, err := calls.New(t, callsFile).Proxy(testkit.DynamoDB(t).Endpoint(), part.verb)
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(proxy)
		for i, answer := range s.pythonAt(t, server.URL, part.steps...) {
			if bytes.Contains(answer, []byte(`"error"`)) {
				t.Errorf("%s: %s", part.steps[i].method, answer)
			}
		}
		server.Close()
	}
}

// pythonPart are steps with one verb.
type pythonPart struct {
	verb  string
	steps []pyStep
}

func pythonParts() []pythonPart {
	entity := func(name string) map[string]any { return map[string]any{"entity_id": name} }
	on := func(name string) map[string]any {
		return map[string]any{"entity_id": name, "resource": "gpt-4o"}
	}
	with := func(base map[string]any, name string, value any) map[string]any {
		base[name] = value
		return base
	}
	rpm := []any{pyLimit("rpm", 5, 5, 60)}
	return []pythonPart{
		{calls.Administer, []pyStep{
			{"create_entity", entity("org")},
			{"create_entity", with(with(entity("acme"), "parent_id", "org"), "cascade", true)},
			{"create_entity", entity("plain")},
			{"set_system_defaults", map[string]any{"limits": rpm}},
			{"set_resource_defaults", map[string]any{"resource": "gpt-4o", "limits": rpm}},
			{"set_limits", with(on("acme"), "limits", rpm)},
			{"set_limits", with(on("acme"), "limits", rpm)},
		}},
		{calls.Use, []pyStep{
			{"acquire", with(on("acme"), "consume", map[string]any{"rpm": 1})},
			{"acquire", with(on("acme"), "consume", map[string]any{"rpm": 1})},
			{"acquire", with(on("plain"), "consume", map[string]any{"rpm": 1})},
		}},
		{calls.Read, []pyStep{
			{"get_entity", entity("acme")},
			{"get_children", map[string]any{"parent_id": "org"}},
			{"get_limits", on("acme")},
			{"get_buckets", entity("acme")},
			{"list_entities_with_custom_limits", map[string]any{"resource": "gpt-4o"}},
			{"get_resource_buckets", map[string]any{"resource": "gpt-4o", "limit_name": "rpm"}},
			{"get_audit_events", entity("acme")},
			{"get_usage_snapshots", entity("acme")},
			{"get_usage_summary", on("acme")},
			{"get_usage_summary", map[string]any{"resource": "gpt-4o"}},
			{"get_system_defaults", map[string]any{}},
			{"get_resource_defaults", map[string]any{"resource": "gpt-4o"}},
			{"list_resources_with_defaults", map[string]any{}},
			{"list_resources_with_entity_configs", map[string]any{}},
		}},
		{calls.Administer, []pyStep{
			{"set_parent", with(entity("acme"), "parent_id", nil)},
			{"set_parent", with(entity("acme"), "parent_id", "org")},
			{"reset_bucket", on("acme")},
			{"top_up", with(on("acme"), "amounts", map[string]any{"rpm": 1})},
			{"disable_resource", map[string]any{"resource": "gpt-4o"}},
			{"enable_resource", map[string]any{"resource": "gpt-4o"}},
			{"clear_resource_disabled", map[string]any{"resource": "gpt-4o"}},
			{"disable_entity", on("acme")},
			{"clear_entity_disabled", on("acme")},
			{"delete_limits", on("acme")},
			{"delete_resource_defaults", map[string]any{"resource": "gpt-4o"}},
			{"delete_system_defaults", map[string]any{}},
			{"delete_entity", entity("acme")},
		}},
	}
}
