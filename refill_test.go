package weir_test

import (
	"math"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
)

func TestRefill(t *testing.T) {
	t.Parallel()
	l, err := (weir.Limit{Name: "n", Capacity: 10, RefillAmount: 6, RefillPeriod: time.Minute}).Normalize()
	if err != nil {
		t.Fatal(err)
	}
	const at = 1_700_000_000_000
	for _, tt := range []struct{ balance, after, want int64 }{
		{0, 10_000, 1_000},
		{-500, 10_000, 500},
		{9_900, 10_000, 10_000},
		{3_000, -10_000, 3_000},
		{12_000, 0, 10_000},
	} {
		if got := l.Refill(tt.balance, at, at+tt.after); got != tt.want {
			t.Errorf("%d after %d ms: got %d, want %d", tt.balance, tt.after, got, tt.want)
		}
	}
	wait := l.RefillWait(0, 1_000, at)
	if wait != 10*time.Second {
		t.Errorf("got a wait of %v, want 10s", wait)
	}
	if got := l.RefillWait(0, 10_001, at); got != math.MaxInt64 {
		t.Errorf("more than the capacity: got %v, want the longest", got)
	}
}
