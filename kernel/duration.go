package kernel

import (
	"math"
	"time"
)

// Duration is a wait of so many milliseconds, at most the longest duration there is.
func Duration(ms int64) time.Duration {
	if ms > math.MaxInt64/int64(time.Millisecond) {
		return math.MaxInt64
	}
	return time.Duration(ms) * time.Millisecond
}

// Until is the wait between two instants (ms): 0 where the second one has come, and at most the
// longest duration there is.
func Until(nowMS, atMS int64) time.Duration {
	if atMS <= nowMS {
		return 0
	}
	ms := uint64(atMS) - uint64(nowMS) // the difference of two int64 fits
	return Duration(int64(min(ms, math.MaxInt64)))
}
