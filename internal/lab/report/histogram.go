package report

import (
	"math"
	"slices"

	"github.com/weir-limiter/weir/internal/chart"
	"github.com/weir-limiter/weir/internal/lab/replay"
)

// histogram counts numbers by size, in bins with round bounds. Its size does not depend on how many
// numbers there are.
type histogram struct {
	bounds []int64 // ascending; the last bin has the numbers above them
	counts []int64
}

func newHistogram(bounds []int64) *histogram {
	return &histogram{bounds, make([]int64, len(bounds)+1)}
}

func (s *histogram) add(n int64) {
	i, _ := slices.BinarySearch(s.bounds, n)
	s.counts[i]++
}

// tokenBounds returns 0, 1, 2, 5, 10, 20, 50 and so on.
func tokenBounds() []int64 {
	bounds := []int64{0}
	for step := int64(1); step < math.MaxInt64/10; step *= 10 {
		bounds = append(bounds, step, 2*step, 5*step)
	}
	return bounds
}

// waitBounds returns bounds in milliseconds.
func waitBounds() []int64 {
	const second, minute, hour, day = 1_000, 60_000, 3_600_000, 86_400_000
	return []int64{
		0, 10, 20, 50, 100, 200, 500, second, 2 * second, 5 * second, 10 * second, 20 * second,
		30 * second, minute, 2 * minute, 5 * minute, 10 * minute, 20 * minute, 30 * minute, hour,
		2 * hour, 6 * hour, 12 * hour, day, 2 * day, 7 * day, 31 * day,
	}
}

// namedHistogram is a series of a figure.
type namedHistogram struct {
	name string
	*histogram
}

// distribution draws histograms with the same bounds, without the empty bins at both ends. It
// returns nil if all bins are empty.
func distribution(title, unit string, of ...namedHistogram) *chart.Distribution {
	first, last := math.MaxInt, -1
	for _, s := range of {
		for i, n := range s.counts {
			if n > 0 {
				first, last = min(first, i), max(last, i)
			}
		}
	}
	if last < 0 {
		return nil
	}
	bounds := of[0].bounds
	d := &chart.Distribution{
		Title: title, Unit: unit, Bounds: bounds[min(first, len(bounds)):min(last+1, len(bounds))],
	}
	for _, s := range of {
		d.Series = append(d.Series, chart.Series{Name: s.name, Values: s.counts[first : last+1]})
	}
	return d
}

// replaySamples is a watcher that collects the sizes that a page draws of one run.
type replaySamples struct {
	// retryAfter has the retry-after of each denied attempt, and waits the wait of each admitted
	// call, both in milliseconds.
	retryAfter, waits *histogram
	// estimated and used are the output tokens of calls that have ended, as reserved and as used.
	estimated, used *histogram
}

func newReplaySamples() *replaySamples {
	return &replaySamples{
		retryAfter: newHistogram(waitBounds()), waits: newHistogram(waitBounds()),
		estimated: newHistogram(tokenBounds()), used: newHistogram(tokenBounds()),
	}
}

// Reserved counts the wait of an attempt.
func (s *replaySamples) Reserved(a *replay.Attempt, v *replay.Decision) error {
	switch {
	case v.Denied != nil:
		s.retryAfter.add(v.Denied.RetryAfter.Milliseconds())
	case v.Admitted():
		s.waits.add(a.AtMS - a.Call.AtMS)
	}
	return nil
}

// Completed counts the tokens of a call that has ended.
func (s *replaySamples) Completed(a *replay.Attempt) error {
	s.estimated.add(a.Estimate)
	s.used.add(a.Call.Output)
	return nil
}
