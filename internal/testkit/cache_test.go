package testkit

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

func TestModuleRoot(t *testing.T) {
	t.Parallel()
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "internal", "testkit", "cache.go")); err != nil {
		t.Errorf("%s is not the module's root: %v", root, err)
	}
}

// A folder is made once, and all callers get it, including those that call while it is being made.
func TestOnce(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "thing")
	var built atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			err := once(t.Context(), dir, func(dir string) error {
				built.Add(1)
				return os.WriteFile(filepath.Join(dir, "part"), nil, 0o600)
			})
			if err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(filepath.Join(dir, "part")); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := built.Load(); got != 1 {
		t.Errorf("got %d builds, want 1", got)
	}
}

// A folder whose build failed or was cut off is made again, from an empty folder.
func TestOnceAfterFailure(t *testing.T) {
	t.Parallel()
	broken := errors.New("no network")
	dir := filepath.Join(t.TempDir(), "thing")
	err := once(t.Context(), dir, func(dir string) error {
		return errors.Join(broken, os.WriteFile(filepath.Join(dir, "half"), nil, 0o600))
	})
	if !errors.Is(err, broken) {
		t.Fatalf("got %v, want the build's own error", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want nothing left of a failed build", err)
	}
	if err := os.MkdirAll(dir, 0o750); err != nil { // as after a kill
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "half"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	builds := 0
	for range 2 {
		err := once(t.Context(), dir, func(dir string) error {
			builds++
			if _, err := os.Stat(filepath.Join(dir, "half")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("got %v, want an empty folder", err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if builds != 1 {
		t.Errorf("got %d builds, want 1 after the one that failed", builds)
	}
}
