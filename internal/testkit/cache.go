package testkit

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/weir-limiter/weir/internal/local"
)

// moduleLine is the first line of this module's go.mod.
const moduleLine = "module github.com/weir-limiter/weir\n"

// makeCacheFolder returns a folder below .cache at the module's root, which git ignores.
func makeCacheFolder(name string) (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, ".cache", name)
	return dir, os.MkdirAll(dir, 0o750)
}

// moduleRoot returns the folder of this module: the nearest one, from the working folder upwards,
// whose go.mod names it. Modules inside it, such as the benchmarks, share its cache.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(text, []byte(moduleLine)) {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod of weir in the working folder or above")
		}
		dir = parent
	}
}

// once makes a folder by calling build, unless an earlier call, in this or another process, was
// successful. A call that arrives while another one builds waits for it. The file that marks a
// folder as complete is written last, so no later call uses the folder of a build that failed or
// was killed.
func once(ctx context.Context, dir string, build func(dir string) error) error {
	unlock, err := local.Lock(ctx, dir+".lock")
	if err != nil {
		return err
	}
	defer unlock()
	mark := filepath.Join(dir, "complete")
	if _, err := os.Stat(mark); err == nil {
		return nil
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	if err := build(dir); err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	return os.WriteFile(mark, nil, 0o600)
}
