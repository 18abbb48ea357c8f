package httpapi

import (
	"testing"
	"time"
)

// TestServerClockLearns checks that an admission bounds the offset from both sides, and that the
// offset moves only to the nearer bound.
func TestServerClockLearns(t *testing.T) {
	t.Parallel()
	start := time.UnixMilli(1_750_248_000_000)
	at := func(ms int64) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	for _, test := range []struct {
		name                string
		known               int64
		at, sent, received  int64
		want, wantAfterNext int64 // the second after the same again
	}{
		{"the same clock", 0, 5, 0, 10, 0, 0},
		{"ahead", 0, 45_005, 0, 10, 44_995, 44_995},
		{"behind", 0, -44_995, 0, 10, -44_995, -44_995},
		{"known as well", 44_998, 45_005, 0, 10, 44_998, 44_998},
		{"known too high", 50_000, 45_005, 0, 10, 45_005, 45_005},
		{"known too low", 40_000, 45_005, 0, 10, 44_995, 44_995},
		{"the client's clock stepped back", 7, 45_005, 10, 0, 7, 7},
	} {
		var clock serverClock
		clock.offset.Store(test.known)
		for i, want := range []int64{test.want, test.wantAfterNext} {
			clock.observe(at(test.at), at(test.sent), at(test.received))
			if got := clock.offset.Load(); got != want {
				t.Errorf("%s, %d: got an offset of %d ms, want %d", test.name, i+1, got, want)
			}
		}
		if got, want := clock.leaseID(start).Time(), at(test.want); !got.Equal(want) {
			t.Errorf("%s: the next ID says %v, want %v", test.name, got, want)
		}
	}
}
