// Package broken has services and stores that are each wrong in one respect. Its tests show that
// the suites catch every one of them, because a check that has never failed proves little.
//
// A wrong service, a [Variant], is a right model with one of two changes. A rule (functions named
// …Rules) sets one of the [model.Points], which replaces a value inside the model. A front
// (functions named …Fronts) is a wrongWorld around the model that changes what the model is asked,
// what it answers, its clock or its settings. A wrong store, a [StoreVariant], is a right store
// with a wrong method, or a wrong front of a limiter. Each variant is a row of a table that says
// what is wrong, which line of docs/semantics.md it breaks, and how:
//
//	{"the weakest level wins", "5.1", model.Points{Levels: …}}
//	{"at most 15 charges", "3.2", asking(func(w *wrongWorld, r *weir.Request) error { … })}
//
// A variant is caught if a case about its line fails. On a store that can do less, random operations
// may catch it instead (minimal_store_test.go).
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
	// Breaks is the line, such as "3.5", or the name of the mistake.
	Breaks string
	// Harness opens the wrong service.
	Harness conformance.Harness
}

// pointVariant is a model with wrong points.
type pointVariant struct {
	name, breaks string
	points       model.Points
}

// wrappedVariant is a model with a wrong front. Its function runs for each world.
type wrappedVariant struct {
	name, breaks string
	spoil        func(w *wrongWorld)
}

// Variants returns all wrong services.
func Variants() []Variant {
	calendar := model.NewCalendar()
	var variants []Variant
	for _, r := range slices.Concat(
		numberRules(), keyRules(),
		bucketRules(), changedBucketRules(), occupancyRules(), fitRules(), calendarRules(),
		partRules(), slotRules(), levelRules(), planRules(), judgeRules(), waitRules(),
		leaseRules(), unknownRules(), sequenceRules(), tableRules(), contentRules(), keyedRules(),
		standRules(), growthRules(), refundRules(), changeRules(),
	) {
		variants = append(variants, Variant{r.name, r.breaks,
			harness(calendar, func(w *wrongWorld) { w.points = r.points })})
	}
	for _, f := range slices.Concat(
		clockFronts(), requestFronts(), cascadeFronts(), statusFronts(), broughtFronts(), racingFronts(),
		answerFronts(), denialFronts(), leaseFronts(), sequenceFronts(), updateVariants(),
		keyedFronts(), changeFronts(), nameFronts(), askedFronts(),
	) {
		variants = append(variants, Variant{f.name, f.breaks, harness(calendar, f.spoil)})
	}
	return variants
}

// Right returns a harness of models in which nothing is wrong.
func Right() conformance.Harness { return harness(model.NewCalendar(), func(*wrongWorld) {}) }

// harness opens models that spoil has changed.
func harness(c *model.Calendar, spoil func(w *wrongWorld)) conformance.Harness {
	h := conformance.ModelHarness(nil)
	h.Open = func(t conformance.T, s conformance.Setup) conformance.World {
		t.Helper()
		w := &wrongWorld{}
		spoil(w)
		if w.setup != nil {
			w.setup(&s)
		}
		inner, err := conformance.OpenModel(s, c, &w.points)
		if err != nil {
			t.Fatalf("open the model: %v", err)
		}
		w.World = inner
		if w.opened != nil {
			w.World = w.opened(inner)
		}
		return w
	}
	return h
}
