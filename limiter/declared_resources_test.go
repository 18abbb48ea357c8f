package limiter_test

import (
	"errors"
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// TestDeclaredResources checks which resources a limiter refuses that knows only declared ones, and
// that a refusal charges nothing.
func TestDeclaredResources(t *testing.T) {
	t.Parallel()
	n := []weir.Limit{{Name: "n", Capacity: 5}}
	store, err := memory.Open(&memory.Options{Definitions: &weir.Definitions{
		System:    n,
		Resources: map[string][]weir.Limit{"llm": n},
		Entities: map[string]weir.EntityDefinition{
			"acme": {Limits: map[string][]weir.Limit{"own": n, weir.DefaultResource: n}},
			"bot":  {Parent: "acme", Cascade: true},
			"free": {Parent: "acme"},
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	strict, err := limiter.New(store, &limiter.Options{DeclaredResources: true, Limits: n})
	if err != nil {
		t.Fatal(err)
	}
	lenient, err := limiter.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		entity, resource string
		declared         bool
	}{
		{"anybody", "llm", true},
		{"acme", "llm", true}, // its limits for every resource apply, and hide those of llm
		{"acme", "own", true},
		{"bot", "own", true}, // acme is charged, too
		{"free", "own", false},
		{"anybody", "own", false},
		{"anybody", "lmm", false},
		{"acme", "lmm", false},
	} {
		r := &weir.Request{Charges: []weir.Charge{
			{Entity: "first", Resource: "llm", Costs: weir.Costs{"n": 1}},
			{Entity: c.entity, Resource: c.resource, Costs: weir.Costs{"n": 1}},
		}}
		_, err := strict.Explain(t.Context(), c.entity, c.resource)
		if errors.Is(err, weir.NotFound) == c.declared || c.declared && err != nil {
			t.Errorf("explain %s on %s: %v", c.entity, c.resource, err)
		}
		lease, err := strict.Reserve(t.Context(), r)
		if c.declared {
			if err != nil {
				t.Errorf("%s on %s: %v", c.entity, c.resource, err)
			} else if _, err := strict.Cancel(t.Context(), lease.ID); err != nil {
				t.Fatal(err)
			}
			continue
		}
		e, ok := errors.AsType[*weir.Error](err)
		if !ok || e.Code != weir.NotFound || e.Field != "charges[1].resource" && e.Field != "resource" || e.Value != c.resource {
			t.Errorf("%s on %s: got %v, want not found of resource", c.entity, c.resource, err)
		}
	}
	statuses, err := lenient.Status(t.Context(), "first", "llm")
	if err != nil || statuses[0].Available != 5 {
		t.Errorf("got %+v, %v, want nothing charged", statuses, err)
	}
}
