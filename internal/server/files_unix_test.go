//go:build unix

package server

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestPipes checks that a pipe instead of a file is refused without waiting for its writer, even if
// it replaces the file between the look and the opening.
func TestPipes(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	file := write(t, t.TempDir(), "file", "text")
	for what, read := range map[string]func(string) error{
		"looked at first": func(name string) error { _, _, err := readFile(name, 10); return err },
		"opened at once":  func(name string) error { _, _, err := readRegular(name, 10); return err },
	} {
		done := make(chan error, 1)
		go func() { done <- read(pipe) }()
		select {
		case err := <-done:
			if err == nil || err.Error() != "is not a regular file" {
				t.Errorf("%s: got %v, want that it is not a regular file", what, err)
			}
		case <-time.After(patience):
			t.Fatalf("%s: it waits for a writer", what)
		}
		if err := read(file); err != nil {
			t.Errorf("%s: a file: got %v", what, err)
		}
	}
}
