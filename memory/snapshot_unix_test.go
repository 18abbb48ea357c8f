//go:build unix

package memory_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/memory"
)

// TestSnapshotPipe checks that a file that is not a regular one is refused, that a pipe is not
// waited for, and that its lock is released.
func TestSnapshotPipe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{pipe, dir} {
		done := make(chan error, 1)
		go func() {
			_, err := memory.OpenSnapshot(name, nil)
			done <- err
		}()
		select {
		case err := <-done:
			e, ok := errors.AsType[*weir.Error](err)
			if !ok || e.Code != weir.Invalid || e.Field != "snapshot" || e.Reason != "is not a regular file" {
				t.Errorf("%s: got %v, want that it is not a regular file", name, err)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s: it is still waited for", name)
		}
		if _, err := os.Stat(name + ".lock"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: its lock is still there, error %v", name, err)
		}
	}
	s, err := memory.OpenSnapshot(filepath.Join(dir, "file"), nil)
	if err != nil {
		t.Fatalf("a new file: got %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
