package aggregator_test

import (
	"testing"

	"github.com/weir-limiter/weir/aggregator"
	"github.com/weir-limiter/weir/internal/schema"
)

// TestUnreadBase checks that a limit whose count could not be read in the last counted record is not
// booked with all that was ever taken of it.
func TestUnreadBase(t *testing.T) {
	t.Parallel()
	id := schema.BucketID{Namespace: "ns", Entity: "acme", Resource: "gpt-4o"}
	type counts = aggregator.Counts
	spoiled := modified(1, start, id,
		counts{"rpm": 5_000_000, "tpm": 70_000}, counts{"rpm": 5_001_000, "tpm": 72_000})
	spoiled.New[schema.BucketAttribute("rpm", schema.FieldConsumed)] = schema.String("many")
	c, faults := aggregator.Parse(spoiled)
	if c == nil || len(faults) != 1 {
		t.Fatalf("got %v, %v; want a change without rpm", c, faults)
	}
	u := aggregator.Book([]*aggregator.Change{c}, nil)[0].Update()
	if u.Usage.Counters["tpm"] != 2 || u.Usage.Counters["rpm"] != 0 {
		t.Errorf("got %v, want 2 of tpm", u.Usage.Counters)
	}
	base := aggregator.LastCounted(0, []schema.Item{{
		schema.PositionAttribute(0): schema.String(string(u.Shards[0].Last)),
		schema.CountedAttribute(0):  schema.String(u.Shards[0].Counts.String()),
	}})
	next, faults := aggregator.Parse(modified(3, start, id,
		counts{"rpm": 5_002_000, "tpm": 73_000}, counts{"rpm": 5_003_000, "tpm": 74_000}))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	bases := map[schema.BucketID]*aggregator.Base{id: base}
	got := aggregator.Book([]*aggregator.Change{next}, bases)[0].Update().Usage.Counters
	if got["rpm"] != 1 || got["tpm"] != 2 {
		t.Errorf("got %v, want 1 of rpm, and 2 of tpm because a record was missed", got)
	}
}
