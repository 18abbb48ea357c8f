package clients_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/weir-limiter/weir/internal/testkit"
)

// pythonFolder has the Python client.
const pythonFolder = "python"

// pythonPackages are what the Python client and its tests need. docs/dependencies.md has the
// reasons.
func pythonPackages() []string {
	return []string{"httpx==0.28.1", "pytest==9.2.0"}
}

// TestPython runs the Python client's tests against each store.
func TestPython(t *testing.T) {
	t.Parallel()
	python := testkit.Python(t, pythonPackages()...)
	eachStore(t, func(t *testing.T, env []string) {
		runPython(t, python, env, "-m", "pytest", "--durations=8")
	})
}

// runPython runs a program of a Python environment in the client's folder. It must end well.
func runPython(t *testing.T, python *testkit.Venv, env []string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := python.Command(ctx, "python", args...)
	source, err := filepath.Abs(filepath.Join(pythonFolder, "src"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Dir = pythonFolder
	cmd.Env = append(append(cmd.Env, "PYTHONPATH="+source, "PYTHONDONTWRITEBYTECODE=1"), env...)
	t.Log(testkit.Run(t, cmd))
}
