package limiter_test

import (
	"errors"
	"maps"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/soak"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// TestExplainCharge checks that an explanation says what a reservation is charged, or refuses the
// costs with the same code.
func TestExplainCharge(t *testing.T) {
	t.Parallel()
	store, err := memory.Open(&memory.Options{Definitions: &weir.Definitions{
		Resources: map[string][]weir.Limit{"llm": {
			{Name: "rpm", Capacity: 5, RefillAmount: 5, RefillPeriod: time.Minute},
			{Name: "slots", Kind: weir.Concurrency, Capacity: 4, Timeout: time.Minute},
			{Name: "seen", Kind: weir.Window, Capacity: 2, Window: time.Minute, Shadow: true},
		}},
		Entities: map[string]weir.EntityDefinition{
			"acme": {}, "bot": {Parent: "acme", Cascade: true, Limits: map[string][]weir.Limit{"llm": {
				{Name: "rpm", Capacity: 3, RefillAmount: 3, RefillPeriod: time.Minute},
				{Name: "usd", Kind: weir.Window, Capacity: 9, Window: time.Minute},
			}}},
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := limiter.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(soak.Seed(t), 0))
	codes := map[weir.Code]int{}
	for range 2000 {
		entity, costs := []string{"acme", "bot", "bot"}[rng.IntN(3)], randomCosts(rng)
		e, err := l.Explain(t.Context(), entity, "llm")
		if err != nil {
			t.Fatal(err)
		}
		refused := e.Charge(costs)
		lease, err := l.Reserve(t.Context(), &weir.Request{Entity: entity, Resource: "llm", Costs: costs})
		var denied *weir.DeniedError
		if errors.As(err, &denied) {
			t.Fatalf("%v of %s: %v: nothing is in use", costs, entity, err)
		}
		if refused != nil || err != nil {
			if code := codeOf(refused); code != codeOf(err) || e.Costs != nil {
				t.Fatalf("%v of %s: the explanation says %v, the reservation %v", costs, entity, refused, err)
			}
			codes[codeOf(err)]++
			continue
		}
		codes[""]++
		charged := chargedBy(lease)
		for at := e; at != nil; at = at.Parent {
			if !maps.Equal(at.Costs, charged[at.Entity]) || len(at.Costs)+len(at.LeftOut) != len(at.Limits) {
				t.Errorf("%v: got %v of %s and %v left out, want %v", costs, at.Costs, at.Entity, at.LeftOut,
					charged[at.Entity])
			}
		}
		if _, err := lease.Cancel(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, code := range []weir.Code{"", weir.Invalid, weir.UnknownLimit, weir.NeverSatisfiable} {
		if codes[code] == 0 {
			t.Errorf("no costs were answered with %q", code)
		}
	}
	t.Logf("answers: %v", codes)
}

// randomCosts returns costs, some of which are wrong.
func randomCosts(rng *rand.Rand) weir.Costs {
	amounts, costs := []int64{-1, 0, 1, 2, 3, 4, 5, 6, weir.MaxBucketUnits + 1}, weir.Costs{}
	if rng.IntN(50) == 0 { // too many
		for i := range 40 {
			costs["n"+strconv.Itoa(i)] = 1
		}
	}
	for _, name := range []string{"rpm", "slots", "seen", "usd", "a_first", "un known"} {
		if rng.IntN(4) == 0 {
			costs[name] = amounts[rng.IntN(len(amounts))]
		}
	}
	return costs
}

// chargedBy returns what a lease charges on each entity.
func chargedBy(lease *weir.Lease) map[string]weir.Costs {
	charged := map[string]weir.Costs{}
	for _, s := range lease.Limits {
		if charged[s.Entity] == nil {
			charged[s.Entity] = weir.Costs{}
		}
		charged[s.Entity][s.Limit] = s.Requested
	}
	return charged
}

func codeOf(err error) weir.Code {
	if e, ok := errors.AsType[*weir.Error](err); ok {
		return e.Code
	}
	return ""
}
