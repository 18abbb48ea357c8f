package conformance_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance"
)

func TestGenerateFromSeed(t *testing.T) {
	t.Parallel()
	h := conformance.ModelHarness(nil)
	one, same := conformance.Generate(t, &h, 7, 500), conformance.Generate(t, &h, 7, 500)
	other := conformance.Generate(t, &h, 8, 500)
	if len(one.Ops) != 500 || one.String() != same.String() {
		t.Errorf("one seed made two scripts, of %d and %d operations", len(one.Ops), len(same.Ops))
	}
	if one.String() == other.String() {
		t.Error("two seeds made one script")
	}
}

// TestGenerateWithinAbilities generates for a store with buckets only, one ancestor and no clock
// skew.
func TestGenerateWithinAbilities(t *testing.T) {
	t.Parallel()
	h := conformance.ModelHarness(nil)
	h.NoSkew = true
	h.Traits.Kinds = []weir.Kind{weir.Bucket}
	h.Traits.CascadeDepth = 1
	for seed := range uint64(10) {
		s := conformance.Generate(t, &h, seed, 300)
		if s.Depth != 1 {
			t.Errorf("seed %d: got depth %d, want 1", seed, s.Depth)
		}
		for i := range s.Sets {
			for field, l := range s.Sets[i].Definitions.All {
				if l.Kind != weir.Bucket {
					t.Errorf("seed %d: %s is a %s", seed, field, l.Kind)
				}
			}
		}
		back := func(o conformance.Op) bool { return o.By < 0 }
		if i := slices.IndexFunc(s.Ops, back); i >= 0 {
			t.Errorf("seed %d: %v", seed, s.Ops[i])
		}
	}
	if rare := conformance.RandomOperations(t, h, 1, 10_000).Rare(&h, 1); len(rare) > 0 {
		t.Errorf("never met: %q", rare)
	}
}

// FuzzOperations plays operations on memory. Most inputs are too short for a whole script; the
// checks up to their end count.
func FuzzOperations(f *testing.F) {
	h := memoryHarness()
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 0))
		input := make([]byte, 8*2000)
		for i := range input {
			input[i] = byte(rng.Uint32())
		}
		f.Add(input)
	}
	f.Fuzz(conformance.Fuzzer(&h))
}
