package conformance

import (
	"time"

	"github.com/weir-limiter/weir"
)

// growing are the kinds of which a lease may come to stand for more.
func growing() []weir.Kind { return []weir.Kind{weir.Bucket, weir.Window, weir.Budget} }

// growthCases are lines 7.5 and 7.6.
func growthCases() []Case {
	wt := timed(weir.Window)
	window := system(windowOf("n", 10, time.Minute))
	cases := append(
		perKindOf(growing(), "growth is never denied", "7.5", growthAdmitted),
		perKindOf(growing(), "overrun not counted", "7.5", overrunCounted)...)
	cases = append(cases,
		Case{"a bucket pays its debt first", "7.5", timed(weir.Bucket),
			scene(system(bucketOf("n", 10, 60, time.Minute)), debtFirst)},
		Case{"an over-full window stays so until the units return", "7.5", wt, scene(window, overFull)},
		Case{"grown units of a window return with the first", "7.5", wt, scene(window, grownWith)},
		Case{"units learned of after those have returned count from then", "7.5", wt,
			scene(window, grownLate)},
		Case{"a window of which nothing was reserved grows until its end", "7.5", wt,
			scene(window, grownFromNothing)},
		Case{"a shrink takes what was added last", "7.6", wt, scene(window, lastFirst)},
		Case{"what stays keeps its end", "7.6", wt, scene(window, keepsEnd)},
		Case{"what has returned does not return again", "7.6", wt, scene(window, returnsOnce)},
		Case{"double refunds of returned units", "7.6", wt, scene(window, refundReturned)},
		Case{"growing again after units returned", "7.6", wt, scene(window, growsAgain)},
	)
	return append(cases, perKind("a shrink frees at once", "7.6", shrinkFrees)...)
}

func growthAdmitted(s *stage, _ weir.Kind) {
	l := s.admit(ask("a", cost(5)))
	s.admit(ask("a", cost(5)))
	for i, n := range []int64{8, 20, 1000, 21} {
		s.adjust(l, int64(i+1), cost(n))
		s.left("a", cost(5-n))
		s.deny(ask("a", cost(0)))
	}
	s.adjust(l, 10, cost(2))
	s.exactly(ask("a", cost(1)), 3, 5)
}

// overrunCounted: what was used over the reservation is charged, however it is learned of.
func overrunCounted(s *stage, _ weir.Kind) {
	s.complete(s.admit(ask("a", cost(3))), cost(8))
	s.left("a", cost(2))
	s.exactly(ask("a", cost(1)), 2, 4)
	s.complete(s.admit(ask("b", cost(10))), cost(14))
	s.left("b", cost(-4))
	s.deny(ask("b", cost(0)))
	l := s.admit(ask("c", cost(0)))
	s.adjust(l, 1, cost(6))
	s.complete(l)
	s.left("c", cost(4))
}

func debtFirst(s *stage) {
	s.complete(s.admit(ask("a", cost(10))), cost(13))
	s.Advance(2 * time.Second)
	s.left("a", cost(-1))
	s.deny(ask("a", cost(0)))
	s.returns(ask("a", cost(0)), time.Second)
	s.returns(ask("a", cost(1)), time.Second)
}

func overFull(s *stage) {
	l := s.admit(ask("a", cost(10)))
	s.Advance(20 * time.Second)
	s.adjust(l, 1, cost(25)) // all until 60 s
	s.left("a", cost(-15))
	s.returns(ask("a", cost(0)), 40*time.Second)
	s.left("a", cost(10))
}

func grownWith(s *stage) {
	l := s.admit(ask("a", cost(4)))
	s.Advance(20 * time.Second)
	s.adjust(l, 1, cost(9))
	s.left("a", cost(1))
	s.Advance(30 * time.Second)
	s.complete(l, cost(10))
	s.returns(ask("a", cost(1)), 10*time.Second)
	s.left("a", cost(9))
}

func grownLate(s *stage) {
	l := s.admit(ask("a", cost(4)))
	s.Advance(time.Minute)
	s.adjust(l, 1, cost(9)) // 5 until 120 s
	s.left("a", cost(5))
	s.Advance(30 * time.Second)
	s.complete(l, cost(10)) // 1 until 150 s
	s.returns(ask("a", cost(5)), 30*time.Second)
	s.returns(ask("a", cost(5)), 30*time.Second)
}

func grownFromNothing(s *stage) {
	l := s.admit(ask("a", cost(0)))
	s.Advance(20 * time.Second)
	s.adjust(l, 1, cost(10))
	s.returns(ask("a", cost(1)), 40*time.Second)
}

func lastFirst(s *stage) {
	l := s.admit(ask("a", cost(4)))
	s.Advance(20 * time.Second)
	s.Advance(40 * time.Second)
	s.adjust(l, 1, cost(9)) // 5 until 120 s
	s.Advance(10 * time.Second)
	s.adjust(l, 2, cost(6)) // 2 until 120 s
	s.left("a", cost(8))
	s.admit(ask("a", cost(1)))
	s.returns(ask("a", cost(8)), 50*time.Second)
}

func keepsEnd(s *stage) {
	l := s.admit(ask("a", cost(10)))
	s.Advance(50 * time.Second)
	s.adjust(l, 1, cost(7))
	s.left("a", cost(3))
	s.exactly(ask("a", cost(1)), 3, 5)
	s.Advance(5 * time.Second)
	s.complete(l, cost(6))
	s.left("a", cost(1))
	s.returns(ask("a", cost(7)), 5*time.Second)
	s.left("a", cost(0))
}

func returnsOnce(s *stage) {
	l := s.admit(ask("a", cost(4)))
	s.Advance(time.Minute)
	s.admit(ask("a", cost(10)))
	s.adjust(l, 1, cost(1))
	s.left("a", cost(0))
	s.cancel(l)
	s.left("a", cost(0))
	s.returns(ask("a", cost(1)), time.Minute)
}

// refundReturned shrinks a lease of which a part has returned: only the other part comes back.
func refundReturned(s *stage) {
	l := s.admit(ask("a", cost(4)))
	s.Advance(time.Minute)
	s.adjust(l, 1, cost(9)) // the first 4 have returned
	s.Advance(10 * time.Second)
	s.admit(ask("a", cost(5)))
	s.left("a", cost(0))
	s.adjust(l, 2, cost(7))
	s.left("a", cost(2))
	s.adjust(l, 3, cost(4))
	s.left("a", cost(5))
	s.adjust(l, 4, cost(0))
	s.left("a", cost(5))
	s.cancel(l)
	s.exactly(ask("a", cost(1)), 5, 7)
}

func growsAgain(s *stage) {
	l := s.admit(ask("a", cost(4)))
	s.Advance(time.Minute)
	s.adjust(l, 1, cost(7)) // 3 more; the 4 have returned
	s.left("a", cost(7))
	s.Advance(30 * time.Second)
	s.adjust(l, 2, cost(5))
	s.left("a", cost(9))
	s.adjust(l, 3, cost(9))
	s.left("a", cost(5))
	s.returns(ask("a", cost(6)), 30*time.Second)
}

func shrinkFrees(s *stage, _ weir.Kind) {
	l := s.admit(ask("a", cost(10)))
	s.deny(ask("a", cost(1)))
	s.adjust(l, 1, cost(7))
	s.exactly(ask("a", cost(1)), 3, 5)
	s.adjust(l, 2, cost(2))
	s.exactly(ask("a", cost(1)), 5, 7)
}
