package dynamodb

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-limiter/weir/dynamodb/internal/oldtable"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/testkit"
)

// oldTable is a table that an old release of the Python library has made.
type oldTable struct {
	t       *testing.T
	local   *testkit.DynamoDBLocal
	release string
	name    string
	config  aws.Config // one for all stores, so that they share connections
}

// makeOldTable makes a table with an old release, and fills it.
func makeOldTable(t *testing.T, release string, entities int) *oldTable {
	t.Helper()
	return makeTableOf(t, release, map[string]any{"entities": entities})
}

// makeTableOf is like makeOldTable, with any arguments of the script.
func makeTableOf(t *testing.T, release string, with map[string]any) *oldTable {
	t.Helper()
	local := testkit.DynamoDBApart(t)
	w := &oldTable{
		t: t, local: local, release: release, name: "weir-" + rand.Text()[:16],
		config: testkit.LocalConfig(local.Endpoint()),
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		_, err := w.local.Client().DeleteTable(ctx, &ddb.DeleteTableInput{TableName: &w.name})
		if err != nil {
			t.Error(err)
		}
	})
	answer := w.python(with)
	w.name, _ = answer["table"].(string)
	return w
}

// python runs the script with the old release and returns what it printed.
func (w *oldTable) python(with map[string]any) map[string]any {
	w.t.Helper()
	return w.pythonOf(testkit.OldZAE(w.t, w.release), with)
}

// pythonOf runs the script with the release of an environment.
func (w *oldTable) pythonOf(v *testkit.Venv, with map[string]any) map[string]any {
	w.t.Helper()
	with["endpoint"], with["table"] = w.local.Endpoint(), strings.TrimPrefix(w.name, "ZAEL-")
	spec, err := json.Marshal(with)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*time.Minute)
	defer cancel()
	cmd := v.Command(ctx, "python", "testdata/old_table.py", string(spec))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	cmd.Env = append(slices.Concat(cmd.Env, w.local.Environment()), "HOME="+os.TempDir())
	out, err := cmd.Output()
	if err != nil {
		w.t.Fatalf("zae-limiter %s: %v\n%s", w.release, err, stderr.String())
	}
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	var answer map[string]any
	if err := json.Unmarshal(lines[len(lines)-1], &answer); err != nil {
		w.t.Fatalf("zae-limiter %s said %s: %v", w.release, out, err)
	}
	return answer
}

// items returns all items of the table.
func (w *oldTable) items() []schema.Item {
	w.t.Helper()
	var all []schema.Item
	pages := ddb.NewScanPaginator(w.local.Client(), &ddb.ScanInput{TableName: &w.name, ConsistentRead: new(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(w.t.Context())
		if err != nil {
			w.t.Fatal(err)
		}
		all = append(all, page.Items...)
	}
	return all
}

// table returns the table for weir's administration.
func (w *oldTable) table() *Table {
	return &Table{Name: w.name, Options: w.options()}
}

// options are those of a store on the table.
func (w *oldTable) options() *Options {
	return &Options{Config: &w.config}
}

// oldItems returns the items that are not of the present layout, except the lock.
func (w *oldTable) oldItems() []schema.Item {
	w.t.Helper()
	var old []schema.Item
	for _, item := range w.items() {
		key, err := schema.KeyOf(item)
		if err != nil {
			w.t.Fatal(err)
		}
		if k := oldtable.ParseKey(key).Kind; k != oldtable.Present && k != oldtable.Version {
			old = append(old, item)
		}
	}
	return old
}
