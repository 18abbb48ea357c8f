package estimator

import (
	"math"
	"testing"
)

func TestBinsAreGaplessAndNarrow(t *testing.T) {
	t.Parallel()
	low := int64(0)
	for b := range bins {
		high := upperOf(b)
		if binOf(low) != b || binOf(high) != b {
			t.Fatalf("bin %d has %d to %d, which lie in %d and %d",
				b, low, high, binOf(low), binOf(high))
		}
		if width := high - low; low < 32 && width != 0 || width > low/16 {
			t.Fatalf("bin %d from %d is %d wide", b, low, width)
		}
		if b == bins-1 {
			if high != math.MaxInt64 {
				t.Fatalf("the last bin ends at %d", high)
			}
			return
		}
		low = high + 1
	}
}
