package limiter

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weir-limiter/weir"
)

// A costLists that has read other costs reads the next ones as a new one does: the same lists, the
// same mistakes.
func TestCostListsAreReused(t *testing.T) {
	t.Parallel()
	names := []string{"rpm", "tpm", "a", "b", "usd_micros", "parallel", "wcu", "é", "", "-x", "in.out"}
	rng := rand.New(rand.NewPCG(7, 7))
	used := &costLists{}
	counts := map[string]int{}
	for range 20_000 {
		costs := weir.Costs{}
		for range rng.IntN(4) {
			costs[names[min(rng.IntN(40)%len(names), rng.IntN(len(names)))]] = int64(rng.IntN(50)) - 1
		}
		used.reset()
		fresh := &costLists{}
		got, want := used.add(costs, "costs"), fresh.add(costs, "costs")
		if (got == nil) != (want == nil) || got != nil && got.Error() != want.Error() {
			t.Fatalf("%v: got %v, want %v", costs, got, want)
		}
		if want != nil {
			counts["refused"]++
			if !errors.Is(want, weir.Invalid) {
				t.Fatalf("%v: got %v, want invalid", costs, want)
			}
			continue
		}
		counts["read"]++
		if !slices.Equal(used.lists[0], fresh.lists[0]) {
			t.Fatalf("%v: got %v, want %v", costs, used.lists[0], fresh.lists[0])
		}
		if !slices.IsSortedFunc(fresh.lists[0], func(a, b namedCost) int {
			if a.name < b.name {
				return -1
			}
			return 1
		}) || len(fresh.lists[0]) != len(costs) {
			t.Fatalf("%v: got %v, want all in order", costs, fresh.lists[0])
		}
	}
	if counts["read"] < 5000 || counts["refused"] < 5000 {
		t.Errorf("got %v, want both often", counts)
	}
	t.Log(counts)
}

// Equal contents have equal fingerprints, and different contents different ones, however similar
// they are.
func TestFingerprintsDiffer(t *testing.T) {
	t.Parallel()
	seen := map[uint64]string{}
	count := 0
	for _, entity := range []string{"a", "b", "ab", "abcdefg", "abcdefgh", "abcdefghi", "abcdefgh\x00"} {
		for _, resource := range []string{"a", "b", "bc", "gpt-4o", "gpt-4o-mini"} {
			for _, costs := range []weir.Costs{nil, {"rpm": 0}, {"rpm": 1}, {"rpm": -1}, {"tpm": 1}, {"rpm": 1, "tpm": 1},
				{"rpm": 256}, {"rpm": 1 << 40}, {"rp": 1, "mtpm": 1}} {
				print := fingerprintRequest([]weir.Charge{{Entity: entity, Resource: resource, Costs: costs}},
					[]costList{appendCosts(costs, nil)}, nil)
				what := entity + " " + resource
				if before, ok := seen[print]; ok {
					t.Errorf("%s %v has the fingerprint of %s", what, costs, before)
				}
				seen[print] = what
				count++
				again := fingerprintRequest([]weir.Charge{{Entity: entity, Resource: resource, Costs: costs}},
					[]costList{appendCosts(costs, costList{})}, nil)
				if again != print {
					t.Errorf("%s %v has two fingerprints", what, costs)
				}
			}
		}
	}
	t.Logf("%d contents", count)
}
