package chart

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestNewDistribution(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		unit    string
		samples []int64
		bounds  []int64
		counts  []int64
	}{
		{"none", "tokens", nil, []int64{0}, []int64{0}},
		{"zeros", "tokens", []int64{0, 0, -7}, []int64{0}, []int64{3}},
		{"tokens", "tokens", []int64{3, 5, 6, 20, 21}, []int64{5, 10, 20, 50}, []int64{2, 1, 1, 1}},
		{"zeros apart", "tokens", []int64{0, 15, 20}, []int64{0, 20}, []int64{1, 2}},
		{"durations", Milliseconds, []int64{800, 12_000, 61_000, 90_000},
			[]int64{1000, 2000, 5000, 10_000, 30_000, 60_000, 120_000}, []int64{1, 0, 0, 0, 1, 0, 2}},
	} {
		d := NewDistribution("title", c.unit, Series{Name: "a", Tone: Bad, Values: c.samples})
		if !slices.Equal(d.Bounds, c.bounds) || !slices.Equal(d.Series[0].Values, c.counts) {
			t.Errorf("%s: %v of %v, want %v of %v", c.name, d.Series[0].Values, d.Bounds, c.counts, c.bounds)
		}
		if s := d.Series[0]; s.Name != "a" || s.Tone != Bad {
			t.Errorf("%s: the series is %v", c.name, s)
		}
	}
}

// TestDistributionHasAll counts again: no sample is lost, and each lies in its bin.
func TestDistributionHasAll(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(9, 1))
	for i := range 500 {
		unit := []string{"tokens", Milliseconds}[i%2]
		var samples []int64
		for range random.IntN(50) {
			samples = append(samples, random.Int64()>>random.IntN(63))
		}
		if i%10 == 0 {
			samples = append(samples, math.MaxInt64, math.MinInt64)
		}
		d := NewDistribution("", unit, Series{Values: samples})
		if !slices.IsSorted(d.Bounds) || len(slices.Compact(slices.Clone(d.Bounds))) != len(d.Bounds) {
			t.Fatalf("bounds %v", d.Bounds)
		}
		below := int64(math.MinInt64)
		for k, bound := range d.Bounds {
			want := int64(0)
			for _, v := range samples {
				if (v > below || k == 0) && v <= bound {
					want++
				}
			}
			if got := d.Series[0].Values[k]; got != want {
				t.Fatalf("%v: up to %d: got %d, want %d", samples, bound, got, want)
			}
			below = bound
		}
		if len(samples) > 0 && slices.Max(samples) > below {
			t.Fatalf("%v has no bin in %v", slices.Max(samples), d.Bounds)
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
