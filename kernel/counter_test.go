package kernel_test

import (
	"math"
	"testing"
	"time"

	"github.com/weir-limiter/weir/kernel"
)

func TestDuration(t *testing.T) {
	t.Parallel()
	const most = math.MaxInt64 / int64(time.Millisecond)
	for _, tc := range []struct {
		ms   int64
		want time.Duration
	}{
		{0, 0},
		{1, time.Millisecond},
		{most, time.Duration(most) * time.Millisecond},
		{most + 1, math.MaxInt64},
		{math.MaxInt64, math.MaxInt64},
	} {
		if got := kernel.Duration(tc.ms); got != tc.want {
			t.Errorf("%d ms: got %d, want %d", tc.ms, got, tc.want)
		}
	}
}

func TestUntil(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		now, at int64
		want    time.Duration
	}{
		{5, 7, 2 * time.Millisecond},
		{7, 7, 0},
		{7, 5, 0},
		{-3, 4, 7 * time.Millisecond},
		{math.MaxInt64, math.MinInt64, 0},
		{math.MinInt64, math.MaxInt64, math.MaxInt64},
		{0, math.MaxInt64, math.MaxInt64},
		{-1, math.MaxInt64, math.MaxInt64},
	} {
		if got := kernel.Until(tc.now, tc.at); got != tc.want {
			t.Errorf("from %d to %d: got %v, want %v", tc.now, tc.at, got, tc.want)
		}
	}
}
