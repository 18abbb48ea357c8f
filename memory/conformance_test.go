package memory_test

import (
	"path/filepath"
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance"
	"github.com/weir-limiter/weir/memory"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.TestBackend(t, conformance.BackendHarness{
		Open: func(t conformance.T, s conformance.Setup) weir.Backend {
			t.Helper()
			store, err := memory.Open(&memory.Options{Definitions: s.Definitions})
			if err != nil {
				t.Fatalf("open: %v", err)
			}
			return store
		},
	})
}

// A store that keeps leases itself must answer as one that does not.
func TestConformanceSnapshot(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	conformance.TestBackend(t, conformance.BackendHarness{
		Open: func(t conformance.T, s conformance.Setup) weir.Backend {
			t.Helper()
			file := filepath.Join(dir, weir.NewLeaseID(s.Start).String())
			store, err := memory.OpenSnapshot(file, &memory.SnapshotOptions{Definitions: s.Definitions})
			if err != nil {
				t.Fatalf("open: %v", err)
			}
			return store
		},
	})
}
