package broken_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance"
	"github.com/weir-limiter/weir/conformance/broken"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/internal/soak"
)

// minimalHarness returns a harness that can do no more than a store of buckets with every leeway.
func minimalHarness(h conformance.Harness) conformance.Harness {
	h.Traits = driver.Traits{Kinds: []weir.Kind{weir.Bucket}, CascadeDepth: 1, NoShadow: true}
	h.Leeway = conformance.Leeway{
		NoBubble: true, WholeSeconds: true, MayContend: true,
		NotAtomicAcrossEntities: true, NoCallers: true,
	}
	return h
}

// TestVariantsAreCaughtOnMinimalStore checks that mistakes about buckets are caught with every
// leeway too, by the cases that are left or by random operations. The other variants are about
// abilities that such a store does not have.
func TestVariantsAreCaughtOnMinimalStore(t *testing.T) {
	t.Parallel()
	all := conformance.Cases()
	var mu sync.Mutex
	byCases, byRandom := 0, 0
	var missed []string
	mistakes := map[string]bool{} // whether each mistake that can be made was caught
	t.Run("each", func(t *testing.T) {
		for _, v := range broken.Variants() {
			t.Run(v.Name, func(t *testing.T) {
				t.Parallel()
				h := minimalHarness(v.Harness)
				own, _ := matching(all, v.Breaks)
				own = slices.DeleteFunc(own, func(c conformance.Case) bool {
					return c.LeftOut(&h) != ""
				})
				cases := len(caught(t, own, h, 1)) > 0
				random := soak.On() && !cases && len(own) > 0 && conformance.FirstDifference(t, h, 1, 4000) != ""
				mu.Lock()
				defer mu.Unlock()
				switch {
				case cases:
					byCases++
				case random:
					byRandom++
				default:
					missed = append(missed, v.Breaks+" "+v.Name)
				}
				if len(own) > 0 {
					mistakes[v.Breaks] = mistakes[v.Breaks] || cases || random
				}
			})
		}
	})
	slices.Sort(missed)
	t.Logf("%d wrong variants: %d caught by cases, %d by random operations; not by either: %q",
		len(broken.Variants()), byCases, byRandom, missed)
	for _, m := range conformance.Mistakes() {
		if was, could := mistakes[m.Name]; could && !was {
			t.Errorf("%s is not caught", m.Name)
		}
	}
}

// TestRightModelPassesOnMinimalStore is like [TestRightModelPasses], for a minimal store.
func TestRightModelPassesOnMinimalStore(t *testing.T) {
	t.Parallel()
	conformance.TestService(t, minimalHarness(broken.Right()))
}
