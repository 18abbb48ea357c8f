package estimator

import (
	"math"
	"testing"
)

func TestBucketsAreGaplessAndNarrow(t *testing.T) {
	t.Parallel()
	low := int64(0)
	for b := range buckets {
		high := upperOf(b)
		if bucketOf(low) != b || bucketOf(high) != b {
			t.Fatalf("bucket %d has %d to %d, which lie in %d and %d",
				b, low, high, bucketOf(low), bucketOf(high))
		}
		if width := high - low; low < 32 && width != 0 || width > low/16 {
			t.Fatalf("bucket %d from %d is %d wide", b, low, width)
		}
		if b == buckets-1 {
			if high != math.MaxInt64 {
				t.Fatalf("the last bucket ends at %d", high)
			}
			return
		}
		low = high + 1
	}
}
