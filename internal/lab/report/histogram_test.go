package report

import (
	"math"
	"slices"
	"testing"
)

func TestDistributionOfSizes(t *testing.T) {
	t.Parallel()
	a, b := newSizes([]int64{0, 10, 100}), newSizes([]int64{0, 10, 100})
	if d := distribution("none", "ms", namedHistogram{"a", a}, namedHistogram{"b", b}); d != nil {
		t.Errorf("got %+v of nothing, want nil", d)
	}
	for _, n := range []int64{1, 10, 11, 1000, math.MaxInt64} {
		a.add(n)
	}
	b.add(100)
	for _, tt := range []struct {
		of         []namedHistogram
		bounds     []int64
		first, end []int64
	}{
		{[]namedHistogram{{"a", a}}, []int64{10, 100}, []int64{2, 1, 2}, []int64{2, 1, 2}},
		{[]namedHistogram{{"b", b}}, []int64{100}, []int64{1}, []int64{1}},
		{[]namedHistogram{{"b", b}, {"a", a}}, []int64{10, 100}, []int64{0, 1, 0}, []int64{2, 1, 2}},
	} {
		d := distribution("some", "ms", tt.of...)
		last := d.Series[len(d.Series)-1]
		if !slices.Equal(d.Bounds, tt.bounds) || !slices.Equal(d.Series[0].Values, tt.first) ||
			!slices.Equal(last.Values, tt.end) {
			t.Errorf("got %v with %v, want %v with %v and %v", d.Bounds, d.Series, tt.bounds, tt.first, tt.end)
		}
	}
	for _, bounds := range [][]int64{tokenBounds(), waitBounds()} {
		if !slices.IsSorted(bounds) || len(slices.Compact(slices.Clone(bounds))) != len(bounds) {
			t.Errorf("%d do not ascend", bounds)
		}
	}
}
