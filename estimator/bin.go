package estimator

import "math/bits"

// Numbers of tokens are counted in bins. Below 32 each number has a bin of its own. Above, every
// power of two is divided into 16 bins, so that the width of a bin is at most a sixteenth of its
// smallest number. The bins reach up to the largest int64.
const (
	cutBits = 4 // 16 bins for each power of two
	cuts    = 1 << cutBits
	bins    = (63-cutBits)*cuts + cuts
)

// binOf returns the bin of a number, which must not be negative.
func binOf(tokens int64) int {
	if tokens < cuts {
		return int(tokens)
	}
	shift := bits.Len64(uint64(tokens)) - 1 - cutBits
	return shift<<cutBits + int(tokens>>shift)
}

// upperOf returns the largest number in a bin.
func upperOf(bin int) int64 {
	if bin < 2*cuts {
		return int64(bin)
	}
	shift := bin>>cutBits - 1
	low := uint64(bin&(cuts-1)+cuts) << shift
	return int64(low + 1<<shift - 1)
}
