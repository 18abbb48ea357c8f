package conformance

import (
	"errors"
	"fmt"

	"github.com/weir-limiter/weir"
)

func isUnsupported(err error) bool { return errors.Is(err, weir.Unsupported) }

// entityCases are section 9.
func entityCases() []Case {
	n := func(capacity int64) []weir.Limit { return []weir.Limit{slow(weir.Bucket, "n", capacity)} }
	b := only(weir.Bucket)
	deep := func(levels int) Needs { return Needs{Kinds: b.Kinds, Depth: levels} }
	eight := weir.Options{CascadeDepth: 8}
	pair := Setup{Definitions: family(n(10), n(15))}
	cases := []Case{
		{"an entity need not be declared", "9.1", b, scene(system(n(10)...), undeclared)},
		{"names with a slash", "9.1", b, scene(system(n(10)...), slashes)},
		{"cascade charges the parent too", "9.1", deep(1), scene(pair, cascades)},
		{"a parent without cascade is not charged", "9.1", deep(1), scene(Setup{}, noCascade)},
		{"cascade is on the same resource", "9.1", deep(1), scene(pair, sameResource)},
		{"skipped where an ancestor has not the limit", "3.4", deep(1), scene(Setup{}, skipsLevels)},
		{"one level by default", "9.1", deep(1), scene(Setup{}, oneLevel)},
		{"eight levels by option", "9.1", deep(8), scene(Setup{}.under(eight), eightLevels)},
		{"a child and its parent in one request", "3.2", deep(1), scene(pair, bothNamed)},
		{"cycles are errors", "9.2", b, scene(system(n(10)...), cycles)},
		{"parents that are not declared are errors", "9.2", b, scene(system(n(10)...), orphans)},
		{"an entity's status is its own", "9.1", deep(1), scene(pair, ownStatus)},
		{"a chain is explained", "9.1", deep(1), scene(pair, chainExplained)},
	}
	for _, k := range allKinds() {
		limits := func(capacity int64) []weir.Limit { return []weir.Limit{slow(k, "n", capacity)} }
		cases = append(cases,
			Case{"denied by a parent but charged by the child: " + string(k), "3.1",
				Needs{Kinds: []weir.Kind{k}, Depth: 1},
				scene(Setup{Definitions: family(limits(10), limits(5))}, deniedByParent)})
	}
	return cases
}

func undeclared(s *stage) {
	for _, e := range []string{"a", "0", "a@b.c", "sk-1:2_3"} {
		s.exactly(ask(e, cost(5)), 2, 3)
	}
}

// slashes: an entity's name may contain '/' exactly where the store says so.
func slashes(s *stage) {
	if !s.h.Traits.EntitySlash {
		s.fail(weir.Invalid, ask("org/team", cost(1)))
		return
	}
	s.exactly(ask("org/team", cost(5)), 2, 3)
	s.left("org", cost(10))
	s.fail(weir.Invalid, ask("/team", cost(1)))
	s.admit(&weir.Request{Entity: "a", Resource: "b/c", Costs: cost(7)})
	s.admit(&weir.Request{Entity: "a/b", Resource: "c", Costs: cost(7)})
}

func cascades(s *stage) {
	s.admit(ask("child", cost(4)))
	s.left("child", cost(6))
	s.left("parent", cost(11))
	s.admit(ask("parent", cost(6))) // the child is not charged
	s.left("child", cost(6))
	s.left("parent", cost(5))
	d := s.deny(ask("child", cost(6)))
	s.equal("exceeded", []bool{d.Limits[0].Exceeded, d.Limits[1].Exceeded}, []bool{false, true})
	s.admit(ask("child", cost(5)))
	s.left("parent", cost(0))
}

func deniedByParent(s *stage) {
	l := s.admit(ask("parent", cost(3)))
	s.deny(ask("child", cost(3)))
	s.left("child", cost(10))
	s.left("parent", cost(2))
	s.exactly(ask("child", cost(1)), 2, 4)
	s.left("child", cost(8))
	s.cancel(l)
	s.exactly(ask("child", cost(1)), 3, 5)
}

func noCascade(s *stage) {
	d := family([]weir.Limit{slow(weir.Bucket, "n", 10)}, []weir.Limit{slow(weir.Bucket, "n", 10)})
	child := d.Entities["child"]
	child.Cascade = false
	d.Entities["child"] = child
	s.configure(d)
	l := s.admit(ask("child", cost(4)))
	s.equal("judged", order(l.Limits), []string{"child n"})
	s.left("parent", cost(10))
	child.Cascade, child.Parent = true, ""
	d.Entities["child"] = child
	s.refused(weir.Invalid, s.Configure(d))
}

func sameResource(s *stage) {
	other := &weir.Request{Entity: "child", Resource: "other", Costs: cost(4)}
	l := s.admit(other)
	s.equal(
		"resource",
		[]string{l.Limits[0].Resource, l.Limits[1].Resource},
		[]string{"other", "other"},
	)
	s.left("child", cost(10))
	s.left("parent", cost(15))
}

// skipsLevels: a cost falls on each entity of the chain whose limits have the name.
func skipsLevels(s *stage) {
	s.configure(family(
		[]weir.Limit{slow(weir.Bucket, "both", 10), slow(weir.Bucket, "mine", 10)},
		[]weir.Limit{slow(weir.Bucket, "both", 10), slow(weir.Bucket, "its", 10)}))
	l := s.admit(ask("child", weir.Costs{"both": 1, "mine": 2, "its": 3}))
	s.equal("judged", order(l.Limits),
		[]string{"child both", "child mine", "parent both", "parent its"})
	s.left("child", weir.Costs{"both": 9, "mine": 8})
	s.left("parent", weir.Costs{"both": 9, "its": 7})
	s.admit(ask("child", weir.Costs{"its": 7}))
	s.deny(ask("child", weir.Costs{"its": 1}))
	s.left("child", weir.Costs{"both": 9, "mine": 8})
	s.fail(weir.UnknownLimit, ask("child", weir.Costs{"neither": 1}))
	s.fail(weir.UnknownLimit, ask("parent", weir.Costs{"mine": 1}))
}

// tower is a chain of entities e0, e1, … with so many ancestors above e0.
func tower(ancestors int) *weir.Definitions {
	d := &weir.Definitions{
		System:   []weir.Limit{slow(weir.Bucket, "n", 20)},
		Entities: map[string]weir.EntityDefinition{},
	}
	for i := range ancestors + 1 {
		e := weir.EntityDefinition{}
		if i < ancestors {
			e = weir.EntityDefinition{Parent: fmt.Sprintf("e%d", i+1), Cascade: true}
		}
		d.Entities[fmt.Sprintf("e%d", i)] = e
	}
	return d
}

func oneLevel(s *stage) {
	s.configure(tower(1))
	s.admit(ask("e0", cost(1)))
	s.left("e1", cost(19))
	// A longer chain is refused when it is set, or when it is used.
	err := s.Configure(tower(2))
	if err == nil {
		_, err = s.Reserve(s.Context(), ask("e0", cost(1)))
	}
	s.refused(weir.Invalid, err)
	s.left("e1", cost(19))
}

func eightLevels(s *stage) {
	s.configure(tower(8))
	l := s.admit(ask("e0", cost(3)))
	s.equal("judged", len(l.Limits), 9)
	for i := range 9 {
		s.left(fmt.Sprintf("e%d", i), cost(17))
	}
	s.admit(ask("e8", cost(16)))
	d := s.deny(ask("e0", cost(2)))
	s.equal("denied by", d.Limits[8].Exceeded, true)
	s.left("e0", cost(17))
	s.complete(l, cost(1))
	s.left("e8", cost(3))
	err := s.Configure(tower(9))
	if err == nil {
		_, err = s.Reserve(s.Context(), ask("e0", cost(1)))
	}
	s.refused(weir.Invalid, err)
}

func bothNamed(s *stage) {
	l := s.admit(several(charge("child", cost(4)), charge("parent", cost(5))))
	s.equal("judged", order(l.Limits), []string{"child n", "parent n"})
	s.equal("requested of the parent", l.Limits[1].Requested, 9)
	s.left("child", cost(6))
	s.left("parent", cost(6))
	s.deny(several(charge("parent", cost(3)), charge("child", cost(4))))
	s.adjust(l, 1, cost(1), cost(2))
	s.left("child", cost(9))
	s.left("parent", cost(12))
	s.fail(weir.NeverSatisfiable, several(charge("parent", cost(8)), charge("child", cost(8))))
	s.cancel(l)
	s.left("parent", cost(15))
}

func cycles(s *stage) {
	s.admit(ask("a", cost(4)))
	up := func(parent string) weir.EntityDefinition {
		return weir.EntityDefinition{Parent: parent, Cascade: true}
	}
	for _, entities := range []map[string]weir.EntityDefinition{
		{"a": up("a")},
		{"a": up("b"), "b": up("a")},
		{"a": up("b"), "b": up("c"), "c": up("b")},
		{"a": {Parent: "b"}, "b": {Parent: "a"}}, // also where nothing cascades
	} {
		d := everybody(slow(weir.Bucket, "n", 99))
		d.Entities = entities
		s.refused(weir.Invalid, s.Configure(d))
	}
	s.left("a", cost(6))
}

func orphans(s *stage) {
	s.admit(ask("a", cost(4)))
	d := everybody(slow(weir.Bucket, "n", 99))
	d.Entities = map[string]weir.EntityDefinition{"a": {Parent: "nobody", Cascade: true}}
	s.refused(weir.Invalid, s.Configure(d))
	d.Entities = map[string]weir.EntityDefinition{"a": {Parent: "nobody"}}
	s.refused(weir.Invalid, s.Configure(d))
	s.left("a", cost(6))
}

func ownStatus(s *stage) {
	s.admit(ask("child", cost(4)))
	s.equal("status", order(s.statuses("child")), []string{"child n"})
	s.equal("status", order(s.statuses("parent")), []string{"parent n"})
	all, err := s.Status(s.Context(), "child", "")
	if err != nil && isUnsupported(err) {
		return
	}
	if err != nil {
		s.Fatalf("status of every resource: %v", err)
	}
	found := false
	for _, st := range all {
		found = found || st.Resource == resource && st.Available == 6
	}
	if !found {
		s.Fatalf("status of every resource: got %v, want what is in use on %s", all, resource)
	}
}

func chainExplained(s *stage) {
	e, err := s.Explain(s.Context(), "child", resource)
	if err != nil {
		s.Fatalf("explain: %v", err)
	}
	if e.Parent == nil || e.Parent.Parent != nil {
		s.Fatalf("explain: got parent %+v, want one level", e.Parent)
	}
	s.equal(
		"chain",
		[]any{e.Entity, e.Limits[0].Capacity, e.Parent.Entity, e.Parent.Limits[0].Capacity},
		[]any{"child", 10, "parent", 15},
	)
}
