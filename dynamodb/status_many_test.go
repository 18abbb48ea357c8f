package dynamodb

import (
	"fmt"
	"slices"
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/internal/testkit"
)

// TestStatusOfMany checks that many subjects are read together, with the same result as one by one.
func TestStatusOfMany(t *testing.T) {
	t.Parallel()
	const entities = 150
	s := configured(t)
	calls := &testkit.Counter{}
	s.options.Client = append(s.options.Client, calls.Install)
	counted := s.behind(t, testkit.NewFaults(nil))
	var of []driver.Judged
	for i := range entities {
		name := fmt.Sprintf("e-%03d", entities-i)
		of = append(of, driver.Judged{
			Subject: weir.Subject{Entity: name, Resource: "gpt-4o"}, Level: weir.LevelSystem,
			Limits: []weir.Limit{rate("rpm", 5)},
		})
		switch i % 3 {
		case 0: // nothing is left
			s.bucket(t, name, "gpt-4o", 0, 1)
		case 1: // two shards, which the process does not know of
			if i < 5 {
				s.bucket(t, name, "gpt-4o", 0, 2)
				s.bucket(t, name, "gpt-4o", 1, 2)
			}
		}
	}
	of = append(of, of[0]) // one of them twice
	got, err := counted.Status(t.Context(), configNow, of)
	if err != nil || len(got) != len(of) {
		t.Fatalf("got %d statuses, %v; want %d", len(got), err, len(of))
	}
	// Two batches, and another read of each of two buckets with more shards than were known.
	if n := calls.Snapshot().Total().Calls; n != 4 {
		t.Errorf("got %d calls, want 4:\n%s", n, calls.Snapshot())
	}
	var alone []weir.LimitStatus
	for i := range of {
		one, err := s.Status(t.Context(), configNow, of[i:i+1])
		if err != nil {
			t.Fatal(err)
		}
		alone = append(alone, one...)
	}
	if !slices.EqualFunc(got, alone, func(a, b weir.LimitStatus) bool {
		return a.Entity == b.Entity && a.Limit == b.Limit && a.Available == b.Available
	}) {
		t.Errorf("together: got %+v\nalone: %+v", got, alone)
	}
	if none, err := counted.Status(t.Context(), configNow, nil); err != nil || len(none) > 0 {
		t.Errorf("of no subjects: got %v, %v", none, err)
	}
}
