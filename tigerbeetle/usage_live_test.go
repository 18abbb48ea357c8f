//go:build cgo

package tigerbeetle

import (
	"testing"
	"time"

	"github.com/weir-limiter/weir"
)

// total returns the tally without hours.
func (y tally) total() tally {
	out := tally{}
	for k, v := range y.hours(weir.Hourly) {
		k.hour = 0
		out.add(tally{k: v})
	}
	return out
}

// TestUsageLive is TestUsageTally on a real server, on which time passes by itself and slowly.
func TestUsageLive(t *testing.T) {
	t.Parallel()
	ledger := connected(t)
	u := newUsageScene(t, 1)
	u.ledger, u.name, u.now, u.pass = ledger, liveNamespace(), time.Now, func(time.Duration) {}
	u.play(1000, false)
	now := time.Now()
	for _, q := range []weir.UsageQuery{
		{}, {Window: weir.Monthly},
		{From: now.Add(-24 * time.Hour), To: now.Add(time.Hour)},       // a query for each hour
		{From: now.Add(-100 * 24 * time.Hour), To: now.Add(time.Hour)}, // in the order of writing
	} {
		got, want := u.read(q, "r", "other").total(), u.written.total()
		if diff := got.differences(want); len(diff) > 0 {
			t.Errorf("%+v: %d of %d differ: %q", q, len(diff), len(want), diff[:min(len(diff), 8)])
		}
	}
	t.Logf("%d sums; %v", len(u.written), u.outcomes)
}
