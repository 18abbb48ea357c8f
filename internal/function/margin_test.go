package function

import (
	"testing"
	"time"
)

// TestMargin checks that a function with the three seconds that Lambda gives by default has most of
// them for its batch.
func TestMargin(t *testing.T) {
	t.Parallel()
	for left, want := range map[time.Duration]time.Duration{
		3 * time.Second: 750 * time.Millisecond, 12 * time.Second: 3 * time.Second,
		2 * time.Minute: 3 * time.Second,
	} {
		if got := margin(left); got != want {
			t.Errorf("%v of %v are left for the answer, want %v", got, left, want)
		}
	}
}
