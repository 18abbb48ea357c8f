package cli

import (
	"archive/zip"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/weir-limiter/weir/internal/testkit"
)

// TestStackScripts runs the commands that call AWS on moto. Each script has an account of its own,
// two zip files of a function, and the URL of the table limits in MOTO_STORE.
func TestStackScripts(t *testing.T) {
	t.Parallel()
	endpoint := testkit.Moto(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script/moto",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "json": scriptJSON,
		},
		Setup: func(e *testscript.Env) error {
			hurry(e)
			for key, value := range map[string]string{
				"AWS_ENDPOINT_URL": endpoint, "AWS_REGION": "us-east-1",
				"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret",
				"MOTO_STORE": "dynamodb://limits?region=us-east-1&endpoint=" + endpoint,
			} {
				e.Setenv(key, value)
			}
			return errors.Join(functionZip(filepath.Join(e.WorkDir, "function.zip"), "one"),
				functionZip(filepath.Join(e.WorkDir, "other.zip"), "two"))
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

// functionZip writes a zip file of a function, which differs by its text.
func functionZip(name, text string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	z := zip.NewWriter(f)
	w, err := z.Create("bootstrap")
	if err == nil {
		_, err = w.Write([]byte("#!/bin/sh\n# " + text + "\n"))
	}
	return errors.Join(err, z.Close(), f.Close())
}
