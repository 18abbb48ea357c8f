package conformance

import (
	"time"

	"github.com/weir-limiter/weir"
)

// keyCases are line 7.12.
func keyCases() []Case {
	b := only(weir.Bucket)
	stored := system(slow(weir.Bucket, "n", 100), slow(weir.Bucket, "m", 100))
	return []Case{
		{"keyed charges are settled by name", "7.12", b, scene(stored, settledByName)},
		{"a complete by name is repeated", "7.12", b, scene(stored, repeatedByName)},
		{"keyed charges are not told by position", "7.12", b, scene(stored, notByPosition)},
		{"names that no keyed charge has", "7.12", b, scene(stored, notKeys)},
		{"a limit that one keyed charge alone has", "7.12", b, scene(stored, oneHasIt)},
		{"full names of a lease that is not keyed", "7.12", b, scene(stored, notKeyed)},
		{"keyed charges of one entity and resource", "7.12", b, scene(stored, sameKeys)},
		{"keyed charges that share an ancestor", "7.12", b, scene(familyOfKeys(), sharedAncestor)},
	}
}

// full is the full name of a limit on the usual resource.
func full(entity, limit string) string {
	return weir.Subject{Entity: entity, Resource: resource}.FullName(limit)
}

// byKey is a keyed request with several charges on the usual resource.
func byKey(charges ...weir.Charge) *weir.Request {
	r := several(charges...)
	r.Keyed = true
	return r
}

func settledByName(s *stage) {
	l := s.admit(byKey(charge("b", weir.Costs{"n": 10, "m": 1}), charge("a", cost(20))))
	s.adjust(l, 1, weir.Costs{full("a", "n"): 25})
	s.left("a", weir.Costs{"n": 75, "m": 100})
	s.left("b", weir.Costs{"n": 90, "m": 99})
	s.adjust(l, 2, weir.Costs{full("b", "n"): 12, full("a", "n"): 21, full("b", "m"): 3})
	s.left("a", weir.Costs{"n": 79, "m": 100})
	s.left("b", weir.Costs{"n": 88, "m": 97})
	s.complete(l, weir.Costs{full("b", "n"): 2})
	s.left("a", weir.Costs{"n": 79, "m": 100})
	s.left("b", weir.Costs{"n": 98, "m": 97})
	l = s.admit(byKey(charge("d", cost(10)), charge("c", cost(20))))
	s.complete(l)
	s.left("c", cost(80))
	s.left("d", cost(90))
	l = s.admit(byKey(charge("e", cost(10)))) // one charge needs no name
	s.adjust(l, 1, cost(4))
	s.complete(l, weir.Costs{full("e", "n"): 3})
	s.left("e", cost(97))
}

func repeatedByName(s *stage) {
	l := s.admit(byKey(charge("b", cost(10)), charge("a", cost(20))))
	actuals := weir.Costs{full("a", "n"): 1, full("b", "n"): 2}
	first := s.complete(l, actuals)
	for range 2 {
		s.Advance(time.Minute)
		if again := s.complete(l, actuals); !again.At.Equal(first.At) {
			s.Fatalf("repeated: completed at %s, at first at %s", again.At, first.At)
		}
	}
	for _, other := range [][]weir.Costs{
		nil, {{full("a", "n"): 1}}, {{full("a", "n"): 2, full("b", "n"): 1}}, {cost(1), cost(2)}, {cost(2), cost(1)},
	} {
		s.refuses(weir.Conflict)(s.Complete(s.Context(), l.ID, other))
	}
	s.refuses(weir.Conflict)(s.Cancel(s.Context(), l.ID))
	s.refuses(weir.Ended)(s.Adjust(s.Context(), l.ID, 1, []weir.Costs{actuals}))
	s.left("a", cost(99))
	s.left("b", cost(98))
}

// refusesTotals expects an adjust and a complete to be refused, with nothing applied.
func (s *stage) refusesTotals(code weir.Code, l *weir.Lease, totals ...weir.Costs) {
	s.Helper()
	s.refuses(code)(s.Adjust(s.Context(), l.ID, 1, totals))
	s.refuses(code)(s.Complete(s.Context(), l.ID, totals))
}

func notByPosition(s *stage) {
	l := s.admit(byKey(charge("b", cost(10)), charge("a", cost(20))))
	s.refusesTotals(weir.Invalid, l, cost(5), cost(6))
	s.refusesTotals(weir.Invalid, l, weir.Costs{}, weir.Costs{})
	s.refusesTotals(weir.Invalid, l, weir.Costs{full("b", "n"): 1}, weir.Costs{full("a", "n"): 1})
	s.refusesTotals(weir.Invalid, l, cost(5))
	s.refusesTotals(weir.Invalid, l, weir.Costs{"n": 5, full("b", "n"): 1})
	s.left("a", cost(80))
	s.left("b", cost(90))
	s.cancel(l)
	s.left("a", cost(100))
	s.left("b", cost(100))
}

func notKeys(s *stage) {
	l := s.admit(byKey(charge("b", cost(10)), charge("a", weir.Costs{"n": 20, "m": 2})))
	elsewhere := weir.Subject{Entity: "b", Resource: "other"}
	for _, name := range []string{
		full("c", "n"), full("b", "m"), full("b", "z"), full("B", "n"), elsewhere.FullName("n"),
		full("b", ""), full("", "n"), full("b b", "n"), full("b", "#n"), "b#n", "#n", "##",
	} {
		s.refusesTotals(weir.Invalid, l, weir.Costs{name: 1})
		s.refusesTotals(weir.Invalid, l, weir.Costs{name: 1, full("b", "n"): 1})
	}
	s.refusesTotals(weir.Invalid, l, weir.Costs{full("b", "n"): -1})
	s.fail(weir.Invalid, byKey(charge("b", weir.Costs{full("b", "n"): 1})))
	s.left("a", weir.Costs{"n": 80, "m": 98})
	s.left("b", cost(90))
	s.complete(l, weir.Costs{full("b", "n"): 1})
	s.left("b", cost(99))
}

func oneHasIt(s *stage) {
	l := s.admit(byKey(charge("b", cost(10)), charge("a", weir.Costs{"n": 20, "m": 2})))
	s.refusesTotals(weir.Invalid, l, weir.Costs{"m": 1, full("a", "m"): 1})
	s.adjust(l, 1, weir.Costs{"m": 5, full("b", "n"): 3})
	s.complete(l, weir.Costs{full("a", "n"): 1, "m": 6})
	s.left("a", weir.Costs{"n": 99, "m": 94})
	s.left("b", weir.Costs{"n": 97, "m": 100})
}

func notKeyed(s *stage) {
	for _, l := range []*weir.Lease{
		s.admit(several(charge("b", cost(10)), charge("a", cost(20)))), s.admit(ask("a", cost(20))),
	} {
		s.refusesTotals(weir.UnknownLease, l, weir.Costs{full("a", "n"): 1})
		s.cancel(l)
	}
	s.left("a", cost(100))
}

func sameKeys(s *stage) {
	s.fail(weir.Invalid, byKey(charge("a", cost(1)), charge("b", cost(1)), charge("a", cost(1))))
	s.left("a", cost(100))
	s.admit(several(charge("a", cost(1)), charge("b", cost(1)), charge("a", cost(1))))
	other := weir.Charge{Entity: "c", Resource: "other", Costs: cost(1)}
	l := s.admit(byKey(charge("c", cost(1)), other))
	s.complete(l, weir.Costs{full("c", "n"): 7})
	s.left("c", cost(93))
}

// familyOfKeys has a parent p that charges of c count on too; the limits of d and e have no n, so
// that theirs count on p alone.
func familyOfKeys() Setup {
	set := system(slow(weir.Bucket, "n", 100))
	bare := map[string][]weir.Limit{resource: {slow(weir.Bucket, "m", 100)}}
	set.Definitions.Entities = map[string]weir.EntityDefinition{
		"p": {}, "c": {Parent: "p", Cascade: true},
		"d": {Parent: "p", Cascade: true, Limits: bare}, "e": {Parent: "p", Cascade: true, Limits: bare},
	}
	return set
}

func sharedAncestor(s *stage) {
	l := s.admit(byKey(charge("e", cost(1)), charge("p", cost(2)), charge("d", cost(4)), charge("c", cost(8))))
	s.left("p", cost(85))
	s.left("c", cost(92))
	s.adjust(l, 1, weir.Costs{full("d", "n"): 14})
	s.left("p", cost(75))
	s.adjust(l, 2, weir.Costs{full("e", "n"): 0})
	s.left("p", cost(76))
	s.adjust(l, 3, weir.Costs{full("p", "n"): 1})
	s.left("p", cost(77))
	s.left("c", cost(92))
	s.complete(l, weir.Costs{full("c", "n"): 3})
	s.left("p", cost(82))
	s.left("c", cost(97))
	l = s.admit(byKey(charge("c", cost(5))))
	s.refusesTotals(weir.Invalid, l, weir.Costs{full("p", "n"): 1})
	s.cancel(l)
	s.left("p", cost(82))
}
