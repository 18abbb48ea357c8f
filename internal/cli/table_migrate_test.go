package cli

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/weir-limiter/weir/internal/testkit"
)

// TestMigrateScripts runs the command on a table that an old release of the Python library has made.
func TestMigrateScripts(t *testing.T) {
	t.Parallel()
	local := testkit.DynamoDBApart(t)
	name := "weir-" + rand.Text()[:16]
	spec, err := json.Marshal(map[string]any{
		"endpoint": local.Endpoint(), "table": name, "entities": 2,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := testkit.OldZAE(t, "0.9.1").Command(ctx, "python", "../../dynamodb/testdata/old_table.py",
		string(spec))
	cmd.Env = append(slices.Concat(cmd.Env, local.Environment()), "HOME="+os.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		_, err := local.Client().DeleteTable(ctx, &ddb.DeleteTableInput{TableName: &name})
		if err != nil {
			t.Error(err)
		}
	})
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script/migrate",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "json": scriptJSON,
		},
		Setup: func(e *testscript.Env) error {
			hurry(e)
			for _, pair := range local.Environment() {
				key, value, _ := strings.Cut(pair, "=")
				e.Setenv(key, value)
			}
			e.Setenv("ENDPOINT", local.Endpoint())
			e.Setenv("STORE", "dynamodb://"+name+"?region=us-east-1&endpoint="+local.Endpoint())
			return nil
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}
