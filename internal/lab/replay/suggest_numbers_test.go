package replay

import (
	"math"
	"testing"
)

func TestRoundNumbers(t *testing.T) {
	t.Parallel()
	last := int64(0)
	for i := 1; i <= lastRound; i++ {
		n := roundNumber(i)
		if n <= last || roundUp(n) != i || roundUp(last+1) != i {
			t.Fatalf("%d is %d, after %d: roundUp gives %d and %d", i, n, last,
				roundUp(n), roundUp(last+1))
		}
		last = n
	}
	for _, tt := range []struct{ n, want int64 }{
		{-5, 1}, {0, 1}, {1, 1}, {99, 99}, {100, 100}, {101, 110}, {187, 190},
		{991, 1000}, {1000, 1000},
		{1001, 1100}, {9_200_000_000_000_000_000, 9_200_000_000_000_000_000},
	} {
		if got := roundNumber(roundUp(tt.n)); got != tt.want {
			t.Errorf("%d: got %d, want %d", tt.n, got, tt.want)
		}
	}
	if got := roundUp(math.MaxInt64); got != lastRound+1 {
		t.Errorf("got %d for what no round number reaches, want %d", got, lastRound+1)
	}
}

func TestShare(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text, want string
		of8819     int64
	}{
		{"0%", "0%", 0}, {"1%", "1%", 88}, {"1.0%", "1%", 88}, {"0.25%", "0.25%", 22},
		{"0.011%", "0.011%", 0}, {"0.012%", "0.012%", 1}, {"99.999%", "99.999%", 8818},
		{"007%", "", 0},
		{"100%", "", 0}, {"-1%", "", 0}, {"+1%", "", 0}, {"1", "", 0}, {"abc", "", 0}, {"%", "", 0},
		{"", "", 0}, {"1.%", "", 0}, {".5%", "", 0}, {"1.2345%", "", 0}, {"1%%", "", 0},
		{"1e1%", "", 0},
		{"1 %", "", 0}, {"٣%", "", 0}, {"5%", "5%", 440},
	} {
		var s Fraction
		err := s.Set(tt.text)
		if ok := tt.want != ""; ok != (err == nil) {
			t.Errorf("%q: got the error %v", tt.text, err)
		} else if ok && (s.String() != tt.want || s.apply(8819) != tt.of8819) {
			t.Errorf("%q: got %v and %d calls, want %s and %d", tt.text,
				&s, s.apply(8819), tt.want, tt.of8819)
		}
	}
	for _, tt := range []struct {
		part, calls int64
		want        string
	}{
		{0, 9, "0"}, {1, 3, "33.334"}, {1, 10_000_000, "0.001"}, {9, 9, "100"}, {0, 0, "0"}, {1, 8, "12.5"},
	} {
		if got := shareOf(tt.part, tt.calls); got != tt.want {
			t.Errorf("%d of %d: got %s, want %s", tt.part, tt.calls, got, tt.want)
		}
	}
	for _, tt := range []struct {
		from, to int64
		want     string
	}{
		{100, 100, "0.0"}, {100, 150, "+50.0"}, {300, 100, "-66.6"}, {3, 4, "+33.3"},
		{10_000, 10_001, "0.0"},
		{1, math.MaxInt64, "+922337203685477580600.0"},
	} {
		if got := changeText(tt.from, tt.to); got != tt.want {
			t.Errorf("%d to %d: got %s, want %s", tt.from, tt.to, got, tt.want)
		}
	}
}
