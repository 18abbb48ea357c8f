//go:build unix

package console

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestNamedPipe checks that an interrupt ends the wait for a pipe without data, both in opening and
// in reading it, and that the data of a pipe is read.
func TestNamedPipe(t *testing.T) {
	t.Parallel()
	pipe := func(name string) string {
		name = filepath.Join(t.TempDir(), name)
		if err := syscall.Mkfifo(name, 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	unopened, silent, talking := pipe("unopened"), pipe("silent"), pipe("talking")
	hold, err := os.OpenFile(silent, os.O_RDWR, 0) // opens at once, and has both ends
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close() //nolint:errcheck // Nothing was written.

	a := &App{}
	for _, name := range []string{unopened, silent} {
		ctx, interrupt := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := a.Read(ctx, name, 100)
			ended <- err
		}()
		interrupt()
		select {
		case err := <-ended:
			if got := MistakeLines(err); len(got) != 1 || got[0] != "interrupted" {
				t.Errorf("%s: got %q, want an interruption", filepath.Base(name), got)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s: the interrupt changed nothing", filepath.Base(name))
		}
	}
	go func() { _ = os.WriteFile(talking, []byte("version: 1"), 0) }() // a failure shows in the read
	if got, err := a.Read(t.Context(), talking, 100); string(got) != "version: 1" || err != nil {
		t.Errorf("got %q and %v, want what was written", got, err)
	}
	go func() { _ = os.WriteFile(talking, make([]byte, 101), 0) }() // the same
	if _, err := a.Read(t.Context(), talking, 100); err == nil {
		t.Error("got no error, want that it is too large")
	}
}
