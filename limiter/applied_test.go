package limiter_test

import (
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

func TestAppliedNeverAsksTheStore(t *testing.T) {
	t.Parallel()
	now := time.Date(2025, 6, 18, 12, 0, 0, 0, time.UTC)
	store, err := memory.Open(&memory.Options{Definitions: &weir.Definitions{
		System: []weir.Limit{{Name: "rpm", Capacity: 60}},
		// Entities that are not declared share one cached resolution, so declare these.
		Entities: map[string]weir.EntityDefinition{"acme": {}, "other": {}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	lim, err := limiter.New(store, &limiter.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lim.Close() }()
	acme := weir.Subject{Entity: "acme", Resource: "llm"}
	applied := func(what string, want int) {
		t.Helper()
		before := lim.CacheStats()
		if got := lim.Applied(acme); len(got) != want {
			t.Errorf("%s: got %v, want %d limits", what, got, want)
		}
		if after := lim.CacheStats(); after != before {
			t.Errorf("%s: the cache counted %+v, then %+v", what, before, after)
		}
	}
	applied("before any call", 0)
	if _, err := lim.Status(t.Context(), acme.Entity, acme.Resource); err != nil {
		t.Fatal(err)
	}
	applied("after a call", 1)
	now = now.Add(time.Minute)
	if _, err := lim.Status(t.Context(), "other", acme.Resource); err != nil { // moves the cache's time
		t.Fatal(err)
	}
	applied("after the cache time", 0)
	if _, err := lim.Status(t.Context(), acme.Entity, acme.Resource); err != nil {
		t.Fatal(err)
	}
	applied("after another call", 1)
	if err := lim.SetLimits(t.Context(), weir.Subject{}, nil); err != nil {
		t.Fatal(err)
	}
	applied("after a change", 0)
}
