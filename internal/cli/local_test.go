//go:build unix

package cli

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/local"
	"github.com/weir-limiter/weir/internal/testkit"
)

// spoiled is the file that a repository of the tests may spoil: one of the last of the list.
const spoiled = "DynamoDBLocal-" + local.Version + ".jar"

// jars serves the files of DynamoDB Local in the layout of a Maven repository. The first part of the
// path says how: "good"; "cut", which sends half of one file; "wrong", which sends other contents
// for it; and "rest", which has only that file and those after it.
func jars(t *testing.T, dir string) *httptest.Server {
	t.Helper()
	place := map[string]int{}
	for i, f := range local.Files() {
		place[f.Path] = i
		if f.Name() == spoiled {
			place[spoiled] = i
		}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		how, file, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		i, ok := place[file]
		data, err := os.ReadFile(filepath.Join(dir, path.Base(file)))
		switch {
		case err != nil, !ok, how == "rest" && i < place[spoiled]:
			http.NotFound(w, r)
			return
		case how == "cut" && i == place[spoiled]:
			w.Header().Set("Content-Length", "9696243")
			_, _ = w.Write(data[:len(data)/2])
			panic(http.ErrAbortHandler)
		case how == "wrong" && i == place[spoiled]:
			data = bytes.ToUpper(data)
		}
		_, _ = w.Write(data)
	}))
	t.Cleanup(server.Close)
	return server
}

// TestLocalScripts runs weir local with a cache of its own for each script. REPOSITORY serves the
// files of DynamoDB Local, TAKEN is a port that is in use, and WEIR is the program.
func TestLocalScripts(t *testing.T) {
	t.Parallel()
	testkit.DynamoDB(t) // or skip
	repository := jars(t, testkit.DynamoDBFiles(t))
	address, err := url.Parse(repository.URL)
	if err != nil {
		t.Fatal(err)
	}
	weir, err := exec.LookPath("weir")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script/local",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "json": scriptJSON, "setjson": scriptSetJSON,
		},
		Setup: func(e *testscript.Env) error {
			hurry(e)
			cache := filepath.Join(e.WorkDir, "cache")
			e.Setenv("XDG_CACHE_HOME", cache)
			e.Setenv("REPOSITORY", repository.URL)
			e.Setenv("TAKEN", address.Port())
			e.Setenv("WEIR", weir)
			e.Defer(func() { endLocal(t, cache) })
			return nil
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

// endLocal ends the server of a cache, if a script has left one.
func endLocal(t *testing.T, cache string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	env := func(name string) string { return map[string]string{"XDG_CACHE_HOME": cache}[name] }
	var out bytes.Buffer
	s := console.Streams{In: strings.NewReader(""), Out: &out, Err: &out}
	if code := Run(ctx, []string{"local", "down"}, s, env); code != console.ExitDone {
		t.Errorf("weir local down: exit code %d: %s", code, &out)
	}
}
