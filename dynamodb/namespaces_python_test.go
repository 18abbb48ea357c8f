package dynamodb

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-limiter/weir/dynamodb/internal/tables"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/namespace"
)

// pythonVersion is the output of testdata/namespaces.py.
type pythonVersion struct {
	Default    string             `json:"default"`
	Version    map[string]*string `json:"version"`
	FromWeir   string             `json:"from_weir"`
	Opened     string             `json:"opened"`
	FromPython string             `json:"from_python"`
	Again      string             `json:"again"`
	Listed     []struct {
		Name string `json:"name"`
		ID   string `json:"namespace_id"`
	} `json:"listed"`
	Orphans   []pythonOrphan `json:"orphans"`
	Recovered string         `json:"recovered"`
	Deleted   string         `json:"deleted"`
	Own       string         `json:"own"`
}

type pythonOrphan struct {
	ID      string `json:"namespace_id"`
	Name    string `json:"namespace"`
	Deleted string `json:"deleted_at"`
}

// pythonTable returns a new table with a name that the Python library accepts.
func pythonTable(t *testing.T) *Table {
	t.Helper()
	table := localTable(t)
	table.Name = "weir-" + rand.Text()[:16]
	if _, err := table.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	return table
}

// TestNamespacesWithPython checks that weir and the library find, delete and recover the namespaces
// that the other registered, and open the table that the other created.
func TestNamespacesWithPython(t *testing.T) {
	t.Parallel()
	local := testkit.DynamoDB(t)
	python := testkit.ZAE(t)
	table := pythonTable(t)
	ids := map[string]string{}
	for _, name := range []string{"from-weir", "both", "weir-deleted", "python-deletes"} {
		ids[name] = register(t, table, name).ID
	}
	deleted, err := table.DeleteNamespace(t.Context(), "weir-deleted")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := table.DeleteNamespace(t.Context(), "both"); err != nil {
		t.Fatal(err)
	}
	if _, err := table.RecoverNamespace(t.Context(), ids["both"]); err != nil {
		t.Fatal(err)
	}
	own := &Table{Name: "weir-" + rand.Text()[:16], Options: table.Options}
	t.Cleanup(func() { dropTable(t, own) })
	cmd := python.Command(t.Context(), "python", "testdata/namespaces.py",
		table.Name, own.Name, local.Endpoint())
	cmd.Env = append(cmd.Env, local.Environment()...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var told pythonVersion
	if err := json.Unmarshal(out, &told); err != nil {
		t.Fatalf("%v: %s", err, out)
	}

	def, err := table.Namespace(t.Context(), "default")
	if err != nil || told.Default != def.ID {
		t.Errorf("default: got %s, %v; want %v", told.Default, err, def)
	}
	for _, got := range []string{told.FromWeir, told.Opened, told.Again} {
		if want := ids["from-weir"]; got != want {
			t.Errorf("from-weir: got %s, want %s", got, want)
		}
	}
	if told.Deleted != "gone" || told.Recovered != "both" || len(told.Listed) != 5 {
		t.Errorf("got %+v", told)
	}
	checkPythonVersion(t, told.Version)
	checkRegistry(t, table, ids, &told, deleted)
	checkAlike(t, connected(t, table), "from-weir", "from-python")

	s, err := Open(t.Context(), own.Name, table.Options)
	if err != nil || s.config.Namespace != told.Own {
		t.Fatalf("Python's table: got %v, %v; want namespace %s", s, err, told.Own)
	}
	info, err := own.Describe(t.Context())
	if err != nil || info.Refused != nil || info.Lean || info.LambdaVersion != "0.17.0" ||
		info.ClientMinVersion != "0.16.0" {
		t.Errorf("Python's table: got %+v, %v", info, err)
	}
}

func checkPythonVersion(t *testing.T, record map[string]*string) {
	t.Helper()
	for name, want := range map[string]string{
		"schema_version": "0.10.0", "client_min_version": "0.17.0", "updated_by": "weir",
	} {
		if got := record[name]; got == nil || *got != want {
			t.Errorf("%s: got %v, want %s", name, got, want)
		}
	}
	if got, there := record["lambda_version"]; got != nil || !there {
		t.Errorf("lambda_version: got %v (%t), want null", got, there)
	}
}

// checkRegistry reads the registry that Python left.
func checkRegistry(
	t *testing.T, table *Table, ids map[string]string, told *pythonVersion, deleted *namespace.Namespace,
) {
	t.Helper()
	if n, err := table.Namespace(t.Context(), "from-python"); err != nil || n.ID != told.FromPython {
		t.Errorf("from-python: got %v, %v; want %s", n, err, told.FromPython)
	}
	again, made, err := table.RegisterNamespace(t.Context(), "from-python")
	if err != nil || made || again.ID != told.FromPython {
		t.Errorf("from-python: registered again as %v, %t, %v", again, made, err)
	}
	orphans, err := table.OrphanNamespaces(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	gone := map[string]string{} // by name
	for _, n := range orphans {
		gone[n.Name] = n.ID + " " + n.Status
	}
	want := map[string]string{
		"weir-deleted":   ids["weir-deleted"] + " deleted",
		"python-deletes": ids["python-deletes"] + " deleted",
	}
	if !maps.Equal(gone, want) {
		t.Errorf("orphans: got %v, want %v", gone, want)
	}
	if !slices.ContainsFunc(told.Orphans, func(o pythonOrphan) bool {
		return o.ID == deleted.ID && o.Deleted == deleted.DeletedAt
	}) {
		t.Errorf("Python does not list %+v among %+v", deleted, told.Orphans)
	}
	back, err := table.RecoverNamespace(t.Context(), ids["python-deletes"])
	if err != nil || back.Status != "active" {
		t.Errorf("recover what Python deleted: got %v, %v", back, err)
	}
}

// checkAlike compares the attributes that weir and Python write for a namespace, and their types.
func checkAlike(t *testing.T, c *tables.Table, weirs, pythons string) {
	t.Helper()
	shape := func(name string, reverse bool) map[string]string {
		n, err := c.ByName(t.Context(), name)
		if err != nil || n == nil {
			t.Fatalf("%s: %v, %v", name, n, err)
		}
		key := schema.NamespaceKey(name)
		if reverse {
			key = schema.NamespaceIDKey(n.ID)
		}
		out, err := c.API.GetItem(t.Context(), &ddb.GetItemInput{TableName: &c.TableName, Key: key.Item()})
		if err != nil {
			t.Fatal(err)
		}
		types := map[string]string{}
		for attribute, value := range out.Item {
			types[attribute] = fmt.Sprintf("%T", value)
		}
		return types
	}
	for _, reverse := range []bool{false, true} {
		got, want := shape(weirs, reverse), shape(pythons, reverse)
		if !maps.Equal(got, want) || len(got) != 8 {
			t.Errorf("reverse %t: weir writes %v, Python %v", reverse, got, want)
		}
	}
}
