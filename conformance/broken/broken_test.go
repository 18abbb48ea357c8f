package broken_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weir-limiter/weir/conformance"
	"github.com/weir-limiter/weir/conformance/broken"
)

// matching splits cases into those about the line or mistake of a variant, and the others.
func matching(cases []conformance.Case, breaks string) (own, others []conformance.Case) {
	for _, c := range cases {
		if c.Line == breaks || strings.Contains(c.Name, breaks) {
			own = append(own, c)
		} else {
			others = append(others, c)
		}
	}
	return own, others
}

// caught plays cases on a harness until enough have failed, and returns the titles of those.
func caught(t *testing.T, cases []conformance.Case, h conformance.Harness, enough int) []string {
	t.Helper()
	var by []string
	for _, c := range cases {
		if c.LeftOut(&h) != "" {
			continue
		}
		r := conformance.Record(t, func(t conformance.T) { c.Run(t, h) })
		if r.Failed {
			by = append(by, c.Title())
		}
		if len(by) == enough {
			break
		}
	}
	return by
}

func TestVariantsAreCaught(t *testing.T) {
	t.Parallel()
	cases := conformance.Cases()
	var mu sync.Mutex
	rows, catches := []string{}, map[string]int{}
	t.Run("each", func(t *testing.T) {
		for _, v := range broken.Variants() {
			t.Run(v.Name, func(t *testing.T) {
				t.Parallel()
				own, others := matching(cases, v.Breaks)
				if len(own) == 0 {
					t.Fatalf("no case is about %s", v.Breaks)
				}
				by := caught(t, own, v.Harness, len(own))
				if len(by) == 0 {
					t.Errorf("%s (%s): not caught by any of the %d cases about it; by %q", v.Name, v.Breaks,
						len(own), caught(t, others, v.Harness, 3))
					return
				}
				mu.Lock()
				defer mu.Unlock()
				rows = append(rows, fmt.Sprintf("%-46s %-55s %s (%d of %d)",
					v.Breaks, v.Name, by[0], len(by), len(own)))
				for _, c := range by {
					catches[c]++
				}
			})
		}
	})
	if len(rows) < len(broken.Variants()) {
		return // a run of some variants does not show which cases catch none
	}
	slices.Sort(rows)
	t.Logf("%d wrong variants caught:\n%s", len(rows), strings.Join(rows, "\n"))
	var idle []string
	for _, c := range cases {
		if catches[c.Title()] == 0 {
			idle = append(idle, c.Title())
		}
	}
	t.Logf("%d of %d cases have caught a variant of their own line; the others are %q",
		len(cases)-len(idle), len(cases), idle)
}

// TestRightModelPasses checks that the right model passes, because catching a variant means nothing
// otherwise.
func TestRightModelPasses(t *testing.T) {
	t.Parallel()
	conformance.TestService(t, broken.Right())
}

// TestRandomOperationsCatchWrongRefunds checks that most plain runs of random operations catch a
// variant that gives back the wrong units: they shrink leases that took some units after others had
// returned.
func TestRandomOperationsCatchWrongRefunds(t *testing.T) {
	t.Parallel()
	names := []string{"a shrink takes what was added first", "what has returned is not part of a shrink"}
	for _, v := range broken.Variants() {
		if !slices.Contains(names, v.Name) {
			continue
		}
		names = slices.DeleteFunc(names, func(n string) bool { return n == v.Name })
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			found := 0
			for seed := range uint64(10) {
				if conformance.FirstDifference(t, v.Harness, seed, 2000) != "" {
					found++
				}
			}
			if t.Logf("found from %d seeds of 10", found); found < 6 {
				t.Errorf("found from %d seeds of 10, want 6 or more", found)
			}
		})
	}
	if len(names) > 0 {
		t.Errorf("there are no variants %q", names)
	}
}
