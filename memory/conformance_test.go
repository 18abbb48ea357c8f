package memory_test

import (
	"path/filepath"
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/memory"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.TestStore(t, conformance.StoreHarness{
		Open: func(t conformance.T, s conformance.Setup) driver.Store {
			t.Helper()
			store, err := memory.Open(&memory.Options{Definitions: s.Definitions})
			if err != nil {
				t.Fatalf("open: %v", err)
			}
			return store
		},
	})
}

// A store that keeps leases must answer like one that does not.
func TestConformanceSnapshot(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	conformance.TestStore(t, conformance.StoreHarness{
		Open: func(t conformance.T, s conformance.Setup) driver.Store {
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

func TestConformanceUsage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, open := range map[string]func(s conformance.Setup) (driver.Store, error){
		"memory": func(s conformance.Setup) (driver.Store, error) {
			return memory.Open(&memory.Options{Definitions: s.Definitions})
		},
		"snapshot": func(s conformance.Setup) (driver.Store, error) {
			file := filepath.Join(dir, weir.NewLeaseID(s.Start).String())
			return memory.OpenSnapshot(file, &memory.SnapshotOptions{Definitions: s.Definitions})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conformance.TestUsage(t, conformance.UsageHarness{StoreHarness: conformance.StoreHarness{
				Open: func(t conformance.T, s conformance.Setup) driver.Store {
					t.Helper()
					store, err := open(s)
					if err != nil {
						t.Fatalf("open: %v", err)
					}
					return store
				},
			}})
		})
	}
}

// TestForgottenLeaseMakesRoom checks an ended lease that need not be remembered any more but is
// behind one that must be, because the time in that one's ID is ahead. Looking it up removes it, so
// that the next lease that ends forgets none early.
func TestForgottenLeaseMakesRoom(t *testing.T) {
	t.Parallel()
	h := conformance.StoreHarness{Open: func(t conformance.T, s conformance.Setup) driver.Store {
		t.Helper()
		store, err := memory.Open(&memory.Options{Definitions: s.Definitions})
		if err != nil {
			t.Fatalf("open: %v", err)
		}
		return store
	}}
	conformance.Replay(t, h.Service(t), `
start 2026-11-20T17:06:41.576Z
option lifetime 20s
option memory 10s
option size 2
set base
entity a
limits a gpt n=10:bucket/1/1h0m0s
run
reserve 01M7WYV7AYZFQJ1SJXR2AWRXGC a/gpt n=1
advance 16.316s
reserve 01M7WYSWP1DVZ5ANAPNRZHNTMR a/gpt n=1
advance 12.63s
reserve 01M7WYW3KV0YT6HK2SMC3ZCSPR a/gpt n=1
advance 17.758s
complete 01M7WYSWP1DVZ5ANAPNRZHNTMR n=1
advance 11.3s
reserve 01M7WYTXZNG5S6APVW0MFHA07V a/gpt n=1
`)
}
