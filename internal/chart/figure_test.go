package chart

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestStack(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		values []uint64
		top    uint64
		least  int
		want   []int
	}{
		{"in proportion", []uint64{10, 20, 30}, 100, 1, []int{0, 10, 30, 60}},
		{"nothing", []uint64{0, 0}, 100, 5, []int{0, 0, 0}},
		{"no scale", []uint64{0}, 0, 5, []int{0, 0}},
		{"little is seen", []uint64{50, 0, 1}, 1000, 3, []int{0, 5, 5, 8}},
		{"what is below gives way at the top", []uint64{999, 1}, 1000, 5, []int{0, 95, 100}},
		{"more than fits", []uint64{500}, 100, 5, []int{0, 100}},
		{"no room for all", []uint64{1, 1, 1}, 3, 60, []int{0, 0, 40, 100}},
	} {
		if got := stack(c.values, c.top, 100, c.least); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

// TestStackKeepsProportions compares the edges with their exact positions. The difference may be at
// most the sum of rounding and of the least heights.
func TestStackKeepsProportions(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6))
	for range 20_000 {
		values := make([]uint64, 1+random.IntN(4))
		for i := range values {
			if random.IntN(3) > 0 {
				values[i] = random.Uint64N(1 << random.IntN(60))
			}
		}
		top, height, least := niceTop(sum(values)), 100+random.IntN(1000), random.IntN(9)
		edges := stack(values, top, height, least)
		if edges[0] != 0 || edges[len(values)] > height || !slices.IsSorted(edges) {
			t.Fatalf("%v of %d: %v does not lie within %d", values, top, edges, height)
		}
		for i, v := range values {
			exact := scale(sum(values[:i+1]), top, height)
			if off := edges[i+1] - exact; max(off, -off) > least*len(values) {
				t.Fatalf("%v of %d: edge %d of %v, exactly %d", values, top, i+1, edges, exact)
			}
			if part := edges[i+1] - edges[i]; v > 0 && part < least || v == 0 && part != 0 {
				t.Fatalf("%v: part %d of %v", values, i, edges)
			}
		}
	}
}

func TestStackRows(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		values []uint64
		want   []int
	}{
		{[]uint64{0, 0}, []int{0, 0, 0}},
		{[]uint64{50, 0}, []int{0, 32, 32}},
		{[]uint64{49, 1}, []int{0, 24, 32}}, // the small value gets one row of four
		{[]uint64{50, 2}, []int{0, 32, 40}},
		{[]uint64{0, 1}, []int{0, 0, 8}},
		{[]uint64{1, 1}, []int{0, 0, 8}}, // there is only one row, and the upper value gets it
		{[]uint64{50, 50}, []int{0, 32, 64}},
	} {
		if got := stackRows(c.values, 100, 8, 8); !slices.Equal(got, c.want) {
			t.Errorf("%v: got %v, want %v", c.values, got, c.want)
		}
	}
}

func TestMerge(t *testing.T) {
	t.Parallel()
	series := []Series{
		{Name: "a", Tone: Good, Values: []int64{1, 2, 3, 4, 5}}, {Name: "b", Values: []int64{7, -3, 2}},
	}
	for _, c := range []struct {
		each    int
		largest bool
		a, b    []int64
	}{
		{1, false, []int64{1, 2, 3, 4, 5}, []int64{7, -3, 2}},
		{2, false, []int64{3, 7, 5}, []int64{7, 2}},
		{2, true, []int64{2, 4, 5}, []int64{7, 2}},
		{9, false, []int64{15}, []int64{9}},
	} {
		got := merge(series, c.each, c.largest)
		if !slices.Equal(got[0].Values, c.a) || !slices.Equal(got[1].Values, c.b) {
			t.Errorf("%d, largest %v: %v", c.each, c.largest, got)
		}
		if got[0].Name != "a" || got[0].Tone != Good {
			t.Errorf("%d: the series are %v", c.each, got)
		}
	}
	for _, c := range []struct{ n, places, want int }{{0, 5, 1}, {5, 5, 1}, {6, 5, 2}, {100, 1, 100}} {
		if got := mergeCount(c.n, c.places); got != c.want {
			t.Errorf("%d in %d: got %d, want %d", c.n, c.places, got, c.want)
		}
	}
}

func TestBinNames(t *testing.T) {
	t.Parallel()
	d := &Distribution{
		Unit: Milliseconds, Bounds: []int64{0, 1000}, Series: []Series{{Values: []int64{1, 2, 3}}},
	}
	if got, want := d.binNames(), []string{"0 ms", "up to 1 s", "above 1 s"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	d.Bounds = nil
	d.Series[0].Values = d.Series[0].Values[:1]
	if got, want := d.binNames(), []string{"all"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
