package estimator

import "math/bits"

// A number of tokens falls into one of a fixed row of buckets. Below 32 each number has its own;
// above, every power of two is cut into 16, so that a bucket is at most a sixteenth of its smallest
// number wide. The row reaches the largest int64.
const (
	cutBits = 4 // 16 buckets for each power of two
	cuts    = 1 << cutBits
	buckets = (63-cutBits)*cuts + cuts
)

// bucketOf returns the bucket of a number that is not negative.
func bucketOf(tokens int64) int {
	if tokens < cuts {
		return int(tokens)
	}
	shift := bits.Len64(uint64(tokens)) - 1 - cutBits
	return shift<<cutBits + int(tokens>>shift)
}

// upperOf returns the largest number in a bucket.
func upperOf(bucket int) int64 {
	if bucket < 2*cuts {
		return int64(bucket)
	}
	shift := bucket>>cutBits - 1
	low := uint64(bucket&(cuts-1)+cuts) << shift
	return int64(low + 1<<shift - 1)
}
