package chart

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestTicks(t *testing.T) {
	t.Parallel()
	start := time.Date(2023, 11, 16, 18, 15, 46, 0, time.UTC)
	cet := time.FixedZone("CET", 3600)
	for _, c := range []struct {
		name string
		t    Times
		n    int
		most int
		want []tick
	}{
		{"an hour", Times{Start: start, Step: time.Minute}, 60, 4,
			[]tick{{2372, "18:30"}, {4872, "18:45"}, {7372, "19:00"}, {9872, "19:15"}}},
		{"one label", Times{Start: start, Step: time.Minute}, 60, 1, []tick{{7372, "19:00"}}},
		{"none is round", Times{Start: start, Step: time.Minute}, 40, 1, []tick{{0, "18:15"}}},
		{"over midnight", Times{Start: start, Step: time.Hour}, 12, 4,
			[]tick{{2281, "21:00"}, {4781, "Nov 17"}, {7281, "03:00"}, {9781, "06:00"}}},
		{"days in another zone", Times{Start: start.In(cet), Step: 24 * time.Hour}, 3, 4,
			[]tick{{658, "Nov 17"}, {3991, "Nov 18"}, {7325, "Nov 19"}}},
		{"seconds", Times{Start: start, Step: time.Second}, 10, 3,
			[]tick{{4000, "18:15:50"}, {9000, "18:15:55"}}},
		{"less than a second", Times{Start: start, Step: 10 * time.Millisecond}, 10, 3,
			[]tick{{0, "46.000"}, {5000, "46.050"}}},
		{"without dates", Times{Start: time.Time{}, Step: time.Minute}, 60, 4,
			[]tick{{0, "0"}, {2500, "15 min"}, {5000, "30 min"}, {7500, "45 min"}}},
		{"months", Times{Start: time.Date(2025, 10, 1, 0, 0, 0, 0, time.UTC), Months: 1}, 12, 4,
			[]tick{{0, "Oct 2025"}, {2500, "Jan 2026"}, {5000, "Apr"}, {7500, "Jul"}}},
		{"no interval", Times{Start: start, Step: time.Minute}, 0, 4, nil},
		{"no label", Times{Start: start, Step: time.Minute}, 60, 0, nil},
	} {
		got := c.t.normal(c.n).ticks(c.n, c.most)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

// TestTicksOfAnyLength looks for labels that are beside the axis, out of order, or far too few.
func TestTicksOfAnyLength(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 8))
	for range 5000 {
		times := Times{Step: time.Duration(random.Int64N(math.MaxInt64) >> random.IntN(62))}
		if random.IntN(2) == 0 {
			times.Start = time.Unix(random.Int64N(4e9), random.Int64N(1e9)).UTC()
		}
		n, most := 1+random.IntN(500), 1+random.IntN(12)
		times = times.normal(n)
		ticks := times.ticks(n, most)
		if len(ticks) > most {
			t.Fatalf("%v: %d labels, at most %d", times, len(ticks), most)
		}
		for i, tick := range ticks {
			if tick.at < 0 || tick.at > 10_000 || i > 0 && tick.at < ticks[i-1].at || tick.label == "" {
				t.Fatalf("%v: %v", times, ticks)
			}
		}
		whole := times.Step * time.Duration(n)
		if most >= 12 && whole > time.Minute && whole < 7*day && len(ticks) < 3 {
			t.Fatalf("%v over %v: only %v", times, whole, ticks)
		}
	}
}

func TestIntervalNames(t *testing.T) {
	t.Parallel()
	start := time.Date(2023, 11, 16, 18, 15, 0, 0, time.UTC)
	for _, c := range []struct {
		t    Times
		n    int
		want string // at the beginning of the second interval
	}{
		{Times{Start: start, Step: time.Minute}, 60, "18:16"},
		{Times{Start: start, Step: time.Hour}, 60, "Nov 16 19:15"},
		{Times{Start: start, Step: 90 * time.Second}, 60, "18:16:30"},
		{Times{Start: start.Add(time.Second), Step: time.Minute}, 60, "18:16:01"},
		{Times{Start: start, Step: 1500 * time.Millisecond}, 60, "18:15:01"},
		{Times{Start: start, Step: 250 * time.Millisecond}, 60, "18:15:00.250"},
		{Times{Start: time.Time{}, Step: 90 * time.Second}, 60, "1 min 30 s"},
		{Times{Start: start}, 60, "18:15:01"}, // the default step is a second
	} {
		if got := c.t.normal(c.n).label(1, c.n); got != c.want {
			t.Errorf("%v: got %q, want %q", c.t, got, c.want)
		}
	}
	for _, c := range []struct {
		t    Times
		n    int
		want string
	}{
		{Times{Start: start, Step: time.Minute}, 60, "2023-11-16 18:15:00 to 19:15:00 UTC"},
		{Times{Start: start, Step: time.Hour}, 24, "2023-11-16 18:15:00 to 2023-11-17 18:15:00 UTC"},
		{Times{Start: time.Time{}, Step: time.Minute}, 60, "1 h"},
	} {
		if got := c.t.normal(c.n).span(c.n); got != c.want {
			t.Errorf("%v: got %q, want %q", c.t, got, c.want)
		}
	}
}
