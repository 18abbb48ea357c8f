package conformance

import (
	"math"
	"time"

	"github.com/weir-limiter/weir"
)

// largestBucket is the most units that a bucket holds.
const largestBucket = 9_223_372_036_854_775

// numberCases are section 1, but for clocks that step.
func numberCases() []Case {
	counted := []weir.Kind{weir.Window, weir.Concurrency, weir.Budget}
	huge := Needs{Kinds: counted}
	halves := system(bucketOf("n", 10, 60, time.Minute))
	return append([]Case{
		{"the largest bucket", "1.1", only(weir.Bucket),
			scene(system(slow(weir.Bucket, "n", largestBucket)), largest)},
		{"amounts above 2^53 stay exact", "1.1", only(weir.Bucket),
			scene(system(slow(weir.Bucket, "n", 1<<53+3)), aboveFloats)},
		{"64-bit overflow does not admit", "1.1", huge, overflowAdmits},
		{"64-bit overflow of a sum of charges", "1.1", Needs{}, overflowSum},
		{"an instant counts to the millisecond it falls in", "1.2", timed(weir.Window, weir.Concurrency),
			scene(system(windowOf("w", 1, 10*time.Second), slotsOf("c", 5, 30*time.Second)), millisecond)},
		{"receipts are at a millisecond", "1.2", timed(weir.Concurrency),
			scene(system(slotsOf("c", 5, 30*time.Second)), receiptsAt)},
		{"available is rounded down", "1.4", timed(weir.Bucket), scene(halves, roundedDown)},
		{"debt is rounded down too", "1.4", timed(weir.Bucket), scene(halves, debtRounded)},
		{"a wait is rounded up", "1.4", timed(weir.Bucket),
			scene(system(bucketOf("n", 10, 7, time.Minute)), waitRounded)},
	}, perKind("V1: negative costs", "1.1", negativeCosts)...)
}

func largest(s *stage) {
	s.admit(ask("a", cost(largestBucket)))
	s.left("a", cost(0))
	s.deny(ask("a", cost(1)))
	above := slow(weir.Bucket, "n", largestBucket+1)
	s.refused(weir.Invalid, s.Configure(everybody(above)))
	for _, n := range []int64{largestBucket + 1, math.MaxInt64} {
		s.fail(weir.NeverSatisfiable, ask("b", cost(n)))
	}
}

// aboveFloats uses numbers that no float holds.
func aboveFloats(s *stage) {
	s.admit(ask("a", cost(2)))
	s.left("a", cost(1<<53+1))
	s.admit(ask("a", cost(1)))
	s.left("a", cost(1<<53))
	s.deny(ask("a", cost(1<<53+1)))
	s.admit(ask("a", cost(1<<53)))
	s.deny(ask("a", cost(1)))
}

// overflowAdmits asks for so much that the use and the cost together pass 2^63.
func overflowAdmits(t T, h Harness) {
	for _, k := range []weir.Kind{weir.Window, weir.Concurrency, weir.Budget} {
		scene(system(slow(k, "n", math.MaxInt64)), func(s *stage) {
			s.admit(ask("a", cost(math.MaxInt64-1)))
			s.deny(ask("a", cost(2)))
			s.deny(ask("a", cost(math.MaxInt64)))
			s.admit(ask("a", cost(1)))
			s.left("a", cost(0))
			s.deny(ask("a", cost(1)))
		})(t, h)
	}
}

func overflowSum(t T, h Harness) {
	for _, k := range h.Traits.Kinds {
		scene(system(slow(k, "n", 10)), func(s *stage) {
			big := charge("a", cost(math.MaxInt64))
			s.fail(weir.NeverSatisfiable, several(big, big))
			s.fail(weir.NeverSatisfiable, several(big, big, charge("a", cost(2))))
			s.left("a", cost(10))
		})(t, h)
	}
}

func millisecond(s *stage) {
	s.Advance(900 * time.Microsecond)
	base := s.Now().Truncate(time.Millisecond)
	l := s.admit(ask("a", weir.Costs{"w": 1}))
	s.instant("reserved at", l.ReservedAt, base)
	s.instant("expires", l.Expires, base.Add(time.Hour))
	s.instant("holds until", l.HoldsUntil, base.Add(30*time.Second))
	s.Advance(10*time.Second - 901*time.Microsecond) // a microsecond before the millisecond
	d := s.deny(ask("a", weir.Costs{"w": 1}))
	s.equal("retry-after", d.RetryAfter, time.Millisecond)
	s.Advance(time.Microsecond)
	s.admit(ask("a", weir.Costs{"w": 1}))
}

func receiptsAt(s *stage) {
	l := s.admit(ask("a", weir.Costs{"c": 1}))
	s.Advance(1700 * time.Microsecond)
	at := s.Now().Truncate(time.Millisecond)
	s.instant("adjust", s.adjust(l, 1, weir.Costs{"c": 1}).At, at)
	r := s.extend(l)
	s.instant("extend", r.At, at)
	s.instant("holds until", r.HoldsUntil, at.Add(30*time.Second))
	s.instant("expires", r.Expires, at.Add(time.Hour))
	s.instant("complete", s.complete(l).At, at)
}

func roundedDown(s *stage) {
	s.admit(ask("a", cost(10)))
	s.Advance(1999 * time.Millisecond)
	s.left("a", cost(1))
	s.equal("available in a denial", s.deny(ask("a", cost(2))).Limits[0].Available, 1)
	s.Advance(time.Millisecond)
	s.left("a", cost(2))
}

func debtRounded(s *stage) {
	l := s.admit(ask("a", cost(10)))
	s.adjust(l, 1, cost(12))
	s.left("a", cost(-2))
	s.Advance(time.Millisecond)
	s.left("a", cost(-2))
	s.Advance(999 * time.Millisecond)
	s.left("a", cost(-1))
	s.Advance(time.Millisecond)
	s.left("a", cost(-1))
	s.Advance(999 * time.Millisecond)
	s.left("a", cost(0))
}

// waitRounded finds the first millisecond at which 7 units a minute have become one, for several
// phases.
func waitRounded(s *stage) {
	l := bucketOf("n", 10, 7, time.Minute)
	s.admit(ask("a", cost(10)))
	for range 20 {
		now := s.Now().UnixMilli()
		s.returns(ask("a", cost(1)), firstGain(l, now, 1000))
	}
}

// firstGain is the wait from an instant at which a bucket is empty to the first millisecond at which
// it has gained so many milli-units, found by looking at each.
func firstGain(l weir.Limit, from, milli int64) time.Duration {
	at := from
	for credit(l, at)-credit(l, from) < milli {
		at++
	}
	return time.Duration(at-from) * time.Millisecond
}

// credit is the floor of t·r/p, in milli-units. The numbers of the cases that use it are small.
func credit(l weir.Limit, ms int64) int64 {
	return ms * l.RefillAmount * 1000 / l.RefillPeriod.Milliseconds()
}

func negativeCosts(s *stage, _ weir.Kind) {
	s.admit(ask("a", cost(4)))
	e := s.fail(weir.Invalid, ask("a", cost(-1)))
	s.equal("field", e.Field, "costs.n")
	s.fail(weir.Invalid, ask("a", cost(math.MinInt64)))
	s.fail(weir.Invalid, several(charge("a", cost(5)), charge("a", cost(-1))))
	s.left("a", cost(6))
	s.exactly(ask("a", cost(1)), 6, 8)
}
