// Package broken has services and stores that are wrong in one respect each. Its test shows that the
// suites catch every one of them: a check that nothing wrong has ever failed says little.
package broken

import (
	"slices"

	"github.com/weir-limiter/weir/conformance"
	"github.com/weir-limiter/weir/conformance/model"
)

// Variant is a service that breaks one line of docs/semantics.md, or makes one of
// [conformance.Mistakes].
type Variant struct {
	// Name says what it does wrong.
	Name string
	// Breaks is the line, "3.5", or the mistake's name.
	Breaks string
	// Harness opens it.
	Harness conformance.Harness
}

// Variants returns all of them. Each is the model with a rule replaced, or with something wrong in
// front of it.
func Variants() []Variant {
	calendar := model.NewCalendar()
	var variants []Variant
	for _, r := range slices.Concat(
		numberRules(), bucketRules(), occupancyRules(), calendarRules(), keyRules(),
		requestRules(), configRules(), planRules(), judgeRules(), denialRules(),
		leaseRules(), tableRules(), contentRules(),
		sequenceRules(), totalsRules(), growthRules(), refundRules(), changeRules(),
	) {
		variants = append(variants, Variant{r.name, r.breaks, harness(calendar, r.spoil, nil)})
	}
	for _, f := range fronts() {
		variants = append(variants, Variant{f.name, f.breaks, harness(calendar, nil, f.put)})
	}
	return variants
}

// rule is a model with one rule replaced.
type rule struct {
	name, breaks string
	// spoil sets wrong rules, which may be made of the right ones.
	spoil func(wrong, right *model.Rules)
}

// Front puts something between a world and the suites.
type Front func(conformance.World) conformance.World

// front is something wrong in front of a model.
type front struct {
	name, breaks string
	put          Front
}

// Right is a harness of models in which nothing is wrong.
func Right() conformance.Harness { return harness(model.NewCalendar(), nil, nil) }

// harness opens models with rules that are spoilt, and something in front of them. Either may be nil.
// Rules are spoilt anew for each world, so that they may keep a state of their own.
func harness(
	c *model.Calendar, spoil func(wrong, right *model.Rules), put Front,
) conformance.Harness {
	h := conformance.ModelHarness(nil)
	h.Open = func(t conformance.T, s conformance.Setup) conformance.World {
		t.Helper()
		rules := &model.Rules{}
		if spoil != nil {
			spoil(rules, model.Right(c))
		}
		w, err := conformance.OpenModel(s, true, c, rules)
		if err != nil {
			t.Fatalf("open the model: %v", err)
		}
		if put != nil {
			return put(w)
		}
		return w
	}
	return h
}
