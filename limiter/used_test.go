package limiter_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// usedObserver keeps a copy of what the last event says was used.
type usedObserver struct{ used []limiter.Use }

// Observe implements [limiter.Observer].
func (o *usedObserver) Observe(_ context.Context, e limiter.Event) { o.used = slices.Clone(e.Used) }

// TestEventUsed makes the updates of two leases on three limits, one of them a parent's, and checks
// the change and the total of each limit in the event.
func TestEventUsed(t *testing.T) {
	t.Parallel()
	seen := &usedObserver{}
	rpm := weir.Limit{Name: "rpm", Kind: weir.Bucket, Capacity: 100, RefillAmount: 100, RefillPeriod: time.Minute}
	slots := weir.Limit{Name: "slots", Kind: weir.Concurrency, Capacity: 10, Timeout: time.Minute}
	store, err := memory.Open(&memory.Options{Definitions: &weir.Definitions{
		System:   []weir.Limit{rpm, slots},
		Entities: map[string]weir.EntityDefinition{"acme": {}, "bot": {Parent: "acme", Cascade: true}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := limiter.New(store, &limiter.Options{Observer: seen})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	lease := func() *weir.Lease {
		lease, err := l.Reserve(ctx, &weir.Request{
			Entity: "bot", Resource: "llm", Costs: weir.Costs{"rpm": 5, "slots": 2},
		})
		if err != nil {
			t.Fatal(err)
		}
		return lease
	}
	// of returns the uses on the entity and its parent, which are charged the same costs.
	of := func(rpmChange, rpmTotal, slotsChange, slotsTotal int64) []limiter.Use {
		var all []limiter.Use
		for _, entity := range []string{"bot", "acme"} {
			at := weir.Subject{Entity: entity, Resource: "llm"}
			all = append(all,
				limiter.Use{Subject: at, Limit: "rpm", Kind: weir.Bucket, Change: rpmChange, Total: rpmTotal},
				limiter.Use{Subject: at, Limit: "slots", Kind: weir.Concurrency, Change: slotsChange, Total: slotsTotal})
		}
		return all
	}
	first, second := lease(), lease()
	for _, tc := range []struct {
		name string
		call func() (*weir.Receipt, error)
		want []limiter.Use
	}{
		{"adjust to more", func() (*weir.Receipt, error) {
			return l.Adjust(ctx, first.ID, 1, []weir.Costs{{"rpm": 8}})
		}, of(3, 8, 0, 2)},
		{"adjust again", func() (*weir.Receipt, error) {
			return l.Adjust(ctx, first.ID, 1, []weir.Costs{{"rpm": 8}})
		}, nil},
		{"extend", func() (*weir.Receipt, error) { return l.Extend(ctx, first.ID) }, nil},
		{"complete", func() (*weir.Receipt, error) {
			return l.Complete(ctx, first.ID, []weir.Costs{{"rpm": 2, "slots": 1}})
		}, of(-6, 2, -1, 1)},
		{"complete again", func() (*weir.Receipt, error) {
			return l.Complete(ctx, first.ID, []weir.Costs{{"rpm": 2, "slots": 1}})
		}, nil},
		{"cancel", func() (*weir.Receipt, error) { return l.Cancel(ctx, second.ID) }, of(-5, 0, -2, 0)},
		{"cancel what is unknown", func() (*weir.Receipt, error) {
			_, _ = l.Cancel(ctx, weir.NewLeaseID(time.Now()))
			return nil, nil
		}, nil},
	} {
		if _, err := tc.call(); err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		if !slices.Equal(seen.used, tc.want) {
			t.Errorf("%s: got %+v, want %+v", tc.name, seen.used, tc.want)
		}
	}
}
