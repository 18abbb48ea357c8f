package dynamodb

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
)

// nameRow is a row of the examples in docs/names.md that weir accepts as entity and resource.
type nameRow struct {
	name             string
	entity, resource string // whether the Python library makes items with the name: "yes" or "no"
}

func nameRows(t *testing.T) []nameRow {
	t.Helper()
	page, err := os.ReadFile("../docs/names.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows []nameRow
	row := regexp.MustCompile("(?m)^\\| `(.*)` \\| yes \\| yes \\| (?:yes|no) " +
		"\\| (yes|no) \\| (yes|no) \\|$")
	for _, m := range row.FindAllStringSubmatch(string(page), -1) {
		rows = append(rows, nameRow{strings.ReplaceAll(m[1], `\|`, "|"), m[2], m[3]})
	}
	if len(rows) < 10 {
		t.Fatalf("found %d examples in docs/names.md, want all of them", len(rows))
	}
	return rows
}

// TestPythonBesideNames checks what docs/names.md says of the Python library on a table with names
// that its own rules do not allow: it acquires on the items that exist and reads them, and makes no
// item with such a name.
func TestPythonBesideNames(t *testing.T) {
	t.Parallel()
	s := withPython(t)
	s.mustSet(t, weir.Subject{}, rate("rpm", 600))
	l, err := limiter.New(s, &limiter.Options{StoreTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	acquire := func(entity, resource string) pyStep {
		return pyStep{"acquire", map[string]any{
			"entity_id": entity, "resource": resource, "consume": map[string]int{"rpm": 1},
		}}
	}
	var questions []pythonStep
	for _, row := range nameRows(t) {
		s.mustEntity(t, row.name, "", false)
		s.mustSet(t, weir.Subject{Entity: row.name, Resource: row.name}, rate("rpm", 500))
		_, err := l.Reserve(t.Context(), &weir.Request{
			Entity: row.name, Resource: row.name, Costs: weir.Costs{"rpm": 2},
		})
		if err != nil {
			t.Fatal(err)
		}
		quoted, err := json.Marshal(row.name)
		if err != nil {
			t.Fatal(err)
		}
		entity := map[string]any{"entity_id": row.name}
		questions = append(questions,
			pythonStep{acquire(row.name, row.name), `"admitted"`},
			pythonStep{pyStep{"get_buckets", entity}, `[{"total_consumed_milli": 3000}]`},
			pythonStep{pyStep{"get_resource_buckets", map[string]any{
				"resource": row.name, "limit_name": "rpm",
			}}, `[{"entity_id": ` + string(quoted) + `, "total_consumed_milli": 3000}]`},
			pythonStep{pyStep{"get_entity", entity}, `{"id": ` + string(quoted) + `}`},
			pythonStep{pyStep{"get_limits", map[string]any{
				"entity_id": row.name, "resource": row.name,
			}}, `[["rpm", 500, 500, 60]]`})
		makes := map[string]string{"yes": `"admitted"`, "no": `{"error": "InvalidIdentifierError"}`}
		questions = append(questions, pythonStep{acquire(row.name, "new"), makes[row.entity]})
		makes["no"] = `{"error": "InvalidNameError"}`
		questions = append(questions, pythonStep{acquire("new", row.name), makes[row.resource]})
	}
	s.judgePython(t, questions...)
}
