package testkit

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Node returns the node_modules folder with the given packages, each with its version, such as
// "@copilotkit/aimock@1.43.0". It is made once for each list, in the module's cache folder. No
// script of a package is run. The test is skipped if Node.js, npm or the network is missing, see
// [Require].
func Node(t testing.TB, packages ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), fetchTimeout)
	defer cancel()
	modules, err := openNode(ctx, packages)
	if err != nil {
		Require(t, "node", err.Error())
	}
	return modules
}

func openNode(ctx context.Context, packages []string) (string, error) {
	npm, err := exec.LookPath("npm")
	if err != nil {
		return "", err
	}
	version, err := exec.CommandContext(ctx, "node", "--version").Output()
	if err != nil {
		return "", err
	}
	dir, err := makeCacheFolder("node")
	if err != nil {
		return "", err
	}
	dir = filepath.Join(dir, venvKey(strings.TrimSpace(string(version)), packages))
	return filepath.Join(dir, "node_modules"), once(ctx, dir, func(dir string) error {
		args := append([]string{
			"install", "--prefix", dir, "--ignore-scripts", "--no-audit", "--no-fund", "--no-save",
		}, packages...)
		_, err := output(exec.CommandContext(ctx, npm, args...)) //nolint:gosec // Tests say which.
		return err
	})
}
