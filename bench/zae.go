package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// zaeVersion is the release of zae-limiter that weir is compared with.
const zaeVersion = "0.17.0"

// zaePython returns a Python that has zae-limiter. The first time it makes a virtual environment for
// it, in the cache folder of weir's tree.
func zaePython(ctx context.Context) (string, error) {
	dir := filepath.Join(".cache", "bench-zae-limiter-"+zaeVersion)
	if _, err := os.Stat("Makefile"); err != nil {
		return "", fmt.Errorf("bench: the working folder must be weir's, where .cache lies: %w", err)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	python, complete := filepath.Join(dir, "bin", "python"), filepath.Join(dir, "complete")
	if _, err := os.Stat(complete); err == nil {
		return python, nil
	}
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	for _, args := range [][]string{
		{"python3", "-m", "venv", dir},
		{python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input",
			"zae-limiter==" + zaeVersion},
	} {
		cmd := exec.CommandContext(ctx, args[0], args[1:]...) //nolint:gosec // From the list above.
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", errors.Join(fmt.Errorf("bench: %s: %w: %s", args[0], err, out), os.RemoveAll(dir))
		}
	}
	return python, os.WriteFile(complete, nil, 0o600)
}
