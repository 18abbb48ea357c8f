package conformance

import (
	"math"

	"github.com/weir-limiter/weir"
)

// totalsCases are lines 7.2 to 7.4, 7.10 and 7.11.
func totalsCases() []Case {
	b := only(weir.Bucket)
	mixed := only(weir.Bucket, weir.Concurrency)
	stored := system(slow(weir.Bucket, "n", 100), slow(weir.Bucket, "m", 100))
	slots := system(slow(weir.Bucket, "n", 100), slow(weir.Concurrency, "c", 10))
	counted := Needs{Kinds: []weir.Kind{weir.Window, weir.Budget}}
	cases := append(
		perKind("a complete sets the actuals", "7.2", completeSets),
		Case{"a limit that is not named keeps what it stands for", "7.2", b, scene(stored, unnamedKeeps)},
		Case{"a complete returns every slot", "7.2", mixed, scene(slots, completeSlots)},
		Case{"one set for several charges", "7.4", b, scene(stored, oneSet)},
		Case{"one set for each charge", "7.4", b, scene(stored, setForEach)},
		Case{"a name that was not reserved", "7.4", b, scene(stored, notReserved)},
		Case{"more slots than the lease stands for", "7.4", mixed, scene(slots, moreSlots)},
		Case{"nothing of a refused call is applied", "7.4", mixed, scene(slots, refusedWhole)},
		Case{"nothing of a refused call is applied: buckets", "7.4", b,
			scene(stored, refusedWholeBuckets)},
		Case{"a refused settlement may be repeated", "7.10", b, scene(stored, repeated)},
		Case{"64-bit overflow of a settlement", "7.11", counted, overflowTotals},
		Case{"64-bit overflow of a bucket's debt", "7.11", b, scene(stored, overflowDebt)},
		Case{"64-bit overflow of one sum", "7.11", b, scene(stored, overflowOne)},
	)
	return append(cases, perKind("a cancel gives everything back", "7.3", cancelGives)...)
}

func completeSets(s *stage, k weir.Kind) {
	l := s.admit(ask("a", cost(6)))
	s.complete(l, cost(2))
	want := int64(8)
	if k == weir.Concurrency {
		want = 10
	}
	s.left("a", cost(want))
	s.exactly(ask("a", cost(1)), int(want), 12)
	s.refuses(weir.Ended)(s.Adjust(s.Context(), l.ID, 1, []weir.Costs{cost(1)}))
}

func unnamedKeeps(s *stage) {
	l := s.admit(ask("a", weir.Costs{"n": 10, "m": 20}))
	s.complete(l, weir.Costs{"m": 5})
	s.left("a", weir.Costs{"n": 90, "m": 95})
	l = s.admit(ask("b", weir.Costs{"n": 10, "m": 20}))
	s.adjust(l, 1, weir.Costs{"n": 30})
	s.complete(l)
	s.left("b", weir.Costs{"n": 70, "m": 80})
}

func completeSlots(s *stage) {
	for _, actuals := range [][]weir.Costs{nil, {{"n": 1}}, {{"c": 2}}, {{"c": 0, "n": 0}}, {{"c": 1}}} {
		l := s.admit(ask("a", weir.Costs{"n": 1, "c": 2}))
		s.left("a", weir.Costs{"c": 8})
		s.complete(l, actuals...)
		s.left("a", weir.Costs{"c": 10})
	}
	s.left("a", weir.Costs{"n": 96})
}

func cancelGives(s *stage, k weir.Kind) {
	l := s.admit(ask("a", cost(6)))
	s.cancel(l)
	s.left("a", cost(10))
	l = s.admit(ask("a", cost(6)))
	s.adjust(l, 1, cost(3))
	s.cancel(l)
	s.left("a", cost(10))
	if k != weir.Concurrency {
		l = s.admit(ask("a", cost(6)))
		s.adjust(l, 1, cost(40))
		s.cancel(l)
		s.left("a", cost(10))
	}
	s.exactly(ask("a", cost(1)), 10, 12)
}

func oneSet(s *stage) {
	l := s.admit(several(charge("a", weir.Costs{"n": 10}), charge("b", weir.Costs{"m": 20})))
	s.adjust(l, 1, weir.Costs{"n": 15, "m": 25}) // each belongs to one charge alone
	s.left("a", weir.Costs{"n": 85, "m": 100})
	s.left("b", weir.Costs{"n": 100, "m": 75})
	l = s.admit(several(charge("c", weir.Costs{"n": 10, "m": 1}), charge("d", weir.Costs{"n": 20})))
	s.refuses(weir.Invalid)(s.Adjust(s.Context(), l.ID, 1, []weir.Costs{cost(5)}))
	s.refuses(weir.Invalid)(s.Complete(s.Context(), l.ID, []weir.Costs{cost(5)}))
	s.adjust(l, 1, weir.Costs{"m": 2})
	s.left("c", weir.Costs{"n": 90, "m": 98})
	s.left("d", weir.Costs{"n": 80})
}

func setForEach(s *stage) {
	l := s.admit(several(charge("a", cost(10)), charge("b", cost(20)), charge("a", cost(30))))
	s.left("a", cost(60))
	s.adjust(l, 1, cost(1), weir.Costs{}, cost(2))
	s.left("a", cost(97))
	s.left("b", cost(80))
	s.adjust(l, 2, weir.Costs{}, cost(5), cost(10))
	s.left("a", cost(89))
	s.left("b", cost(95))
	for _, sets := range [][]weir.Costs{
		{cost(1), cost(1)}, {cost(1), cost(1), cost(1), cost(1)},
		{{}, {"m": 1}, {}},
	} {
		s.refuses(weir.Invalid)(s.Complete(s.Context(), l.ID, sets))
	}
	s.complete(l, cost(7), cost(8), weir.Costs{})
	s.left("a", cost(83))
	s.left("b", cost(92))
}

func notReserved(s *stage) {
	l := s.admit(ask("a", cost(10)))
	for _, bad := range []weir.Costs{{"m": 1}, {"m": 0}, {"z": 1}, {"n": 1, "m": 1}, {"n": -1}} {
		s.refuses(weir.Invalid)(s.Adjust(s.Context(), l.ID, 1, []weir.Costs{bad}))
		s.refuses(weir.Invalid)(s.Complete(s.Context(), l.ID, []weir.Costs{bad}))
	}
	s.left("a", weir.Costs{"n": 90, "m": 100})
	s.complete(l)
}

func moreSlots(s *stage) {
	l := s.admit(ask("a", weir.Costs{"c": 4}))
	s.refuses(weir.Invalid)(s.Adjust(s.Context(), l.ID, 1, []weir.Costs{{"c": 5}}))
	s.refuses(weir.Invalid)(s.Complete(s.Context(), l.ID, []weir.Costs{{"c": 5}}))
	s.adjust(l, 1, weir.Costs{"c": 4})
	s.adjust(l, 2, weir.Costs{"c": 2})
	s.left("a", weir.Costs{"c": 8})
	// What was given back is somebody else's by now.
	s.refuses(weir.Invalid)(s.Adjust(s.Context(), l.ID, 3, []weir.Costs{{"c": 3}}))
	s.left("a", weir.Costs{"c": 8})
	s.complete(l, weir.Costs{"c": 2})
	s.left("a", weir.Costs{"c": 10})
}

func refusedWhole(s *stage) {
	l := s.admit(
		several(charge("a", weir.Costs{"n": 10, "c": 2}), charge("b", weir.Costs{"n": 10, "c": 2})),
	)
	for _, bad := range [][]weir.Costs{
		{{"n": 1}, {"c": 3}},
		{{"n": 1, "c": 1}, {"z": 1}},
		{{"n": 1}, {"n": largestBucket + 1}},
		{{"n": 1}, {"n": 1}, {}},
	} {
		s.refuses(weir.Invalid)(s.Adjust(s.Context(), l.ID, 1, bad))
		s.refuses(weir.Invalid)(s.Complete(s.Context(), l.ID, bad))
		for _, e := range []string{"a", "b"} {
			s.left(e, weir.Costs{"n": 90, "c": 8})
		}
	}
	s.complete(l, weir.Costs{"n": 1}, weir.Costs{"n": 2, "c": 1})
	s.left("a", weir.Costs{"n": 99, "c": 10})
	s.left("b", weir.Costs{"n": 98, "c": 10})
}

func refusedWholeBuckets(s *stage) {
	l := s.admit(several(charge("a", weir.Costs{"n": 10, "m": 2}), charge("b", cost(10))))
	for _, bad := range [][]weir.Costs{
		{{"n": 1}, {"m": 3}},
		{{"n": 1, "m": 1}, {"z": 1}},
		{{"n": 1}, {"n": largestBucket + 1}},
		{{"n": 1}, {"n": 1}, {}},
	} {
		s.refuses(weir.Invalid)(s.Adjust(s.Context(), l.ID, 1, bad))
		s.refuses(weir.Invalid)(s.Complete(s.Context(), l.ID, bad))
		s.left("a", weir.Costs{"n": 90, "m": 98})
		s.left("b", weir.Costs{"n": 90})
	}
	s.complete(l, weir.Costs{"n": 1}, weir.Costs{"n": 2})
	s.left("a", weir.Costs{"n": 99, "m": 98})
	s.left("b", weir.Costs{"n": 98})
}

func repeated(s *stage) {
	l := s.admit(ask("a", cost(10)))
	for range 3 {
		s.refuses(weir.Invalid)(s.Complete(s.Context(), l.ID, []weir.Costs{{"n": 1, "m": 1}}))
		s.left("a", cost(90))
	}
	s.complete(l, cost(1))
	s.complete(l, cost(1))
	s.left("a", cost(99))
}

// overflowTotals grows until the sum of two leases passes 2^63.
func overflowTotals(t T, h Harness) {
	for _, k := range []weir.Kind{weir.Window, weir.Budget} {
		scene(system(slow(k, "n", 10), slow(k, "m", 10)), func(s *stage) {
			a, b := s.admit(ask("a", cost(1))), s.admit(ask("a", weir.Costs{"n": 1, "m": 1}))
			s.adjust(a, 1, cost(math.MaxInt64-1))
			s.left("a", cost(10-math.MaxInt64))
			s.refuses(weir.Invalid)(s.Adjust(s.Context(), b.ID, 1, []weir.Costs{{"n": 2, "m": 5}}))
			s.refuses(weir.Invalid)(s.Complete(s.Context(), b.ID, []weir.Costs{{"n": 2, "m": 5}}))
			s.left("a", weir.Costs{"n": 10 - math.MaxInt64, "m": 9})
			s.deny(ask("a", cost(0)))
			s.adjust(b, 1, weir.Costs{"n": 0})
			s.cancel(a)
			s.left("a", weir.Costs{"n": 10, "m": 9})
		})(t, h)
	}
}

func overflowDebt(s *stage) {
	a, b := s.admit(ask("a", cost(0))), s.admit(ask("a", weir.Costs{"n": 0, "m": 1}))
	s.adjust(a, 1, cost(largestBucket))
	s.left("a", cost(100-largestBucket))
	s.refuses(weir.Invalid)(s.Adjust(s.Context(), b.ID, 1, []weir.Costs{{"n": 102, "m": 9}}))
	s.left("a", weir.Costs{"n": 100 - largestBucket, "m": 99})
	s.adjust(b, 1, cost(50))
	s.left("a", cost(50-largestBucket))
	s.cancel(a)
	s.left("a", cost(50))
}

func overflowOne(s *stage) {
	l := s.admit(several(charge("a", cost(1)), charge("a", cost(1))))
	half := int64(largestBucket/2 + 1)
	for _, sets := range [][]weir.Costs{
		{cost(half), cost(half)},
		{cost(math.MaxInt64), cost(math.MaxInt64)},
		{cost(largestBucket + 1), cost(0)},
	} {
		s.refuses(weir.Invalid)(s.Adjust(s.Context(), l.ID, 1, sets))
	}
	s.left("a", cost(98))
	s.adjust(l, 1, cost(half), cost(half-2))
	s.cancel(l)
	s.left("a", cost(100))
}
