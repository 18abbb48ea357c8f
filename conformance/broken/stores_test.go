package broken_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weir-limiter/weir/conformance"
	"github.com/weir-limiter/weir/conformance/broken"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/memory"
)

// right returns a harness of memory stores, in which nothing is wrong.
func right() conformance.StoreHarness {
	return conformance.StoreHarness{Open: func(t conformance.T, s conformance.Setup) driver.Store {
		t.Helper()
		b, err := memory.Open(&memory.Options{Definitions: s.Definitions})
		if err != nil {
			t.Fatalf("open: %v", err)
		}
		return b
	}}
}

// everyCase returns the cases for a service over a store, and those for the store alone.
func everyCase(h conformance.StoreHarness) []conformance.Case {
	return append(h.Cases(), conformance.Cases()...)
}

func TestStoreVariantsAreCaught(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var rows []string
	t.Run("each", func(t *testing.T) {
		for _, v := range broken.Stores() {
			t.Run(v.Name, func(t *testing.T) {
				t.Parallel()
				h := right()
				h.Wrap = v.Front
				if open := h.Open; v.Wrap != nil {
					h.Open = func(t conformance.T, s conformance.Setup) driver.Store {
						t.Helper()
						return v.Wrap(open(t, s))
					}
				}
				own, others := matching(everyCase(h), v.Breaks)
				by := caught(t, own, h.Service(t), len(own))
				if len(by) == 0 {
					t.Errorf("%s (%s): not caught by any of the %d cases about it; by %q", v.Name, v.Breaks,
						len(own), caught(t, others, h.Service(t), 3))
					return
				}
				mu.Lock()
				defer mu.Unlock()
				rows = append(rows, fmt.Sprintf("%-34s %-55s %s (%d of %d)",
					v.Breaks, v.Name, by[0], len(by), len(own)))
			})
		}
	})
	slices.Sort(rows)
	t.Logf("%d wrong stores caught:\n%s", len(rows), strings.Join(rows, "\n"))
}

// TestRightStorePasses is [TestRightModelPasses] for stores.
func TestRightStorePasses(t *testing.T) {
	t.Parallel()
	h := right()
	for _, c := range h.Cases() {
		if r := conformance.Record(t, func(t conformance.T) { c.Run(t, h.Service(t)) }); r.Failed {
			t.Errorf("%s: %q", c.Title(), r.Messages)
		}
	}
}

// TestUnplannedStorePasses checks that a store that reserves unplanned passes like one that
// does not.
func TestUnplannedStorePasses(t *testing.T) {
	t.Parallel()
	h := right()
	open := h.Open
	h.Open = func(t conformance.T, s conformance.Setup) driver.Store {
		t.Helper()
		return broken.Recording(open(t, s))
	}
	h.OpenSecond = func(_ conformance.T, b driver.Store) driver.Store { return broken.Elsewhere(b) }
	for _, c := range everyCase(h) {
		service := h.Service(t)
		if c.LeftOut(&service) != "" {
			continue
		}
		if r := conformance.Record(t, func(t conformance.T) { c.Run(t, service) }); r.Failed {
			t.Errorf("%s: %q", c.Title(), r.Messages)
		}
	}
}

// TestEveryMistakeHasAVariant checks that each mistake is made by a variant, which the suites
// catch.
func TestEveryMistakeHasAVariant(t *testing.T) {
	t.Parallel()
	breaks := map[string]int{}
	for _, v := range broken.Variants() {
		breaks[v.Breaks]++
	}
	for _, v := range broken.Stores() {
		breaks[v.Breaks]++
	}
	for _, m := range conformance.Mistakes() {
		if (breaks[m.Name] == 0) != (m.Elsewhere != "") {
			t.Errorf(
				"%s: %d variants make it, and it is guarded elsewhere: %q",
				m.Name,
				breaks[m.Name],
				m.Elsewhere,
			)
		}
	}
	for _, c := range everyCase(right()) {
		if breaks[c.Line] == 0 && !covers(breaks, c.Name) {
			t.Errorf("no variant breaks line %s, which %q is about", c.Line, c.Title())
		}
	}
}

// covers reports whether a variant makes the mistake that a case guards against.
func covers(breaks map[string]int, name string) bool {
	for b := range breaks {
		if strings.Contains(name, b) {
			return true
		}
	}
	return false
}
