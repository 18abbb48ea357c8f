//go:build cgo

package tigerbeetle

import (
	"errors"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
)

// TestStaleEstimateAdmits checks that a server whose estimate is stale, because another one has
// given units back, does not report an admitted limit as exceeded or with fewer than zero units
// available.
func TestStaleEstimateAdmits(t *testing.T) {
	t.Parallel()
	for _, limit := range []string{"b", "m", "s", "w"} {
		c := newCluster(t, 0)
		a, b := c.open(only(limit, 10), 0), c.open(only(limit, 10), 0)
		other, err := b.Reserve(t.Context(), unit(limit, 8))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.Reserve(t.Context(), unit(limit, 5)); !denied(err) {
			t.Fatalf("%s: %v", limit, err)
		}
		if _, err := b.Cancel(t.Context(), other.ID); err != nil {
			t.Fatal(err)
		}
		c.pass(1100 * time.Millisecond)
		for i, left := range []int64{0, 0} {
			l, err := a.Reserve(t.Context(), unit(limit, 5))
			if err != nil {
				t.Fatalf("%s: %v", limit, err)
			}
			s := l.Limits[0]
			if s.Exceeded || s.RetryAfter != 0 || s.Available < left {
				t.Errorf("%s: call %d: %+v", limit, i, s)
			}
		}
		_, err = a.Reserve(t.Context(), unit(limit, 1))
		e, ok := errors.AsType[*weir.DeniedError](err)
		if !ok || e.Limits[0].Available != 0 || e.RetryAfter == 0 {
			t.Errorf("%s: when it is full: %v", limit, err)
		}
	}
}

// TestStaleEstimateExpires checks that what others held when a server first looked does not count
// for ever.
func TestStaleEstimateExpires(t *testing.T) {
	t.Parallel()
	for _, limit := range []string{"s", "w"} {
		c := newCluster(t, 0)
		a, b := c.open(only(limit, 10), 0), c.open(only(limit, 10), 0)
		if _, err := b.Reserve(t.Context(), unit(limit, 7)); err != nil {
			t.Fatal(err)
		}
		for i, want := range []int64{2, 8} {
			l, err := a.Reserve(t.Context(), unit(limit, 1))
			if err != nil {
				t.Fatal(err)
			}
			if got := l.Limits[0].Available; got != want+int64(i) {
				t.Errorf("%s: call %d: %d available, want %d", limit, i, got, want+int64(i))
			}
			c.pass(61 * time.Minute)
		}
	}
}

// TestStaleEstimateDenies checks that a denial by one limit does not name another one as exceeded
// by units that other servers have given back, and does not remember that.
func TestStaleEstimateDenies(t *testing.T) {
	t.Parallel()
	for _, limit := range []string{"m", "s", "w"} {
		c := newCluster(t, 0)
		d := &weir.Definitions{System: append(only(limit, 10).System, bucketOf(20))}
		a, b := c.open(d, 0), c.open(d, 0)
		other, err := b.Reserve(t.Context(), unit(limit, 10))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.Reserve(t.Context(), unit(limit, 10)); !denied(err) {
			t.Fatalf("%s: %v", limit, err)
		}
		if _, err := b.Cancel(t.Context(), other.ID); err != nil {
			t.Fatal(err)
		}
		c.pass(1100 * time.Millisecond)
		if _, err := b.Reserve(t.Context(), unit("b", 20)); err != nil {
			t.Fatal(err)
		}
		both := unit("b", 10)
		both.Costs[limit] = 5
		_, err = a.Reserve(t.Context(), both)
		e, ok := errors.AsType[*weir.DeniedError](err)
		if !ok || e.RetryAfter != time.Second {
			t.Errorf("%s: got %v, want a denial by the bucket for a second", limit, err)
		}
		if _, err := a.Reserve(t.Context(), unit(limit, 5)); err != nil {
			t.Errorf("%s: what is free: %v", limit, err)
		}
	}
}
