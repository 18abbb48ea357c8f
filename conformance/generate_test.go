package conformance_test

import (
	"slices"
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance"
)

func TestGenerateFromSeed(t *testing.T) {
	t.Parallel()
	p := conformance.Profile{Traits: conformance.ModelHarness(nil).Traits}
	one, err := conformance.Generate(7, 500, p)
	if err != nil {
		t.Fatal(err)
	}
	same, err := conformance.Generate(7, 500, p)
	if err != nil {
		t.Fatal(err)
	}
	other, err := conformance.Generate(8, 500, p)
	if err != nil {
		t.Fatal(err)
	}
	if len(one.Ops) != 500 || one.String() != same.String() {
		t.Errorf("one seed made two scripts, of %d and %d operations", len(one.Ops), len(same.Ops))
	}
	if one.String() == other.String() {
		t.Error("two seeds made one script")
	}
}

// TestGenerateWithinAbilities is for a store that has buckets only, one ancestor and no skew.
func TestGenerateWithinAbilities(t *testing.T) {
	t.Parallel()
	h := conformance.ModelHarness(nil)
	h.NoSkew = true
	h.Traits.Kinds = []weir.Kind{weir.Bucket}
	h.Traits.CascadeDepth = 1
	p := conformance.Profile{Traits: h.Traits, NoSkew: true}
	for seed := range uint64(10) {
		s, err := conformance.Generate(seed, 300, p)
		if err != nil {
			t.Fatal(err)
		}
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
