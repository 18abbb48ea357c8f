package conformance

import (
	"time"

	"github.com/weir-limiter/weir"
)

// slotCases are lines 7.8 and 7.9.
func slotCases() []Case {
	ct := timed(weir.Concurrency)
	minute := system(slotsOf("n", 10, time.Minute))
	two := system(slotsOf("n", 10, time.Minute), slotsOf("long", 10, 10*time.Minute))
	return []Case{
		{"an extend renews slots to the millisecond", "7.8", ct, scene(minute, renewsSlots)},
		{"a slot that has timed out stays returned", "7.8", ct, scene(minute, staysReturned)},
		{"an extend renews those that have not timed out", "7.8", ct, scene(two, renewsSome)},
		{"an extend after a shrink renews what is left", "7.8", ct, scene(minute, renewsRest)},
		{"an extend charges nothing", "7.8", only(weir.Bucket, weir.Concurrency),
			scene(system(slow(weir.Bucket, "n", 10), slow(weir.Concurrency, "c", 10)), extendFree)},
		{"slots that have timed out may be named", "7.9", ct, scene(minute, namedLate)},
	}
}

func renewsSlots(s *stage) {
	l := s.admit(ask("a", cost(10)))
	s.Advance(time.Minute - time.Millisecond)
	r := s.extend(l)
	s.instant("holds until", r.HoldsUntil, s.Now().Add(time.Minute))
	s.instant("expires", r.Expires, s.Now().Add(time.Hour))
	s.returns(ask("a", cost(10)), time.Minute)
}

// staysReturned: the slots may be another's by now, and settling does not take them from him.
func staysReturned(s *stage) {
	l := s.admit(ask("a", cost(6)))
	s.Advance(time.Minute)
	r := s.extend(l)
	s.equal("holds until", r.HoldsUntil.IsZero(), true)
	s.instant("expires", r.Expires, s.Now().Add(time.Hour))
	s.left("a", cost(10))
	other := s.admit(ask("a", cost(10)))
	s.extend(l)
	s.left("a", cost(0))
	s.adjust(l, 1, cost(2))
	s.left("a", cost(0))
	s.complete(l)
	s.left("a", cost(0))
	s.complete(other)
	s.left("a", cost(10))
}

func renewsSome(s *stage) {
	l := s.admit(ask("a", weir.Costs{"n": 3, "long": 4}))
	s.Advance(2 * time.Minute)
	s.left("a", weir.Costs{"n": 10, "long": 6})
	r := s.extend(l)
	s.instant("holds until", r.HoldsUntil, s.Now().Add(10*time.Minute))
	s.left("a", weir.Costs{"n": 10, "long": 6})
	s.Advance(10*time.Minute - time.Millisecond)
	s.left("a", weir.Costs{"n": 10, "long": 6})
	s.Advance(time.Millisecond)
	s.left("a", weir.Costs{"n": 10, "long": 10})
}

func renewsRest(s *stage) {
	l := s.admit(ask("a", cost(8)))
	s.Advance(30 * time.Second)
	s.adjust(l, 1, cost(3))
	s.left("a", cost(7))
	s.Advance(20 * time.Second)
	s.extend(l)
	s.left("a", cost(7))
	s.returns(ask("a", cost(8)), time.Minute)
}

func extendFree(s *stage) {
	l := s.admit(ask("a", weir.Costs{"n": 4, "c": 2}))
	for range 5 {
		s.extend(l)
		s.left("a", weir.Costs{"n": 6, "c": 8})
	}
	s.cancel(l)
	s.left("a", weir.Costs{"n": 10, "c": 10})
}

func namedLate(s *stage) {
	l := s.admit(ask("a", cost(6)))
	s.Advance(2 * time.Minute)
	s.admit(ask("a", cost(9)))
	s.refuses(weir.Invalid)(s.Complete(s.Context(), l.ID, []weir.Costs{cost(7)}))
	s.complete(l, cost(6))
	s.left("a", cost(1))
}
