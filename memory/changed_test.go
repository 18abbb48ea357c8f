package memory_test

import (
	"testing"
	"time"

	"github.com/weir-limiter/weir"
)

func TestConfigurationChangesAroundALease(t *testing.T) {
	t.Parallel()
	t.Run("removed and added again", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, window(10, time.Minute))
		l := w.at(0).take(8)
		w.configure(named("y", window(10, time.Minute)))
		w.at(10_000).adjust(l, 5)
		w.configure(window(10, time.Minute))
		w.left(5)
		w.at(60_000).left(10)
	})
	t.Run("a changed kind starts empty and finds its state when changed back", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, window(10, time.Minute))
		l := w.at(0).take(8)
		w.configure(concurrency(10, time.Hour))
		w.left(10)
		w.at(1_000).adjust(l, 6) // counts in the state of the reservation's kind
		w.left(10)
		w.configure(window(10, time.Minute))
		w.left(4)
	})
}

// TestDenialKeepsABucketForgotten checks that a forgotten bucket stays forgotten if
// another limit denies the request.
func TestDenialKeepsABucketForgotten(t *testing.T) {
	t.Parallel()
	changed := bucket(100, 10, time.Minute)
	full := weir.Limit{Name: "y", Kind: weir.Window, Capacity: 1, Window: time.Hour}
	w := newWorld(t, bucket(10, 10, time.Minute), full)
	w.at(0).reserve(charge(weir.Costs{"x": 5, "y": 1}))
	out, err := w.at(90_000).try(w.reservation(charge(weir.Costs{"x": 1, "y": 1})))
	if err != nil || !out.Denied {
		t.Fatalf("got %+v, %v; want a denial", out, err)
	}
	w.configure(changed, full)
	w.at(90_001).left(100)
}

func TestConcurrencyExtendAfterAdjust(t *testing.T) {
	t.Parallel()
	w := newWorld(t, concurrency(5, time.Minute))
	l := w.at(0).take(4)
	w.at(10_000).adjust(l, 1)
	w.left(4)
	w.at(30_000).extend(l)
	w.at(60_000).left(4)
	w.at(90_000).left(5)
}

func TestForgottenStateEqualsNone(t *testing.T) {
	t.Parallel()
	for _, limit := range []weir.Limit{window(5, time.Minute), concurrency(5, time.Minute)} {
		for _, tc := range []struct{ denied, at, until int64 }{
			{119_999, 119_000, 179_999}, // as at the denial
			{120_000, 119_000, 179_000},
		} {
			full := named("y", concurrency(1, time.Hour))
			w := newWorld(t, limit, full)
			w.at(0).reserve(charge(weir.Costs{"x": 1, "y": 1})) // x is empty at 60,000
			out, err := w.at(tc.denied).try(w.reservation(charge(weir.Costs{"x": 1, "y": 1})))
			if err != nil || !out.Denied || out.Limits[0].Available != 5 {
				t.Fatalf("got %+v, %v; want a denial", out, err)
			}
			l := w.at(tc.at).reserve(charge(weir.Costs{"x": 1, "y": 0}))
			got, want := l.holdings[0].Pieces[0].Until, start.UnixMilli()+tc.until
			if got != want {
				t.Errorf("%s, denied at %d: got a return at %d, want %d", limit.Kind, tc.denied, got, want)
			}
		}
	}
}
