package kernel_test

import (
	"math"
	"testing"
)

func TestBucketRefillsToTheMillisecond(t *testing.T) {
	t.Parallel()
	w := newWorld(t, bucket(10, 10, minute)) // a unit in six seconds
	w.at(0).take(10)
	w.at(0).refuse(1, 6_000)
	w.at(5_999).refuse(1, 1)
	w.at(6_000).take(1)
	w.at(6_000).refuse(2, 12_000)
	w.at(6_000 + 60_000).left(10)
	w.at(6_000 + 60_000).take(10)
}

func TestBucketSlowRefillIsNotLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t, bucket(1, 1, day))
	w.at(0).take(1)
	for ms := int64(1); ms < 86_400_000; ms += 86_399 { // each denial refills the bucket
		w.at(ms).refuse(1, 86_400_000-ms)
	}
	w.at(86_399_999).refuse(1, 1)
	w.at(86_400_000).take(1)
}

func TestBucketDebt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, bucket(10, 10, minute))
	l := w.at(0).take(4)
	w.at(0).complete(l, 25) // a balance of 10-25
	w.at(0).left(-15)
	w.at(0).refuse(0, 90_000)
	w.at(1).left(-15) // -14.998, rounded down
	w.at(89_999).refuse(0, 1)
	w.at(90_000).take(0)
}

func TestBucketRefundStopsAtCapacity(t *testing.T) {
	t.Parallel()
	w := newWorld(t, bucket(10, 10, minute))
	l := w.at(0).take(10)
	w.at(30_000).left(5)
	w.at(30_000).cancel(l)
	w.left(10)
	w.refuse(11, 0)
	part := w.take(6)
	w.adjust(part, 2)
	w.left(8)
	w.adjust(part, 5)
	w.left(5)
	w.complete(part, 5)
	w.left(5)
}

func TestBucketRefundThatDoesNotFit(t *testing.T) {
	t.Parallel()
	const most = math.MaxInt64 / 1000
	w := newWorld(t, bucket(most, most, minute))
	l := w.at(0).take(most)
	w.at(50_000).cancel(l) // five sixths have been refilled, so the refund is cut at the capacity
	w.left(most)
	w.at(50_000).take(most)
}

func TestBucketClockBehind(t *testing.T) {
	t.Parallel()
	w := newWorld(t, bucket(10, 10, minute))
	w.at(60_000).take(10)
	w.at(0).refuse(1, 66_000) // time does not advance until 60,000
	w.at(0).left(0)
	w.at(60_000).refuse(1, 6_000)
	w.at(66_000).take(1)
}

func TestBucketChanged(t *testing.T) {
	t.Parallel()
	t.Run("gains under the old definition until the next call", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, bucket(10, 10, minute))
		w.at(0).take(10)
		w.at(6_000).configure(bucket(100, 100, minute))
		w.at(12_000).left(2) // reading changes nothing
		w.at(12_000).take(2)
		w.at(12_600).take(1) // a hundred units a minute from here on
		w.at(12_600).refuse(1, 600)
	})
	t.Run("a lowered capacity trims, a raised one fills", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, bucket(100, 100, minute))
		w.at(0).take(10)
		w.configure(bucket(20, 20, minute))
		w.at(1).refuse(21, 0)
		w.at(1).take(1)
		w.left(19)
		w.configure(bucket(100, 100, minute))
		w.left(19)
	})
	t.Run("debt stays", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, bucket(10, 10, minute))
		w.complete(w.at(0).take(1), 30)
		w.configure(bucket(1000, 10, minute))
		w.left(-20)
	})
}

func TestBucketRetryAfterSaturates(t *testing.T) {
	t.Parallel()
	w := newWorld(t, bucket(10, 1, 36_500*day))
	w.at(0).take(10)
	for _, tc := range []struct {
		cost      int64
		saturated bool
	}{{2, false}, {3, true}, {10, true}} {
		if _, got, fits := w.judge(tc.cost); fits || (got == math.MaxInt64) != tc.saturated {
			t.Errorf("%d units: retry after %v, want saturated %v", tc.cost, got, tc.saturated)
		}
	}
}

func TestBucketForgottenAMinuteAfterItWasFull(t *testing.T) {
	t.Parallel()
	changed := bucket(100, 10, minute)
	for _, tc := range []struct {
		name string
		at   int64 // when available is read; the bucket was full at 30,000
		want int64
	}{
		{"still remembered", 89_999, 10},
		{"forgotten", 90_000, 100},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, bucket(10, 10, minute))
			w.at(0).take(5)
			w.configure(changed)
			w.at(tc.at).left(tc.want)
			w.at(tc.at).take(0)
			w.at(tc.at).left(tc.want)
		})
	}
	t.Run("an overrun counts all the same", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, bucket(10, 10, minute))
		l := w.at(0).take(5)
		w.at(600_000).complete(l, 30)
		w.left(-15)
	})
}
