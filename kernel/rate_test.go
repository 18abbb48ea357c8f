package kernel_test

import (
	"math"
	"testing"

	"github.com/weir-limiter/weir/kernel"
)

const (
	second = int64(1000)
	minute = 60 * second
	day    = 24 * 60 * minute
)

func TestGain(t *testing.T) {
	t.Parallel()
	perMinute := kernel.Rate{CapacityMilli: 1000, RefillMilli: 1000, PeriodMS: minute}
	tenADay := kernel.Rate{CapacityMilli: 10_000, RefillMilli: 10_000, PeriodMS: day}
	fastest := kernel.Rate{CapacityMilli: 1, RefillMilli: math.MaxInt64, PeriodMS: 1}
	slowest := kernel.Rate{CapacityMilli: 1, RefillMilli: 1, PeriodMS: math.MaxInt64}
	equal := kernel.Rate{CapacityMilli: 1, RefillMilli: math.MaxInt64, PeriodMS: math.MaxInt64}
	for _, c := range []struct {
		name     string
		rate     kernel.Rate
		from, to int64
		want     int64
	}{
		{"a whole period", perMinute, 0, minute, 1000},
		{"a period from anywhere", perMinute, 17, minute + 17, 1000},
		{"just before a milli-unit", perMinute, 0, 59, 0},
		{"a milli-unit", perMinute, 0, 60, 1},
		{"one millisecond over its edge", perMinute, 59, 60, 1},
		{"one millisecond after its edge", perMinute, 60, 61, 0},
		{"no time", perMinute, 5000, 5000, 0},
		{"the clock went back", perMinute, 5000, 4000, 0},
		{"ten a day in a day", tenADay, 3, day + 3, 10_000},
		{"before 1970", perMinute, -60, 0, 1},
		{"before 1970, rounded down", perMinute, -61, -60, 1},
		{"before 1970, up to it", perMinute, -59, 0, 1},
		{"before 1970, inside a step", perMinute, -59, -1, 0},
		{"over 1970", perMinute, -30, 30, 1},
		{"saturated", fastest, 0, 2, math.MaxInt64},
		{"largest that fits", fastest, 0, 1, math.MaxInt64},
		{"saturated beyond 64 bits", fastest, math.MinInt64, math.MaxInt64, math.MaxInt64},
		{"slowest, one edge", slowest, -1, 0, 1},
		{"slowest, all of time", slowest, math.MinInt64, math.MaxInt64, 3},
		{"wide products cancel", equal, math.MaxInt64 - 1000, math.MaxInt64, 1000},
		{"wide products cancel before 1970", equal, math.MinInt64, math.MinInt64 + 1000, 1000},
	} {
		if got := c.rate.Gain(c.from, c.to); got != c.want {
			t.Errorf("%s: Gain(%d, %d) = %d, want %d", c.name, c.from, c.to, got, c.want)
		}
	}
}

func TestRefill(t *testing.T) {
	t.Parallel()
	r := kernel.Rate{CapacityMilli: 5000, RefillMilli: 1000, PeriodMS: second}
	fastest := kernel.Rate{CapacityMilli: math.MaxInt64, RefillMilli: math.MaxInt64, PeriodMS: 1}
	for _, c := range []struct {
		name              string
		rate              kernel.Rate
		balance, from, to int64
		want              int64
	}{
		{"gains", r, 100, 0, 250, 350},
		{"pays a debt", r, -700, 0, 250, -450},
		{"stops at the capacity", r, 4900, 0, 250, 5000},
		{"reaches the capacity exactly", r, 4750, 0, 250, 5000},
		{"trims what is above", r, 9000, 0, 250, 5000},
		{"trims without time", r, 9000, 7, 7, 5000},
		{"the clock went back", r, 100, 250, 0, 100},
		{"trims when the clock went back", r, 9000, 250, 0, 5000},
		{"deepest debt", r, math.MinInt64, 0, 250, math.MinInt64 + 250},
		{"deepest debt paid by the fastest refill", fastest, math.MinInt64, 0, 3, math.MaxInt64},
		{"deepest debt, half paid", fastest, math.MinInt64, 0, 1, -1},
		{"deepest debt, just not paid", fastest, math.MinInt64, 0, 2, math.MaxInt64 - 1},
		{"all of time", r, math.MinInt64, math.MinInt64, math.MaxInt64, 5000},
	} {
		if got := c.rate.Refill(c.balance, c.from, c.to); got != c.want {
			t.Errorf("%s: Refill(%d, %d, %d) = %d, want %d",
				c.name, c.balance, c.from, c.to, got, c.want)
		}
	}
}

func TestWaitAndFullAt(t *testing.T) {
	t.Parallel()
	r := kernel.Rate{CapacityMilli: 5000, RefillMilli: 1000, PeriodMS: minute}
	slowest := kernel.Rate{CapacityMilli: 10, RefillMilli: 1, PeriodMS: math.MaxInt64}
	for _, c := range []struct {
		name               string
		rate               kernel.Rate
		balance, want, now int64
		wait, fullAt       int64
	}{
		{"enough", r, 1000, 1000, 0, 0, 4000 * 60},
		{"nothing asked in debt", r, -1, 0, 0, 60, 5001 * 60},
		{"first millisecond", r, 0, 1, 0, 60, 5000 * 60},
		{"the phase counts", r, 0, 1, 59, 1, 5000 * 60},
		{"just after an edge", r, 0, 1, 60, 60, 5001 * 60},
		{"all of it", r, 0, 5000, 0, 5 * minute, 5 * minute},
		{"above the capacity", r, 0, 5001, 0, math.MaxInt64, 5 * minute},
		{"above the capacity with a balance above it", r, 6000, 5500, 9, math.MaxInt64, 9},
		{"full", r, 5000, 5000, 9, 0, 9},
		{"before 1970", r, 0, 1, -1, 1, 4999 * 60},
		{"longer than time", slowest, 0, 2, 1, math.MaxInt64, math.MaxInt64},
		{"longest that fits", slowest, 0, 1, 0, math.MaxInt64, math.MaxInt64},
		{"one less", slowest, 9, 10, 1, math.MaxInt64 - 1, math.MaxInt64},
		{"full within time, later than any wait", slowest, 9, 10, -math.MaxInt64, math.MaxInt64, 0},
		{"deepest debt", slowest, math.MinInt64, 10, math.MaxInt64, math.MaxInt64, math.MaxInt64},
	} {
		if got := c.rate.Wait(c.balance, c.want, c.now); got != c.wait {
			t.Errorf("%s: Wait(%d, %d, %d) = %d, want %d",
				c.name, c.balance, c.want, c.now, got, c.wait)
		}
		if got := c.rate.FullAt(c.balance, c.now); got != c.fullAt {
			t.Errorf("%s: FullAt(%d, %d) = %d, want %d", c.name, c.balance, c.now, got, c.fullAt)
		}
	}
}

func TestMilli(t *testing.T) {
	t.Parallel()
	const most = math.MaxInt64 / 1000
	for _, c := range []struct {
		units, want int64
		ok          bool
	}{
		{0, 0, true},
		{7, 7000, true},
		{-7, -7000, true},
		{most, most * 1000, true},
		{-most, -most * 1000, true},
		{most + 1, 0, false},
		{-most - 1, 0, false},
		{math.MaxInt64, 0, false},
		{math.MinInt64, 0, false},
	} {
		if got, ok := kernel.Milli(c.units); got != c.want || ok != c.ok {
			t.Errorf("Milli(%d) = %d, %t, want %d, %t", c.units, got, ok, c.want, c.ok)
		}
	}
}

func TestUnitsRoundsDown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ milli, want int64 }{
		{0, 0},
		{999, 0},
		{1000, 1},
		{-1, -1},
		{-1000, -1},
		{-1001, -2},
		{math.MaxInt64, math.MaxInt64 / 1000},
		{math.MinInt64, math.MinInt64/1000 - 1},
	} {
		if got := kernel.Units(c.milli); got != c.want {
			t.Errorf("Units(%d) = %d, want %d", c.milli, got, c.want)
		}
	}
}
