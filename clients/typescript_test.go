package clients_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/weir-limiter/weir/internal/testkit"
)

// typeScriptFolder has the TypeScript client.
const typeScriptFolder = "typescript"

// TestTypeScript compiles the TypeScript client and runs its tests against each store.
func TestTypeScript(t *testing.T) {
	t.Parallel()
	dir := buildTypeScript(t)
	eachStore(t, func(t *testing.T, env []string) {
		runNode(t, dir, env, "--test", "test/leases.test.mjs", "test/cancel.test.mjs")
	})
}

// TestTypeScriptPage runs the programs of the TypeScript client's page against each store and a fake
// OpenAI server.
func TestTypeScriptPage(t *testing.T) {
	t.Parallel()
	dir := buildTypeScript(t)
	fake := fakeOpenAI(t)
	eachStore(t, func(t *testing.T, env []string) {
		runNode(t, dir, slices.Concat(env, fake), "--test", "test/readme.test.mjs")
	})
}

// TestTypeScriptTypes checks that the client's generated file is current.
func TestTypeScriptTypes(t *testing.T) {
	t.Parallel()
	document, err := filepath.Abs("../httpapi/httphandler/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	runNode(t, buildTypeScript(t), []string{"WEIR_OPENAPI=" + document}, "scripts/generate-types.mjs", "--check")
}

// buildTypeScript compiles the client in a folder of its own, with the packages beside it, and returns
// the folder.
func buildTypeScript(t *testing.T) string {
	t.Helper()
	modules := testkit.Node(t, "typescript@5.9.3", "openapi-typescript@7.13.0", "openai@6.30.1")
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(typeScriptFolder)); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	runNode(t, dir, nil, "node_modules/typescript/bin/tsc")
	return dir
}

// runNode runs a program of Node.js in a folder. It must end well.
func runNode(t *testing.T, dir string, env []string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	if said := testkit.Run(t, cmd); said != "" {
		t.Log(said)
	}
}
