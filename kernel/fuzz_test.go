package kernel_test

import (
	"math"
	"testing"
)

const (
	lowest  = int64(math.MinInt64)
	highest = int64(math.MaxInt64)
)

func FuzzGain(f *testing.F) {
	f.Add(int64(1000), int64(60_000), int64(59), int64(60))
	f.Add(int64(1), highest, lowest, highest)
	f.Add(highest, int64(1), int64(-1), int64(1))
	f.Fuzz(func(t *testing.T, refill, period, from, to int64) {
		checkGain(t, rateOf(1, refill, period), from, to)
	})
}

func FuzzRefill(f *testing.F) {
	f.Add(int64(5000), int64(1000), int64(60_000), int64(-7), int64(0), int64(60))
	f.Add(highest, highest, int64(1), lowest, int64(-1), int64(1))
	f.Fuzz(func(t *testing.T, capacity, refill, period, balance, from, to int64) {
		checkRefill(t, rateOf(capacity, refill, period), balance, from, to)
	})
}

func FuzzWait(f *testing.F) {
	f.Add(int64(5000), int64(1000), int64(60_000), int64(-7), int64(5000), int64(59))
	f.Add(int64(5000), int64(1000), int64(60_000), int64(0), int64(5001), int64(59))
	f.Add(int64(9), int64(1), highest, lowest, int64(9), lowest)
	f.Fuzz(func(t *testing.T, capacity, refill, period, balance, want, now int64) {
		checkWait(t, rateOf(capacity, refill, period), balance, want, now)
	})
}

func FuzzFullAt(f *testing.F) {
	f.Add(int64(5000), int64(1000), int64(60_000), int64(-7), int64(59))
	f.Add(int64(9), int64(1), highest, lowest, lowest)
	f.Fuzz(func(t *testing.T, capacity, refill, period, balance, now int64) {
		checkFullAt(t, rateOf(capacity, refill, period), balance, now)
	})
}

func FuzzRefund(f *testing.F) {
	f.Add(int64(5000), int64(-7), int64(60))
	f.Add(highest, lowest, highest)
	f.Fuzz(func(t *testing.T, capacity, balance, milli int64) {
		checkRefund(t, rateOf(capacity, 1, 1), balance, milli&math.MaxInt64)
	})
}

func FuzzMilliAndUnits(f *testing.F) {
	f.Add(int64(-1))
	f.Add(highest / 1000)
	f.Fuzz(func(t *testing.T, n int64) {
		checkMilli(t, n)
		checkUnits(t, n)
	})
}
