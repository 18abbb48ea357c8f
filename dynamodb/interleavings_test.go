package dynamodb

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weir-limiter/weir/internal/soak"
)

// TestInterleavings runs all orders in which the table can execute the requests of servers that make
// calls about one lease at the same time: every pair of calls, and in each order a crash of either
// server after each of its writes. A plain run has crashes for some of the pairs only, which the seed
// chooses. After each schedule it checks what scheduleRun.judge says.
func TestInterleavings(t *testing.T) {
	t.Parallel()
	cases := interleavedPairs(1, startUnknown, startLive)
	seed := soak.Seed(t)
	for i := range soak.Amount(6, len(cases)) {
		cases[(int(seed%uint64(len(cases)))+i*17)%len(cases)].crashes = true
	}
	exploreAll(t, newInterleavings(t), cases)
}

// interleavedPairs returns the cases of two calls. Servers differ in a live case, so that each order
// of the calls is a case then.
func interleavedPairs(charges int, starts ...string) []*interleavedCase {
	var cases []*interleavedCase
	calls := interleavedCalls(charges)
	for _, start := range starts {
		for i, a := range calls {
			for _, b := range calls {
				if start == startLive || slices.Index(calls, b) >= i {
					cases = append(cases, &interleavedCase{start: start, charges: charges, calls: []modelCall{a, b}})
				}
			}
		}
	}
	return cases
}

// exploreAll explores cases and prints the number of schedules of each.
func exploreAll(t *testing.T, w *interleavings, cases []*interleavedCase) {
	t.Helper()
	var mu sync.Mutex
	var rows []string
	total := 0
	t.Run("each", func(t *testing.T) {
		for _, c := range cases {
			t.Run(c.String(), func(t *testing.T) {
				t.Parallel()
				done, failure := w.explore(t, c, &exploration{})
				if failure != "" {
					t.Error(failure)
				}
				mu.Lock()
				defer mu.Unlock()
				total += done
				rows = append(rows, fmt.Sprintf("%5d schedules, crashes %-5t  %v", done, c.crashes, c))
			})
		}
	})
	slices.Sort(rows)
	t.Logf("%d schedules of %d cases:\n%s", total, len(rows), strings.Join(rows, "\n"))
}

// TestInterleaving runs one schedule: that of WEIR_TEST_SCHEDULE, as a failure of [TestInterleavings]
// has printed it, and prints its trace.
func TestInterleaving(t *testing.T) {
	t.Parallel()
	text := os.Getenv("WEIR_TEST_SCHEDULE")
	if text == "" {
		t.Skip("WEIR_TEST_SCHEDULE is not set")
	}
	name, choices, _ := strings.Cut(text, ": ")
	cases := slices.Concat(
		interleavedPairs(1, startUnknown, startLive, startShared),
		interleavedPairs(2, startUnknown, startLive, startShared),
	)
	i := slices.IndexFunc(cases, func(c *interleavedCase) bool { return c.String() == name })
	if i < 0 {
		t.Fatalf("there is no case %q", name)
	}
	cases[i].crashes = true
	w := newInterleavings(t)
	r, _ := w.run(t, newTableLine(t), cases[i], &exploration{follow: strings.Fields(choices)})
	t.Logf("\n%v", r)
	if len(r.wrong) > 0 {
		t.Fail()
	}
}
