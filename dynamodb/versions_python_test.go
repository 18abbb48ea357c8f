package dynamodb

import (
	"reflect"
	"testing"

	"github.com/weir-limiter/weir/dynamodb/internal/admin"
	"github.com/weir-limiter/weir/internal/schema"
)

// TestPythonLeavesVersionRecord makes the Python library do what raises client_min_version on a
// table of its own: it opens the table, sets limits, and gives an entity a parent, which only its
// newest release understands. On weir's table the record stays as it is, so that no client needs the
// permission to write it. On a table for older clients too, the library raises it.
func TestPythonLeavesVersionRecord(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]bool{"new": false, "for older clients": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := withPython(t, func(table *Table) { table.PythonBefore = before })
			functions := schema.Item{schema.AttrLambdaVersion: schema.String(admin.MovesSince)}
			s.also(t, schema.VersionKey(), functions) // otherwise the library refuses these calls
			was := s.item(t, schema.VersionKey())
			want := "0.17.0"
			if before {
				want = schema.AnyClient
			}
			if got := was[schema.AttrClientMin]; !reflect.DeepEqual(got, schema.String(want)) {
				t.Errorf("a new table has client_min_version %v, want %s", got, want)
			}
			entity := func(name, parent string) map[string]any {
				return map[string]any{"entity_id": name, "parent_id": parent}
			}
			s.judgePython(t,
				pythonStep{pyStep{"create_entity", map[string]any{"entity_id": "top"}}, ""},
				pythonStep{pyStep{"create_entity", map[string]any{"entity_id": "acme"}}, ""},
				pythonStep{pyStep{"set_limits", map[string]any{
					"entity_id": "acme", "resource": "gpt-4o", "limits": []any{pyLimit("rpm", 5, 5, 60)},
				}}, ""},
				pythonStep{pyStep{"set_parent", entity("acme", "top")}, ""},
			)
			is := s.item(t, schema.VersionKey())
			if written := !reflect.DeepEqual(is, was); written != before {
				t.Errorf("the library wrote the record: %t, want %t: %v", written, before, is)
			}
			if got := is[schema.AttrClientMin]; !reflect.DeepEqual(got, schema.String("0.17.0")) {
				t.Errorf("client_min_version is %v afterwards", got)
			}
		})
	}
}
