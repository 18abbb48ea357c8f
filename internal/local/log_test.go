package local

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestKeepLog writes five times what a log may have, and checks that the newest lines are kept.
func TestKeepLog(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), logFile)
	const lines = 5 * maxLogBytes / 16
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- KeepLog(r, name) }()
	out := bufio.NewWriterSize(w, 4096) // whole lines, 16 bytes each
	for i := range lines {
		_, _ = fmt.Fprintf(out, "line %10d\n", i)
	}
	if err := out.Flush(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{name, name + olderLog} {
		if info, err := os.Stat(file); err != nil || info.Size() > maxLogBytes {
			t.Errorf("%s: got %v, %v, want at most %d bytes", file, info, err, maxLogBytes)
		}
	}
	var got bytes.Buffer
	err := writeLog(t.Context(), name, &got, func(context.Context) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	kept := strings.Split(strings.TrimSuffix(got.String(), "\n"), "\n")
	if len(kept) <= maxLogBytes/16 {
		t.Errorf("got %d lines, want more than one full file", len(kept))
	}
	for i, line := range kept {
		if want := fmt.Sprintf("line %10d", lines-len(kept)+i); line != want {
			t.Fatalf("line %d of %d: got %q, want %q", i, len(kept), line, want)
		}
	}
}

// TestFollowLog checks that a follower reads what is added, across two changes of the file, until
// there is no more to come.
func TestFollowLog(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), logFile)
	k := &keptLog{name: name}
	var want strings.Builder
	add := func(i int) {
		line := fmt.Sprintf("%d %s\n", i, strings.Repeat("x", maxLogBytes/3))
		want.WriteString(line)
		if err := k.write([]byte(line)); err != nil {
			t.Error(err)
		}
	}
	add(0)
	step := 0
	var got bytes.Buffer
	err := writeLog(t.Context(), name, &got, func(context.Context) bool {
		step++ // the follower reads between two steps
		add(step)
		return step < 8
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := k.close(); err != nil {
		t.Fatal(err)
	}
	if got.String() != want.String() {
		t.Errorf("got %d bytes, want %d", got.Len(), want.Len())
	}
}

// TestNoLog checks the error before the first start.
func TestNoLog(t *testing.T) {
	t.Parallel()
	err := (&Server{Folder: t.TempDir()}).Logs(t.Context(), io.Discard, true)
	if err == nil || !strings.Contains(err.Error(), "has not been started") {
		t.Errorf("got %v", err)
	}
}
