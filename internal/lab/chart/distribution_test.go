package chart

import (
	"slices"
	"testing"
)

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
