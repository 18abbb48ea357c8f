package conformance

import (
	"fmt"
	"slices"

	"github.com/weir-limiter/weir"
)

// reserveCases are lines 3.1 to 3.4.
func reserveCases() []Case {
	buckets := system(slow(weir.Bucket, "n", 10), slow(weir.Bucket, "m", 10))
	slots := system(slow(weir.Bucket, "n", 10), slow(weir.Concurrency, "c", 10))
	slot := only(weir.Bucket, weir.Concurrency)
	return append([]Case{
		{"denied by one limit but charged by another", "3.1", only(weir.Bucket),
			sceneOf(func(h *Harness) Setup { return system(four(h)...) }, deniedByOne)},
		{"denied by one charge but charged by another", "3.1", only(weir.Bucket),
			scene(buckets, deniedByCharge)},
		{"an error charges nothing", "3.1", only(weir.Bucket), scene(buckets, errorChargesNothing)},
		{"at most 16 charges with 32 costs", "3.2", only(weir.Bucket), scene(buckets, atMost)},
		{"one form of charges", "3.2", only(weir.Bucket), scene(buckets, oneForm)},
		{"only limits named are judged", "3.3", only(weir.Bucket), scene(buckets, onlyNamed)},
		{"a concurrency limit that is not named costs 1", "3.3", slot, scene(slots, slotUnnamed)},
		{"a named slot is not counted twice", "3.3", slot, scene(slots, slotNamed)},
		{"the slot belongs to the first charge", "3.3", slot, scene(slots, slotFirst)},
		{"a name that nobody has is an unknown limit", "3.4", only(weir.Bucket),
			scene(buckets, unknownLimit)},
		{"no limits configured", "3.4", only(weir.Bucket), scene(Setup{}, noLimits)},
		{"N1: names with - or .", "3.4", Needs{}, oddNames},
	}, perKind("costs on one limit are one sum", "3.2", oneSum)...)
}

func deniedByOne(s *stage) {
	for i, last := range []string{"b", "w", "c", "u"} {
		e := fmt.Sprintf("e%d", i)
		s.admit(ask(e, weir.Costs{last: 10}))
		before := s.statuses(e)
		d := s.deny(ask(e, weir.Costs{"b": 1, "w": 1, "c": 1, "u": 1}))
		s.equal("exceeded", exceeded(d.Limits), []string{last})
		s.equal("status after the denial", s.statuses(e), before)
		rest := weir.Costs{"b": 10, "w": 10, "c": 9, "u": 10}
		delete(rest, last)
		if last == "c" {
			continue
		}
		s.admit(ask(e, rest)) // nothing was refused that the definition admits
	}
}

// statuses are an entity's, on the usual resource.
func (s *stage) statuses(entity string) []weir.LimitStatus {
	s.Helper()
	statuses, err := s.Status(s.Context(), entity, resource)
	if err != nil {
		s.Fatalf("status of %s: %v", entity, err)
	}
	return statuses
}

func exceeded(statuses []weir.LimitStatus) []string {
	var names []string
	for _, st := range statuses {
		if st.Exceeded {
			names = append(names, st.Limit)
		}
	}
	return names
}

func deniedByCharge(s *stage) {
	s.admit(ask("a", weir.Costs{"n": 8}))
	for _, charges := range [][]weir.Charge{
		{charge("a", cost(3)), charge("b", cost(3))},
		{charge("b", cost(3)), charge("a", cost(3))},
		{charge("b", cost(1)), charge("c", weir.Costs{"m": 2}), charge("a", cost(3)), charge("d", cost(1))},
	} {
		s.deny(several(charges...))
		s.left("a", weir.Costs{"n": 2, "m": 10})
		for _, e := range []string{"b", "c", "d"} {
			s.left(e, weir.Costs{"n": 10, "m": 10})
		}
	}
	s.admit(several(charge("b", cost(10)), charge("a", cost(2))))
	s.left("a", cost(0))
	s.left("b", cost(0))
}

func errorChargesNothing(s *stage) {
	s.fail(weir.UnknownLimit, ask("a", weir.Costs{"n": 1, "z": 1}))
	s.fail(weir.NeverSatisfiable, ask("a", weir.Costs{"m": 11, "n": 1}))
	s.fail(weir.UnknownLimit, several(charge("a", cost(1)), charge("b", weir.Costs{"z": 1})))
	s.fail(weir.NeverSatisfiable, several(charge("a", cost(1)), charge("b", cost(11))))
	s.left("a", weir.Costs{"n": 10, "m": 10})
	s.left("b", weir.Costs{"n": 10, "m": 10})
}

func atMost(s *stage) {
	var charges []weir.Charge
	for i := range 17 {
		charges = append(charges, charge(fmt.Sprintf("e%d", i), weir.Costs{"n": 1, "m": 1}))
	}
	s.admit(several(charges[:16]...))
	s.left("e15", weir.Costs{"n": 9, "m": 9})
	s.fail(weir.Invalid, several(charges...))
	s.left("e0", weir.Costs{"n": 9, "m": 9})
	thin := slices.Clone(charges)
	for i := range thin {
		thin[i].Costs = cost(1)
	}
	s.fail(weir.Invalid, several(thin...))
	var wide []weir.Limit
	many := weir.Costs{}
	for i := range 33 {
		name := fmt.Sprintf("l%d", i)
		wide = append(wide, slow(weir.Bucket, name, 10))
		many[name] = 1
	}
	s.configure(everybody(wide...))
	s.fail(weir.Invalid, ask("f", many))
	delete(many, "l32")
	s.admit(ask("f", many))
	s.fail(weir.Invalid, several(charge("g", many), charge("h", weir.Costs{"l0": 1})))
	s.left("f", weir.Costs{"l0": 9, "l32": 10})
}

func oneForm(s *stage) {
	both := ask("a", cost(1))
	both.Charges = []weir.Charge{charge("a", cost(1))}
	s.fail(weir.Invalid, both)
	s.fail(weir.Invalid, &weir.Request{})
	s.fail(weir.Invalid, ask("", cost(1)))
	s.fail(weir.Invalid, &weir.Request{Entity: "a", Costs: cost(1)})
	s.admit(several(charge("a", cost(1))))
	s.left("a", cost(9))
}

func onlyNamed(s *stage) {
	s.admit(ask("a", weir.Costs{"m": 10}))
	s.left("a", weir.Costs{"n": 10, "m": 0})
	l := s.admit(ask("a", cost(4))) // m is used up, and not asked
	s.equal("judged", order(l.Limits), []string{"a n"})
	s.deny(ask("a", weir.Costs{"n": 1, "m": 1}))
	s.admit(ask("a", nil))
	s.left("a", weir.Costs{"n": 6, "m": 0})
}

func slotUnnamed(s *stage) {
	l := s.admit(ask("a", cost(1)))
	s.equal("judged", order(l.Limits), []string{"a c", "a n"})
	s.left("a", weir.Costs{"n": 9, "c": 9})
	s.admit(ask("a", nil))
	s.left("a", weir.Costs{"n": 9, "c": 8})
	s.admit(ask("a", weir.Costs{"c": 8}))
	d := s.deny(ask("a", cost(1)))
	s.equal("exceeded", exceeded(d.Limits), []string{"c"})
	s.left("a", weir.Costs{"n": 9})
}

func slotNamed(s *stage) {
	s.admit(ask("a", weir.Costs{"n": 1, "c": 0}))
	s.left("a", weir.Costs{"n": 9, "c": 10})
	s.admit(ask("a", weir.Costs{"c": 4}))
	s.left("a", weir.Costs{"n": 9, "c": 6})
	s.admit(several(charge("a", cost(1)), charge("a", weir.Costs{"c": 2})))
	s.left("a", weir.Costs{"n": 8, "c": 4})
}

// slotFirst shows whose the slot is by who may name it in a settlement.
func slotFirst(s *stage) {
	two := several(charge("a", cost(1)), charge("a", cost(2)))
	l := s.admit(two)
	s.left("a", weir.Costs{"n": 7, "c": 9})
	slot := weir.Costs{"c": 1}
	s.refuses(weir.Invalid)(s.Adjust(s.Context(), l.ID, 1, []weir.Costs{{}, slot}))
	s.done(s.Adjust(s.Context(), l.ID, 1, []weir.Costs{slot, {}}))
	s.complete(l)
	s.left("a", weir.Costs{"n": 7, "c": 10})
}

func unknownLimit(s *stage) {
	e := s.fail(weir.UnknownLimit, ask("a", weir.Costs{"n": 1, "z": 0}))
	s.equal("field", e.Field, "costs.z")
	s.fail(weir.UnknownLimit, ask("a", weir.Costs{"N": 1}))
	s.left("a", cost(10))
}

func noLimits(s *stage) {
	s.fail(weir.NoLimits, ask("a", cost(1)))
	s.fail(weir.NoLimits, ask("a", nil))
	_, err := s.Status(s.Context(), "a", resource)
	s.refused(weir.NoLimits, err)
	s.configure(
		&weir.Definitions{Resources: map[string][]weir.Limit{"m": {slow(weir.Bucket, "n", 10)}}},
	)
	s.admit(ask("a", cost(1)))
	s.fail(weir.NoLimits, &weir.Request{Entity: "a", Resource: "other", Costs: cost(1)})
	s.fail(weir.NoLimits,
		several(charge("a", cost(1)), weir.Charge{Entity: "a", Resource: "other", Costs: cost(1)}))
	s.left("a", cost(9))
}

// oddNames keeps apart what a careless key would join.
func oddNames(t T, h Harness) {
	for _, k := range h.Traits.Kinds {
		limits := []weir.Limit{
			slow(k, "n-1", 10),
			slow(k, "n.1", 10),
			slow(k, "n", 10),
			slow(k, "n_1", 10),
		}
		scene(system(limits...), func(s *stage) {
			entities := []string{"team-a", "team.a", "team_a", "team:a", "team@a", "TEAM-a"}
			for i, e := range entities {
				r := &weir.Request{Entity: e, Resource: "gpt-4.1/mini", Costs: weir.Costs{
					"n-1": int64(i), "n.1": int64(i + 1), "n": int64(i + 2), "n_1": int64(i + 3)}}
				s.admit(r)
			}
			for i, e := range entities {
				statuses, err := s.Status(s.Context(), e, "gpt-4.1/mini")
				if err != nil {
					s.Fatalf("status of %s: %v", e, err)
				}
				for j, name := range []string{"n-1", "n.1", "n", "n_1"} {
					s.equal(e+" "+name, s.of(statuses, e, name).Available, 10-i-j)
				}
			}
			s.exactly(&weir.Request{Entity: "team-a", Resource: "gpt-4.1/mini",
				Costs: weir.Costs{"n-1": 1, "n.1": 0, "n": 0, "n_1": 0}}, 10, 12)
		})(t, h)
	}
}

func oneSum(s *stage, k weir.Kind) {
	s.fail(weir.NeverSatisfiable, several(charge("a", cost(6)), charge("a", cost(5))))
	l := s.admit(several(charge("a", cost(3)), charge("b", cost(1)), charge("a", cost(2))))
	s.equal("judged", order(l.Limits), []string{"a n", "b n"})
	s.equal("requested", l.Limits[0].Requested, 5)
	s.left("a", cost(5))
	d := s.deny(several(charge("a", cost(3)), charge("a", cost(3))))
	s.equal("requested", d.Limits[0].Requested, 6)
	s.equal("judged", len(d.Limits), 1)
	s.left("a", cost(5))
	s.admit(several(charge("a", cost(3)), charge("a", cost(2))))
	s.left("a", cost(0))
	s.left("b", cost(9))
	if k == weir.Concurrency {
		s.complete(l)
		s.left("a", cost(5))
	}
}
