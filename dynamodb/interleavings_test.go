package dynamodb

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/soak"
)

// TestInterleavings runs all orders in which the table can execute the requests of servers that
// make calls about one lease at the same time: every pair of calls, and in each order a crash of
// either server after each of its writes. A plain run has crashes for some of the pairs only,
// which the seed chooses. scheduleRun.judge has the checks.
func TestInterleavings(t *testing.T) {
	t.Parallel()
	cases := interleavedPairs(interleavedCase{charges: 1}, startUnknown, startLive)
	crash(t, cases, soak.Amount(6, len(cases)))
	exploreAll(t, newInterleavings(t), cases)
}

// TestInterleavingsMore is like [TestInterleavings] with servers that all know the lease, with
// servers whose cached configuration has expired, with a lease of two bucket items, and with
// three servers. The seed chooses some of the cases of three servers, because each has hundreds
// of schedules. A plain run takes a few of the others.
func TestInterleavingsMore(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(soak.Seed(t), 0))
	shuffled := func(cases []*interleavedCase) []*interleavedCase {
		random.Shuffle(len(cases), func(i, k int) { cases[i], cases[k] = cases[k], cases[i] })
		return cases
	}
	cases := morePairs()
	if soak.On() {
		cases = append(cases, shuffled(interleavedTriples())[:20]...)
	} else {
		cases = shuffled(cases)[:8]
		for _, c := range cases {
			c.crashes = false
		}
	}
	exploreAll(t, newInterleavings(t), cases)
}

// crash gives n of the cases crashes.
func crash(t *testing.T, cases []*interleavedCase, n int) {
	t.Helper()
	random := rand.New(rand.NewPCG(soak.Seed(t), 0))
	for _, i := range random.Perm(len(cases))[:n] {
		cases[i].crashes = true
	}
}

// morePairs returns the cases of two calls of [TestInterleavingsMore]. A lease of two bucket
// items has many more schedules, so only the calls with both charges and refunds are made on it.
func morePairs() []*interleavedCase {
	isMixed := func(c *interleavedCase) bool {
		return c.calls[0].verb == weir.VerbReserve || c.calls[0].seq == 3 || c.calls[0].units == unitPair{12, 9}
	}
	wide := interleavedPairs(interleavedCase{charges: 2}, startUnknown, startLive)
	wide = slices.DeleteFunc(wide, func(c *interleavedCase) bool {
		return !isMixed(c) || c.calls[1].verb != weir.VerbCancel && c.calls[1].units != unitPair{12, 9}
	})
	return slices.Concat(
		interleavedPairs(interleavedCase{charges: 1, crashes: true}, startShared),
		interleavedPairs(interleavedCase{charges: 1, crashes: true, expired: true}, startUnknown),
		interleavedPairs(interleavedCase{charges: 1, expired: true}, startLive),
		wide,
	)
}

// interleavedPairs returns the cases of two calls, otherwise like one. Servers differ in a live
// case, so that each order of the calls is a case then.
func interleavedPairs(like interleavedCase, starts ...string) []*interleavedCase {
	var cases []*interleavedCase
	calls := interleavedCalls(like.charges)
	for _, start := range starts {
		for i, a := range calls {
			for k, b := range calls {
				if start == startLive || k >= i {
					c := like
					c.start, c.calls = start, []modelCall{a, b}
					cases = append(cases, &c)
				}
			}
		}
	}
	return cases
}

// interleavedTriples returns the cases of three different calls that change what the lease stands
// for, or reserve it.
func interleavedTriples() []*interleavedCase {
	var cases []*interleavedCase
	calls := slices.DeleteFunc(interleavedCalls(1), func(c modelCall) bool { return c.verb == weir.VerbExtend })
	for i, a := range calls {
		for k, b := range calls[:i] {
			for _, d := range calls[:k] {
				cases = append(cases, &interleavedCase{start: startUnknown, charges: 1, calls: []modelCall{a, b, d}})
				cases = append(cases, &interleavedCase{start: startLive, charges: 1, calls: []modelCall{a, b, d}})
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
				began := time.Now()
				done, failure := w.explore(t, c, &exploration{})
				t.Logf("%d schedules in %v", done, time.Since(began).Round(time.Millisecond))
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

// TestInterleaving runs one schedule: that of WEIR_TEST_SCHEDULE, as a failure of
// [TestInterleavings] has printed it, and prints its trace.
func TestInterleaving(t *testing.T) {
	t.Parallel()
	text := os.Getenv("WEIR_TEST_SCHEDULE")
	if text == "" {
		t.Skip("WEIR_TEST_SCHEDULE is not set")
	}
	name, choices, _ := strings.Cut(text, ": ")
	cases := slices.Concat(interleavedPairs(interleavedCase{charges: 1}, startUnknown, startLive), morePairs(),
		interleavedTriples())
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
