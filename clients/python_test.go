package clients_test

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"github.com/weir-limiter/weir/internal/soak"
	"github.com/weir-limiter/weir/internal/testkit"
)

// pythonFolder has the Python client.
const pythonFolder = "python"

// TestPython runs the Python client's tests against each store.
func TestPython(t *testing.T) {
	t.Parallel()
	python := testkit.Python(t, "httpx==0.28.1", "pytest==9.2.0")
	eachStore(t, func(t *testing.T, env []string) {
		runPython(t, python, env, "-m", "pytest", "-rsfE")
	})
}

// TestPythonPage runs the programs of the Python client's page against each store and a fake OpenAI
// server. LiteLLM is 200 MB, so only the long tests use it.
func TestPythonPage(t *testing.T) {
	t.Parallel()
	packages := []string{"httpx==0.28.1", "pytest==9.2.0", "openai==3.57.0"}
	if soak.On() {
		packages = append(packages, "litellm==1.110.2")
	}
	python := testkit.Python(t, packages...)
	fake := fakeOpenAI(t)
	eachStore(t, func(t *testing.T, env []string) {
		env = slices.Concat(env, fake)
		runPython(t, python, env, "-m", "pytest", "-rsfE", "tests/test_readme.py")
	})
}

// TestPythonTree checks the Python client's types and form, and that its generated file is current.
func TestPythonTree(t *testing.T) {
	t.Parallel()
	python := testkit.Python(t, "httpx==0.28.1", "pytest==9.2.0", "mypy==2.4.1", "ruff==0.17.6",
		"datamodel-code-generator==0.89.0")
	for _, check := range [][]string{
		{"-m", "mypy", "--cache-dir", t.TempDir()},
		{"-m", "ruff", "check", "--no-cache"},
		{"-m", "ruff", "format", "--check", "--no-cache"},
		{"scripts/generate_types.py", "--check"},
	} {
		runPython(t, python, nil, check...)
	}
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
