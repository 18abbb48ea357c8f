package memory_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// TestSnapshotReadOnly checks that a read-only store does not disturb the store that has the file
// open, and leaves nothing behind.
func TestSnapshotReadOnly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "state")
	options := func(readOnly bool) *memory.SnapshotOptions {
		return &memory.SnapshotOptions{
			Definitions: &weir.Definitions{System: []weir.Limit{{Name: "rpm", Capacity: 10}}},
			Every:       time.Hour, ReadOnly: readOnly,
		}
	}
	if _, err := memory.OpenSnapshot(file, options(true)); !errors.Is(err, weir.Invalid) {
		t.Fatalf("without a file: got %v, want %q", err, weir.Invalid)
	}
	names(t, dir)

	lim := openLimiter(t, file, options(false))
	lease, err := lim.Reserve(t.Context(), &weir.Request{
		Entity: "acme", Resource: "llm", Costs: weir.Costs{"rpm": 4},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := lim.Close(); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	writer := openLimiter(t, file, options(false)) // holds the lock
	readers := []*limiter.Limiter{openLimiter(t, file, options(true)), openLimiter(t, file, options(true))}
	for _, reader := range readers {
		statuses, err := reader.Status(t.Context(), "acme", "llm")
		if err != nil || len(statuses) != 1 || statuses[0].Available > 7 {
			t.Errorf("status: got %v, %v, want 6 available", statuses, err)
		}
		_, err = reader.Reserve(t.Context(), &weir.Request{
			Entity: "acme", Resource: "llm", Costs: weir.Costs{"rpm": 1},
		})
		if !errors.Is(err, weir.Unsupported) {
			t.Errorf("reserve: got %v, want %q", err, weir.Unsupported)
		}
		if _, err := reader.Cancel(t.Context(), lease.ID); !errors.Is(err, weir.Unsupported) {
			t.Errorf("cancel: got %v, want %q", err, weir.Unsupported)
		}
		if err := reader.SetPolicy(t.Context(), weir.Allow); !errors.Is(err, weir.Unsupported) {
			t.Errorf("set policy: got %v, want %q", err, weir.Unsupported)
		}
		if err := reader.Close(); err != nil {
			t.Errorf("close: got %v", err)
		}
	}
	if _, err := writer.Cancel(t.Context(), lease.ID); err != nil {
		t.Errorf("the writer was disturbed: %v", err)
	}
	if after, err := os.ReadFile(file); err != nil || string(after) != string(before) {
		t.Errorf("the file changed, %v", err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	names(t, dir, "state")
}

func openLimiter(t *testing.T, file string, o *memory.SnapshotOptions) *limiter.Limiter {
	t.Helper()
	store, err := memory.OpenSnapshot(file, o)
	if err != nil {
		t.Fatal(err)
	}
	lim, err := limiter.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	return lim
}

// names compares the names in a folder with those that should be there.
func names(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != len(want) {
		t.Errorf("got %v, want %v", entries, want)
	}
	for i := range min(len(entries), len(want)) {
		if entries[i].Name() != want[i] {
			t.Errorf("got %v, want %v", entries, want)
		}
	}
}
