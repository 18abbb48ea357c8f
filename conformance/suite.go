package conformance

import (
	"fmt"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/soak"
)

// Case is one directed check of a line of docs/semantics.md, and possibly of a mistake that weir
// must not have (see [Mistakes]).
type Case struct {
	// Name says what is checked. It contains the name of the mistake if there is one.
	Name string
	// Line is the number of the line, such as "3.5", or "6 table".
	Line string
	// Needs says what the world must be able to do.
	Needs Needs
	// Run plays the case. It opens its own worlds.
	Run func(t T, h Harness)
}

// Title returns the line and the name.
func (c *Case) Title() string { return c.Line + " " + c.Name }

// LeftOut returns the reason why a harness cannot play the case, or "" if it can.
func (c *Case) LeftOut(h *Harness) string { return c.Needs.missing(h) }

// Needs says what a case requires of a harness. The zero value requires nothing.
type Needs struct {
	// Kinds are the kinds of limit that the case uses.
	Kinds []weir.Kind
	// Shadow is set if it uses shadow limits.
	Shadow bool
	// Depth is the number of ancestors that a charge must reach.
	Depth int
	// Virtual is set if the case needs virtual time: it starts at a certain instant or advances by
	// more than a few seconds.
	Virtual bool
	// Skew is set if time steps back.
	Skew bool
	// Exact is set if answers are checked to the millisecond.
	Exact bool
	// Bubble is set if the world has to live in a bubble of testing/synctest.
	Bubble bool
	// Callers is set if it names callers or bounds live leases.
	Callers bool
	// Lists is set if it asks for everything that an entity or a resource has in use.
	Lists bool
}

// missing returns what a harness lacks, or "".
func (n *Needs) missing(h *Harness) string {
	for _, k := range n.Kinds {
		if !slices.Contains(h.Traits.Kinds, k) {
			return fmt.Sprintf("no %s limits", k)
		}
	}
	switch {
	case n.Shadow && h.Traits.NoShadow:
		return "no shadow limits"
	case n.Depth > h.Traits.CascadeDepth:
		return fmt.Sprintf("no cascade over %d levels", n.Depth)
	case (n.Virtual || n.Skew || n.Bubble) && h.RealTime:
		return "real time"
	case n.Callers && h.NoCallers:
		return "no callers"
	case n.Lists && h.NoLists:
		return "no lists of what is in use"
	case n.Bubble && h.NoBubble:
		return "no bubbles"
	case n.Skew && h.NoSkew:
		return "time cannot step back"
	case n.Exact && h.Inexact:
		return "answers are bounds"
	}
	return ""
}

// Cases returns every directed case for a service.
func Cases() []Case {
	return slices.Concat(
		scriptedCases("numbers"), gainCases(), callCases(), skewCases(),
		scriptedCases("bucket"), scriptedCases("occupancy"), scriptedCases("budget"), periodCases(),
		scriptedCases("kinds"),
		scriptedCases("reserve"), scriptedCases("plan"), scriptedCases("names"),
		scriptedCases("shadow"),
		scriptedCases("denial"), scriptedCases("brought"),
		scriptedCases("lease"), scriptedCases("horizon"), scriptedCases("void"), tableCases(),
		scriptedCases("content"),
		scriptedCases("adjust"), scriptedCases("totals"), scriptedCases("keys"),
		scriptedCases("growth"), scriptedCases("refund"), scriptedCases("slots"),
		scriptedCases("changed"), scriptedCases("removed"), entityCases(),
		doCases(), waitCases(), raceCases(), returnCases(), askedCases(),
	)
}

// TestService checks a service line by line against docs/semantics.md, then by random operations
// and by concurrent calls. It skips and counts what the harness says that it cannot do, and nothing
// else.
func TestService(t *testing.T, h Harness) {
	t.Helper()
	runCases(t, h, Cases())
	if h.RealTime {
		return
	}
	t.Run("random operations", func(t *testing.T) {
		t.Parallel()
		RandomOperations(t, h, suiteSeed, soak.Amount(2000, 4000))
	})
	concurrent := Needs{Kinds: only(weir.Bucket).Kinds, Exact: true}
	if reason := concurrent.missing(&h); reason != "" {
		t.Logf("concurrent histories are left out: %s", reason)
		return
	}
	t.Run("concurrent histories", func(t *testing.T) {
		t.Parallel()
		Linearizable(t, h, Load{
			Seed: suiteSeed, Histories: soak.Amount(1, 5), Goroutines: 8, Calls: 100,
		})
	})
}

// suiteSeed is the seed of the suite's random part. A store's own tests may run more operations,
// from other seeds.
const suiteSeed = 20250618

// runCases runs each case as a subtest.
func runCases(t *testing.T, h Harness, cases []Case) {
	t.Helper()
	skipped := map[string]int{}
	for _, c := range cases {
		if reason := c.LeftOut(&h); reason != "" {
			skipped[reason]++
			continue
		}
		t.Run(c.Title(), func(t *testing.T) {
			if !c.Needs.Bubble {
				t.Parallel()
			}
			// A store that panics must not keep the other cases from running.
			defer func() {
				if p := recover(); p != nil {
					t.Errorf("panic: %v\n%s", p, debug.Stack())
				}
			}()
			c.Run(t, h)
		})
	}
	t.Logf("%d cases, left out for want of ability: %v", len(cases), skipped)
}

// begin returns the start of cases that do not name one: a Wednesday at noon.
func begin() time.Time { return time.Date(2025, 6, 18, 12, 0, 0, 0, time.UTC) }
