package chart

import (
	"math"
	"slices"
)

// Distribution is a figure of how often values of a size occur: how long calls waited, estimates
// beside the truth. The series stand side by side.
type Distribution struct {
	Title string
	// Note is a sentence below the title. Default: none
	Note string
	// Unit is what the bounds are in, as "tokens", or [Milliseconds]. Default: none
	Unit string
	// Bounds are the ends of the bins, ascending: a bin has the values that are above the one before
	// and not above its own.
	Bounds []int64
	// Series count the values in each bin. One more value than there are bounds is for what is above
	// all of them.
	Series []Series
}

// NewDistribution sorts samples into bins, the same for all of them, whose ends are round numbers.
// The values of each series are the samples here; they are not kept.
func NewDistribution(title, unit string, samples ...Series) *Distribution {
	d := &Distribution{Title: title, Unit: unit, Bounds: roundBounds(unit, samples)}
	for _, s := range samples {
		counts := make([]int64, len(d.Bounds))
		for _, v := range s.Values {
			i, _ := slices.BinarySearch(d.Bounds, v)
			counts[min(i, len(counts)-1)]++
		}
		d.Series = append(d.Series, Series{s.Name, s.Tone, counts})
	}
	return d
}

// roundBounds are steps of 1, 2 and 5, or round durations, up to the first that is not below the
// largest sample, without those whose bins would be empty in front. Nobody needs to tell values
// below 0 apart.
func roundBounds(unit string, samples []Series) []int64 {
	least, most, zero := int64(math.MaxInt64), int64(0), false
	for _, s := range samples {
		for _, v := range s.Values {
			most, zero = max(most, v), zero || v <= 0
			if v > 0 {
				least = min(least, v)
			}
		}
	}
	var bounds []int64
	if zero || most == 0 {
		bounds = append(bounds, 0)
	}
	for b := int64(0); b < most; {
		if b = nextBound(b, unit); b >= least {
			bounds = append(bounds, b)
		}
	}
	return bounds
}

// nextBound is the round number after another one.
func nextBound(v int64, unit string) int64 {
	if unit == Milliseconds && v >= 5_000 {
		const second, minute, hour, day = 1000, 60_000, 3_600_000, 86_400_000
		for _, d := range []int64{
			10 * second, 30 * second, minute, 2 * minute, 5 * minute, 10 * minute, 30 * minute,
			hour, 2 * hour, 6 * hour, 12 * hour, day,
		} {
			if v < d {
				return d
			}
		}
		if v > math.MaxInt64/2 {
			return math.MaxInt64
		}
		return 2 * v
	}
	for step := int64(1); ; step *= 10 {
		for _, m := range []int64{1, 2, 5} {
			if step > math.MaxInt64/m {
				return math.MaxInt64
			}
			if m*step > v {
				return m * step
			}
		}
		if step > math.MaxInt64/10 {
			return math.MaxInt64
		}
	}
}

// bins is how many bins there are to draw.
func (d *Distribution) bins() int { return max(len(d.Bounds), most(d.Series)) }

// binLabel names a bin by its end.
func (d *Distribution) binLabel(i int) string {
	if i < len(d.Bounds) {
		return plain(d.Bounds[i], d.Unit)
	}
	return "more"
}

// binNames names all bins in words.
func (d *Distribution) binNames() []string {
	out := make([]string, d.bins())
	for i := range out {
		switch {
		case i < len(d.Bounds) && (i > 0 || d.Bounds[i] != 0):
			out[i] = "up to " + exact(d.Bounds[i], d.Unit)
		case i < len(d.Bounds):
			out[i] = exact(0, d.Unit)
		case len(d.Bounds) > 0:
			out[i] = "above " + exact(d.Bounds[len(d.Bounds)-1], d.Unit)
		default:
			out[i] = "all"
		}
	}
	return out
}
