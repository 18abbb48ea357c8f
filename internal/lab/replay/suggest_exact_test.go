package replay

import (
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/lab/trace"
)

// exactCase is a trace for one limit for which the right answer can be computed by hand.
type exactCase struct {
	name           string
	limit          weir.Limit
	share, latency string
	calls          []trace.Call
	want           int64
}

func exactCases() []exactCase {
	bucket := func(name string, capacity, refill int64) weir.Limit {
		return weir.Limit{Name: name, Capacity: capacity, RefillAmount: refill}
	}
	slots := weir.Limit{Name: "p", Kind: weir.Concurrency, Capacity: 30, Timeout: time.Minute}
	window := weir.Limit{Name: "itpm", Kind: weir.Window, Capacity: 999, Window: 10 * time.Second}
	budget := weir.Limit{Name: "itpm", Kind: weir.Budget, Capacity: 1, Every: "hour"}
	bursts := together(each(40, 0, 0, 1), each(40, 30_000, 0, 1))
	giant := together(each(99, 0, 0, 1), each(1, 1000, 0, 5000))
	const hour = int64(3_600_000)
	hours := together(each(5, hour-5, 1, 1), each(4, hour, 1, 3))
	return []exactCase{
		// All calls come at once, so the answer is all of them but those that may be denied.
		{"a burst, nothing denied", bucket("rpm", 5, 5), "0%", "0", each(70, 0, 0, 1), 70},
		{"a burst, a tenth denied", bucket("rpm", 5, 5), "10%", "0", each(70, 0, 0, 1), 63},
		{"a burst, rounded up", bucket("rpm", 900, 900), "0%", "0", each(187, 0, 0, 1), 190},
		{"a burst, half denied", bucket("rpm", 900, 900), "50%", "0", each(187, 0, 0, 1), 94},
		// 40, and half a minute later 40 more: c - 40 + c/2 ≥ 40 for c ≥ 53.3.
		{"two bursts", bucket("rpm", 60, 60), "0%", "0", bursts, 54},
		// A quarter of it as the refill: c - 40 + c/8 ≥ 40 for c ≥ 71.1, and 71 has a refill of
		// 18, not 17.75.
		{"two bursts, little refill", bucket("rpm", 400, 100), "0%", "0", bursts, 71},
		// One call is larger than all others together: the share allows it, or does not. A capacity of
		// 5,100, less the 99 and plus the 85 of a second, suffices for it; 5,000 would not.
		{"a giant that must fit", bucket("itpm", 100, 100), "0%", "0", giant, 5100},
		{"a giant that need not", bucket("itpm", 100, 100), "1%", "0", giant, 99},
		// Ten seconds each, one a second: ten at a time.
		{"slots", slots, "0%", "10s", each(50, 0, 1000, 1), 10},
		// Of 5 calls within 5 seconds that last 5 seconds, 4 slots deny each fifth.
		{"slots, a fifth denied", slots, "20%", "5s", each(50, 0, 1000, 1), 4},
		// 3 calls of 7 units lie within each 10 seconds.
		{"a window", window, "0%", "0", each(40, 0, 4000, 7), 21},
		// One at a time, and the largest of them decides.
		{"a window for each", window, "0%", "0", each(5, 0, 20_000, 70), 70},
		// 5 units in the first hour, 12 in the second.
		{"a budget", budget, "0%", "0", hours, 12},
		{"a budget, a ninth denied", budget, "12%", "0", hours, 9},
		{"no cost at all", bucket("itpm", 50, 50), "0%", "0", each(9, 0, 0, 0), 1},
	}
}

// TestSuggestExact checks answers that can be computed by hand, and that one step less would deny
// too many calls.
func TestSuggestExact(t *testing.T) {
	t.Parallel()
	for _, tt := range exactCases() {
		s := suggestOne(t, tt.limit, tt.share, tt.latency, tt.calls...)
		got := s.Limits[0]
		if got.SuggestedCapacity != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, got.SuggestedCapacity, tt.want)
		}
		if got.DeniedAlone != s.Denied || got.DeniedTogether != s.Denied || s.Denied > s.MayDeny {
			t.Errorf("%s: got %d denied alone, %d together and %d of all; %d may be", tt.name,
				got.DeniedAlone, got.DeniedTogether, s.Denied, s.MayDeny)
		}
		lasts, _ := ParseLatency(tt.latency) // suggestOne has parsed it before
		w := NewWorkload(traceOf(tt.calls...), &WorkloadOptions{Latency: lasts})
		if n := firstDenied(t, s.Definitions, w, nil); n != s.Denied {
			t.Errorf("%s: another replay denies %d, not %d", tt.name, n, s.Denied)
		}
		if tt.want == 1 {
			continue
		}
		less := tt.limit
		less.Capacity = roundNumber(roundUp(tt.want) - 1)
		if less.Kind == "" {
			whole := tt.limit.Capacity
			less.RefillAmount = (less.RefillAmount*less.Capacity + whole - 1) / whole
		}
		d := &weir.Definitions{System: []weir.Limit{less}}
		if n := firstDenied(t, d, w, nil); n <= s.MayDeny {
			t.Errorf("%s: %d is smaller, and denies %d of at most %d", tt.name, less.Capacity, n, s.MayDeny)
		}
	}
}
