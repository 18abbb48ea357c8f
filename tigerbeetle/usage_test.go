//go:build cgo

package tigerbeetle

import (
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/soak"
)

// TestUsageTally compares the usage that is read with a tally of its own, after random calls on
// two servers, of which some answers are lost: those of calls and those of writes of usage.
func TestUsageTally(t *testing.T) {
	t.Parallel()
	for seed := range uint64(soak.Amount(4, 40)) {
		u := newUsageScene(t, seed)
		u.play(1500, false)
		for _, window := range []weir.UsageWindow{weir.Hourly, weir.Daily, weir.Monthly} {
			got := u.read(weir.UsageQuery{Window: window}, "r", "other").hours(window)
			if diff := got.differences(u.written.hours(window)); len(diff) > 0 {
				t.Errorf("seed %d, %s: %d differ: %q", seed, window, len(diff), diff[:min(len(diff), 8)])
			}
		}
		for _, what := range []string{
			"answer lost", "write lost", "complete done", "reserve again done", "reserve denied",
		} {
			if u.outcomes[what] == 0 {
				t.Errorf("seed %d: no %s", seed, what)
			}
		}
		t.Logf("seed %d: %d sums; %v", seed, len(u.written), u.outcomes)
	}
}
