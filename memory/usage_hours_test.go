package memory

import "testing"

// TestHorizonStays checks that hours that were dropped stay dropped if an entry of an earlier hour,
// which another stripe was about to add, is counted after that.
func TestHorizonStays(t *testing.T) {
	t.Parallel()
	h := newUsageHours(31, 2)
	for hour := int64(100); hour < 105; hour++ {
		h.added(hour)
	}
	was := h.horizon.Load()
	h.added(50)
	if is := h.horizon.Load(); is != was || h.kept != 2 {
		t.Errorf("got horizon %d and %d entries, want %d and 2", is, h.kept, was)
	}
}
