package conformance_test

import (
	"strings"
	"testing"

	"github.com/weir-limiter/weir/conformance"
	"github.com/weir-limiter/weir/conformance/broken"
	"github.com/weir-limiter/weir/internal/soak"
)

func TestLinearizableMemory(t *testing.T) {
	t.Parallel()
	conformance.Linearizable(t, memoryHarness(),
		conformance.Load{Seed: seedOf(t), Histories: soak.Amount(10, 200), Goroutines: 8, Calls: 400})
}

// TestLinearizableFindsRaces checks that services that check and then act without a lock are not
// linearizable.
func TestLinearizableFindsRaces(t *testing.T) {
	t.Parallel()
	races := map[string]bool{
		"judging and taking are two steps":              false,
		"calls with one ID do not wait for one another": false,
	}
	for _, v := range broken.Variants() {
		if _, ok := races[v.Name]; !ok {
			continue
		}
		races[v.Name] = true
		r := conformance.Record(t, func(t conformance.T) {
			conformance.Linearizable(t, v.Harness,
				conformance.Load{Seed: 1, Histories: 50, Goroutines: 8, Calls: 100})
		})
		if !r.Failed {
			t.Errorf("%s: was found linearizable", v.Name)
		}
		t.Logf("%s: %s", v.Name, strings.Join(r.Messages, "; "))
	}
	for name, met := range races {
		if !met {
			t.Errorf("there is no variant in which %s", name)
		}
	}
}
