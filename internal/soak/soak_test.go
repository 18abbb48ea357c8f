package soak_test

import (
	"math"
	"testing"

	"github.com/weir-limiter/weir/internal/soak"
)

func TestAmount(t *testing.T) {
	for _, tt := range []struct {
		asked string
		want  int
	}{{"", 3}, {"1", 100}} {
		t.Setenv("WEIR_SOAK", tt.asked)
		if got := soak.Amount(3, 100); got != tt.want || soak.On() != (tt.want == 100) {
			t.Errorf("WEIR_SOAK=%q: got %d, %v, want %d", tt.asked, got, soak.On(), tt.want)
		}
	}
}

func TestOnly(t *testing.T) {
	for asked, skipped := range map[string]bool{"": true, "1": false} {
		t.Setenv("WEIR_SOAK", asked)
		var inner *testing.T
		t.Run("inner", func(t *testing.T) {
			inner = t
			soak.Only(t)
		})
		if inner.Skipped() != skipped {
			t.Errorf("WEIR_SOAK=%q: got skipped %v, want %v", asked, inner.Skipped(), skipped)
		}
	}
}

func TestSeed(t *testing.T) {
	t.Setenv("WEIR_TEST_SEED", "18446744073709551615")
	if got := soak.Seed(t); got != math.MaxUint64 {
		t.Errorf("got %d, want the seed that was asked for", got)
	}
	t.Setenv("WEIR_TEST_SEED", "")
	if first := soak.Seed(t); soak.Seed(t) == first {
		t.Error("got one seed twice")
	}
}
