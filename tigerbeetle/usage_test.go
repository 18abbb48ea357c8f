//go:build cgo

package tigerbeetle

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/soak"
	"github.com/weir-limiter/weir/limiter"
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

// lastUse is an observer that keeps what the last event says was used.
type lastUse struct{ used []limiter.Use }

// Observe implements [limiter.Observer].
func (o *lastUse) Observe(_ context.Context, e limiter.Event) { o.used = slices.Clone(e.Used) }

// TestObservedUse checks that the event of a complete has the totals that were used, although the
// store returns no holdings of a lease that has ended.
func TestObservedUse(t *testing.T) {
	t.Parallel()
	c, seen := newCluster(t, 0), &lastUse{}
	l, err := limiter.New(c.open(fourLimits(100), 0).store, &limiter.Options{
		Now: c.clock.now, Observer: seen, StoreTimeout: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	r := unit("b", 10)
	r.Costs["s"] = 3
	lease, err := l.Reserve(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lease.Complete(t.Context(), weir.Costs{"b": 4}); err != nil {
		t.Fatal(err)
	}
	at := weir.Subject{Entity: "e", Resource: "r"}
	want := []limiter.Use{
		{Subject: at, Limit: "b", Kind: weir.Bucket, Change: -6, Total: 4},
		{Subject: at, Limit: "s", Kind: weir.Concurrency, Change: 0, Total: 3},
	}
	if !slices.Equal(seen.used, want) {
		t.Errorf("got %+v, want %+v", seen.used, want)
	}
}
