package aggregator_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/aggregator"
	"github.com/weir-limiter/weir/internal/schema"
)

// use returns a usage item with units of rpm.
func use(w weir.UsageWindow, at time.Time, entity string, units int64) schema.Item {
	id := acme
	id.Entity = entity
	u := schema.NewUsage(id, w, at)
	u.Events, u.Counters["rpm"] = 1, units
	return u.Item()
}

// TestTotals checks that a day has its hours and a month its days, and nothing else.
func TestTotals(t *testing.T) {
	t.Parallel()
	day := weir.Daily.Start(start)
	items := []schema.Item{
		use(weir.Hourly, day, "a", 3), use(weir.Hourly, day.Add(23*time.Hour), "a", -1),
		use(weir.Hourly, day, "b", 5), use(weir.Hourly, day.Add(24*time.Hour), "a", 100),
		use(weir.Hourly, day.Add(-time.Hour), "a", 100), use(weir.Daily, day, "a", 50),
		use(weir.Daily, day.AddDate(0, 0, -30), "a", 1), use(weir.Daily, day.AddDate(0, 0, 1), "a", 9),
		use(weir.Monthly, day, "a", 100), acme.Key().Item(), {},
		use(weir.Hourly, day, "big", math.MaxInt64), use(weir.Hourly, day.Add(time.Hour), "big", 1),
	}
	broken := use(weir.Hourly, day, "broken", 5)
	broken[schema.AttrWindowStart] = schema.Number(5)
	items = append(items, broken, use(weir.Hourly, day.Add(time.Hour), "broken", 1))
	for _, c := range []struct {
		of   weir.UsageWindow
		want string
	}{{weir.Daily, "[a:2/2 b:5/1]"}, {weir.Monthly, "[a:51/2]"}} {
		totals, faults := aggregator.Totals(c.of, start, items)
		var got []string
		for _, u := range totals {
			got = append(got, fmt.Sprintf("%s:%d/%d", u.Entity, u.Counters["rpm"], u.Events))
			if u.Window != c.of || u.WindowKey != schema.WindowKey(c.of, start) {
				t.Errorf("got %+v", u)
			}
		}
		equal(t, string(c.of), fmt.Sprint(got), c.want)
		if len(faults) == 0 {
			t.Errorf("%s: got no fault", c.of)
		}
	}
}

// everything is the beginning of a gap without one.
const everything = -1

// TestLost checks which gaps a reader finds when it begins.
func TestLost(t *testing.T) {
	t.Parallel()
	now := start
	state := &schema.Aggregator{Label: label, Until: now.Add(-50 * time.Hour)}
	at := func(hours int, done bool) *schema.Checkpoint {
		return &schema.Checkpoint{
			Label: label, Shard: fmt.Sprint(hours), Done: done, Until: now.Add(time.Duration(hours) * time.Hour),
		}
	}
	for name, c := range map[string]struct {
		s        aggregator.Situation
		from, to int // in hours from now; 0 and 0 for no gap
	}{
		"a table as old as its stream": {
			aggregator.Situation{Began: now.Add(-5 * time.Hour), TableCreated: now.Add(-5 * time.Hour)}, 0, 0,
		},
		"a stream that was turned on later": {
			aggregator.Situation{Began: now.Add(-5 * time.Hour), TableCreated: now.Add(-90 * time.Hour)}, everything, -5,
		},
		"an old table": {
			aggregator.Situation{Began: now.Add(-80 * time.Hour), TableCreated: now.Add(-80 * time.Hour)}, everything, -24,
		},
		"a short pause": {
			aggregator.Situation{State: state, Checkpoints: []*schema.Checkpoint{at(-23, false), at(-2, false)}}, 0, 0,
		},
		"a long pause": {
			aggregator.Situation{State: state, Checkpoints: []*schema.Checkpoint{at(-30, false), at(-26, false)}}, -30, -24,
		},
		"shards read to their end do not count": {
			aggregator.Situation{State: state, Checkpoints: []*schema.Checkpoint{at(-40, true), at(-2, false)}}, 0, 0,
		},
		"all shards read to their end": {
			aggregator.Situation{State: state, Checkpoints: []*schema.Checkpoint{at(-40, true), at(-29, true)}}, -29, -24,
		},
		"no checkpoints any more": {aggregator.Situation{State: state}, -50, -24},
		"a session that counted nothing": {
			aggregator.Situation{State: &schema.Aggregator{Label: label, Since: now.Add(-20 * time.Hour)}}, 0, 0,
		},
		"another stream": {
			aggregator.Situation{
				State: &schema.Aggregator{Label: "2026-01-01T00:00:00.000", Until: now.Add(-5 * time.Hour)},
				Began: now.Add(-4 * time.Hour),
			}, -5, -4,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.s.Now, c.s.Label = now, label
			got := aggregator.Lost(&c.s)
			if (got != nil) != (c.from != 0) {
				t.Fatalf("got %+v", got)
			}
			if got != nil {
				if c.from != everything || !got.From.IsZero() {
					equal(t, "from", got.From.Sub(now), time.Duration(c.from)*time.Hour)
				}
				equal(t, "to", got.To.Sub(now), time.Duration(c.to)*time.Hour)
				if got.Reason == "" {
					t.Error("got no reason")
				}
			}
		})
	}
}
