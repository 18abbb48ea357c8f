package cli

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/store"
)

// TestTableScripts runs the commands on tables of DynamoDB Local. Each script has its own table,
// with the name in TABLE and the URL in STORE.
func TestTableScripts(t *testing.T) {
	t.Parallel()
	local := testkit.DynamoDB(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script/dynamodb",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "json": scriptJSON, "setjson": scriptSetJSON,
		},
		Setup: func(e *testscript.Env) error {
			hurry(e)
			name := "cli." + rand.Text()[:16]
			url := "dynamodb://" + name + "?region=us-east-1&endpoint=" + local.Endpoint()
			for _, pair := range local.Environment() {
				key, value, _ := strings.Cut(pair, "=")
				e.Setenv(key, value)
			}
			e.Setenv("TABLE", name)
			e.Setenv("STORE", url)
			e.Defer(func() {
				table, err := store.Table(url)
				if err != nil {
					t.Error(err)
					return
				}
				ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
				defer cancel()
				_ = table.Delete(ctx) // most scripts have deleted it already
			})
			return nil
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}
