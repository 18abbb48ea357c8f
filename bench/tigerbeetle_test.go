//go:build cgo

package main

import "testing"

// TestCopyLeases checks that whole leases are copied, and that their two shapes differ by the
// refill of the only bucket.
func TestCopyLeases(t *testing.T) {
	t.Parallel()
	copied, err := copyLeases(t.Context(), &spec{Entities: []string{"hot"}, Callers: 1})
	if err != nil {
		t.Fatal(err)
	}
	least, most := copied.shapes.least, copied.shapes.most
	if len(least.calls) != 2 || len(most.calls) != 2 || most.events-least.events != 1 {
		t.Errorf("got %d calls of %d events and %d of %d, want two calls, and one event more",
			len(least.calls), least.events, len(most.calls), most.events)
	}
	for _, c := range []struct {
		name   string
		events int
		fails  bool
		share  int64
	}{
		{"without a refill", least.events * 10, false, 0},
		{"half", least.events*10 + 5*(most.events-least.events), false, 500},
		{"more", most.events * 12, true, 0},
	} {
		seen := &reply{Ops: 10, Counts: map[string]int64{countCalls: 20, countEvents: int64(c.events)}}
		share, err := copied.shapes.share(seen)
		if (err != nil) != c.fails || err == nil && share != c.share {
			t.Errorf("%s: got %d, %v, want %d, fails %t", c.name, share, err, c.share, c.fails)
		}
	}
}
