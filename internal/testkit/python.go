package testkit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// fetchTimeout bounds each download, so that a slow network does not end a whole test run.
const fetchTimeout = 5 * time.Minute

// Venv is a Python virtual environment.
type Venv struct {
	// Dir is its folder.
	Dir string
}

// Python returns a virtual environment with the given packages, like [OpenPython]. The test is
// skipped if Python or the network is missing, see [Require].
func Python(t testing.TB, packages ...string) *Venv {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), fetchTimeout)
	defer cancel()
	v, err := OpenPython(ctx, packages...)
	if err != nil {
		Require(t, "python", err.Error())
	}
	return v
}

// OpenPython returns a virtual environment with the given packages, each with its version, such as
// "schemathesis==4.32.5". It is made once for each list and each version of Python, in the module's
// cache folder; processes that need the same one wait for one another.
func OpenPython(ctx context.Context, packages ...string) (*Venv, error) {
	python, version, err := findPython(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := makeCacheFolder("python")
	if err != nil {
		return nil, err
	}
	v := &Venv{filepath.Join(dir, venvKey(version, packages))}
	return v, once(ctx, v.Dir, func(dir string) error {
		makeVenv := exec.CommandContext(ctx, python, "-m", "venv", dir) //nolint:gosec // It was looked up.
		if _, err := output(makeVenv); err != nil {
			return err
		}
		args := []string{"-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"}
		_, err := output((&Venv{dir}).Command(ctx, "python", append(args, packages...)...))
		return err
	})
}

// Command returns a command for a program of the environment, such as "python" or "schemathesis".
// The context bounds it. Proxies are not used for loopback addresses.
func (v *Venv) Command(ctx context.Context, program string, args ...string) *exec.Cmd {
	folder, suffix := "bin", ""
	if runtime.GOOS == "windows" {
		folder, suffix = "Scripts", ".exe"
	}
	path := filepath.Join(v.Dir, folder, program+suffix)
	cmd := exec.CommandContext(ctx, path, args...) //nolint:gosec // Tests run what they name.
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(s string) bool {
		return strings.HasPrefix(s, "PYTHONPATH=") || strings.HasPrefix(s, "PYTHONHOME=")
	}), "PYTHONNOUSERSITE=1", "PYTHONUTF8=1", "NO_PROXY=127.0.0.1,::1,localhost",
		"no_proxy=127.0.0.1,::1,localhost")
	cmd.WaitDelay = stopGrace
	return cmd
}

// findPython returns a Python 3 and its version.
func findPython(ctx context.Context) (path, version string, err error) {
	for _, name := range []string{"python3", "python"} {
		path, err = exec.LookPath(name)
		if err != nil {
			continue
		}
		const ask = `import sys, venv, ensurepip; print(sys.version.split()[0], sys.prefix)`
		out, failed := exec.CommandContext(ctx, path, "-c", ask).Output()
		version, err = strings.TrimSpace(string(out)), failed
		if err == nil && strings.HasPrefix(version, "3.") {
			return path, version, nil
		}
	}
	if err == nil {
		err = fmt.Errorf("%s is version %q, want 3", path, version)
	}
	return "", "", fmt.Errorf("no Python 3 that can make an environment: %w", err)
}

// venvKey returns the name of an environment's folder, which depends on the list and on Python's
// version.
func venvKey(version string, packages []string) string {
	sum := sha256.Sum256([]byte(version + "\n" + strings.Join(slices.Sorted(slices.Values(packages)), "\n")))
	return hex.EncodeToString(sum[:8])
}
