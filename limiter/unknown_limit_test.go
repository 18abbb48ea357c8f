package limiter_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// TestUnknownLimitListsLimits checks that the error about an unknown limit lists the limits of the
// entity and of those that it cascades to: sorted, each once, and at most ten.
func TestUnknownLimitListsLimits(t *testing.T) {
	t.Parallel()
	bucket := func(names ...string) []weir.Limit {
		var limits []weir.Limit
		for _, name := range names {
			limits = append(limits, weir.Limit{Name: name, Capacity: 5})
		}
		return limits
	}
	var many []string
	for i := range 13 {
		many = append(many, fmt.Sprintf("l%02d", i))
	}
	store, err := memory.Open(&memory.Options{Definitions: &weir.Definitions{
		Resources: map[string][]weir.Limit{"llm": bucket("tpm", "rpm"), "wide": bucket(many...)},
		Entities: map[string]weir.EntityDefinition{
			"acme": {Limits: map[string][]weir.Limit{"llm": bucket("usd_micros", "rpm")}},
			"bot":  {Parent: "acme", Cascade: true},
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := limiter.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	const neither = "neither %q nor an entity that it cascades to has such a limit on %q: the limits here are "
	for _, c := range []struct {
		entity, resource string
		brings           []weir.Limit
		field, want      string
	}{
		{"any", "llm", nil, "costs.rmp", fmt.Sprintf(neither, "any", "llm") + "rpm, tpm"},
		{"bot", "llm", nil, "costs.rmp", fmt.Sprintf(neither, "bot", "llm") + "rpm, tpm, usd_micros"},
		{
			"any", "wide", nil, "costs.rmp", fmt.Sprintf(neither, "any", "wide") +
				"l00, l01, l02, l03, l04, l05, l06, l07, l08, l09 and 3 more",
		},
		{ // a brought limit cannot lower the parent's limits, so these are not listed
			"bot", "llm", bucket("rmp"), "limits.rmp",
			"no charged entity has such a limit: the limits here are rpm, tpm",
		},
	} {
		costs := weir.Costs{"rmp": 1}
		if c.brings != nil {
			costs = weir.Costs{"rpm": 1}
		}
		_, err := l.Reserve(t.Context(), &weir.Request{
			Charges: []weir.Charge{{Entity: c.entity, Resource: c.resource, Costs: costs}}, Limits: c.brings,
		})
		e, ok := errors.AsType[*weir.Error](err)
		if !ok || e.Code != weir.UnknownLimit || e.Field != c.field || e.Reason != c.want {
			t.Errorf("%s on %s: got %v, want %s: %s", c.entity, c.resource, err, c.field, c.want)
		}
	}
}
