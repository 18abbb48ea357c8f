//go:build cgo

package tigerbeetle

import (
	"math"
	"testing"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
)

// TestDefinitionsDigest checks that two servers agree about equal definitions and about no others.
func TestDefinitionsDigest(t *testing.T) {
	t.Parallel()
	definitions := func(change func(*weir.Definitions)) *weir.Definitions {
		d := &weir.Definitions{
			System: []weir.Limit{{Name: "rpm", Kind: weir.Window, Capacity: math.MaxInt64, Window: time.Minute}},
			Resources: map[string][]weir.Limit{
				"a": {{Name: "tpm", Capacity: 10}}, "b": {{Name: "tpm", Capacity: 20}},
			},
			Entities: map[string]weir.EntityDefinition{"e": {}},
		}
		change(d)
		normal, err := d.Normalize()
		if err != nil {
			t.Fatal(err)
		}
		return normal
	}
	seen := make(map[tb.Uint128]string)
	for name, change := range map[string]func(*weir.Definitions){
		"the same":       func(*weir.Definitions) {},
		"one less":       func(d *weir.Definitions) { d.System[0].Capacity-- },
		"shadow":         func(d *weir.Definitions) { d.System[0].Shadow = true },
		"no resource":    func(d *weir.Definitions) { delete(d.Resources, "a") },
		"an empty one":   func(d *weir.Definitions) { d.Resources["a"] = nil },
		"exchanged":      func(d *weir.Definitions) { d.Resources["a"], d.Resources["b"] = d.Resources["b"], d.Resources["a"] },
		"no entity":      func(d *weir.Definitions) { delete(d.Entities, "e") },
		"another policy": func(d *weir.Definitions) { d.OnUnavailable = weir.Allow },
		"another calendar": func(d *weir.Definitions) {
			d.System[0] = weir.Limit{Name: "m", Kind: weir.Budget, Capacity: 1, Every: "day"}
		},
	} {
		first, err := digestOf(definitions(change))
		if err != nil {
			t.Fatal(err)
		}
		again, err := digestOf(definitions(change))
		if err != nil || again != first {
			t.Errorf("%s: got %v and %v, %v", name, first, again, err)
		}
		if other, ok := seen[first]; ok {
			t.Errorf("%s has the digest of %s", name, other)
		}
		seen[first] = name
	}
	// A field with a zero value counts as absent, because only a later release may have it.
	if got := withoutZeros(map[string]any{"New": "", "Old": []any{map[string]any{"New": nil}}}); got == nil ||
		len(got.(map[string]any)) != 1 || len(got.(map[string]any)["Old"].([]any)[0].(map[string]any)) != 0 {
		t.Errorf("got %v", got)
	}
}
