package testkit

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// cacheFolder returns a folder below .cache at the module's root, which git ignores.
func cacheFolder(t testing.TB, name string) string {
	t.Helper()
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, ".cache", name)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	return dir
}

// moduleRoot returns the nearest folder, from the working folder upwards, that has a go.mod.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod in the working folder or above")
		}
		dir = parent
	}
}

// once makes a folder by calling build, unless a call before, in this or another process, was
// successful. Whoever comes while another builds waits. A build that failed or was cut off leaves
// nothing that a later call would take for whole: the mark comes last.
func once(dir string, build func(dir string) error) error {
	unlock, err := lock(dir + ".lock")
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
