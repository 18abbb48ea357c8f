package conformance_test

import (
	"runtime"
	"sync"
	"testing"

	"github.com/weir-limiter/weir/conformance"
	"github.com/weir-limiter/weir/conformance/model"
)

func TestLinearizableMemory(t *testing.T) {
	t.Parallel()
	conformance.Linearizable(t, memoryHarness(),
		conformance.Load{Seed: seedOf(t), Histories: 200, Goroutines: 8, Calls: 400})
}

func TestLinearizableModel(t *testing.T) {
	t.Parallel()
	conformance.Linearizable(t, conformance.ModelHarness(nil),
		conformance.Load{Seed: seedOf(t), Histories: 3, Goroutines: 8, Calls: 100})
}

// TestLinearizableFindsARace lets go of the lock between judging and taking: check, then act.
func TestLinearizableFindsARace(t *testing.T) {
	t.Parallel()
	rules := &model.Rules{}
	rules.Gap = func(lock sync.Locker) {
		lock.Unlock()
		runtime.Gosched()
		lock.Lock()
	}
	r := conformance.Record(t, func(t conformance.T) {
		conformance.Linearizable(t, conformance.ModelHarness(rules),
			conformance.Load{Seed: 1, Histories: 20, Goroutines: 8, Calls: 100})
	})
	if !r.Failed {
		t.Error("check, then act without a lock: was found linearizable")
	}
	t.Log(r.Messages)
}
