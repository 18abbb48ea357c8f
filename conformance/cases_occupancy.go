package conformance

import (
	"time"

	"github.com/weir-limiter/weir"
)

// occupancyCases are lines 2.2 and 2.3.
func occupancyCases() []Case {
	window := system(windowOf("n", 10, time.Minute))
	slots := system(slotsOf("n", 10, time.Minute))
	return []Case{
		{"units of a window return at reserved-at + W", "2.2", timed(weir.Window),
			scene(window, windowReturns)},
		{"a window fits what is not occupied", "2.2", only(weir.Window), scene(window, fitsFree)},
		{"a window slides", "2.2", timed(weir.Window), scene(window, windowSlides)},
		{"settling does not free a window", "2.2", timed(weir.Window), scene(window, settledStays)},
		{"slots return at the timeout", "2.3", timed(weir.Concurrency), scene(slots, slotsTimeOut)},
		{"slots return when the lease is settled", "2.3", only(weir.Concurrency),
			scene(slots, slotsSettled)},
		{"slots fit up to the capacity", "2.3", only(weir.Concurrency), scene(slots, fitsFree)},
		{"amount ignored by concurrency", "2.3", only(weir.Concurrency), scene(slots, slotsCount)},
		{"slots are held from the last extend", "2.3", timed(weir.Concurrency),
			scene(slots, slotsExtended)},
		{"leaked slots", "2.3", only(weir.Concurrency), scene(slots, leakedSlots)},
		{"leaked slots of leases that nobody settled", "2.3", timed(weir.Concurrency),
			scene(slots, abandonedSlots)},
	}
}

func windowReturns(s *stage) {
	s.admit(ask("a", cost(10)))
	s.returns(ask("a", cost(1)), time.Minute)
	s.left("a", cost(9))
}

func fitsFree(s *stage) {
	s.admit(ask("a", cost(4)))
	s.deny(ask("a", cost(7)))
	s.admit(ask("a", cost(6)))
	s.deny(ask("a", cost(1)))
	s.exactly(ask("b", cost(3)), 3, 6)
	s.left("b", cost(1))
}

// windowSlides takes units one by one: each returns for itself, not with a fixed window.
func windowSlides(s *stage) {
	for range 10 {
		s.admit(ask("a", cost(1)))
		s.Advance(5 * time.Second)
	}
	s.left("a", cost(0)) // at 50 s; the first returns at 60 s
	s.returns(ask("a", cost(1)), 10*time.Second)
	for range 9 {
		s.returns(ask("a", cost(1)), 5*time.Second)
	}
	s.returns(ask("a", cost(1)), 15*time.Second) // the second round began at 60 s
}

func settledStays(s *stage) {
	l := s.admit(ask("a", cost(10)))
	s.Advance(10 * time.Second)
	s.complete(l)
	s.returns(ask("a", cost(1)), 50*time.Second)
}

func slotsTimeOut(s *stage) {
	l := s.admit(ask("a", cost(6)))
	s.instant("holds until", l.HoldsUntil, s.Now().Add(time.Minute))
	s.Advance(10 * time.Second)
	s.admit(ask("a", cost(4)))
	s.returns(ask("a", cost(1)), 50*time.Second)
	s.left("a", cost(5))
	s.returns(ask("a", cost(6)), 10*time.Second)
}

func slotsSettled(s *stage) {
	for _, end := range []func(*weir.Lease){
		func(l *weir.Lease) { s.complete(l) },
		func(l *weir.Lease) { s.complete(l, cost(3)) },
		func(l *weir.Lease) { s.cancel(l) },
	} {
		l := s.admit(ask("a", cost(10)))
		s.deny(ask("a", cost(1)))
		end(l)
		s.left("a", cost(10))
	}
}

func slotsCount(s *stage) {
	s.exactly(ask("a", cost(4)), 2, 5)
	s.left("a", cost(2))
	d := s.deny(ask("a", cost(3)))
	s.equal("requested", d.Limits[0].Requested, 3)
	s.admit(ask("a", cost(2)))
	s.deny(ask("a", cost(1)))
}

func slotsExtended(s *stage) {
	l := s.admit(ask("a", cost(10)))
	for range 5 {
		s.Advance(50 * time.Second)
		s.instant("holds until", s.extend(l).HoldsUntil, s.Now().Add(time.Minute))
		s.deny(ask("a", cost(1)))
	}
	s.returns(ask("a", cost(1)), time.Minute)
}

// leakedSlots takes and returns slots in every way many times; none may stay behind.
func leakedSlots(s *stage) {
	for range 20 {
		s.complete(s.admit(ask("a", cost(10))))
		s.cancel(s.admit(ask("a", cost(10))))
		l := s.admit(ask("a", cost(10)))
		s.deny(ask("a", cost(1)))
		s.fail(weir.NeverSatisfiable, ask("a", cost(11)))
		s.adjust(l, 1, cost(3))
		s.extend(l)
		s.complete(l, cost(1))
		s.complete(l, cost(1))
	}
	s.left("a", cost(10))
	s.exactly(ask("a", cost(1)), 10, 12)
}

func abandonedSlots(s *stage) {
	for range 5 {
		l := s.admit(ask("a", cost(10)))
		s.deny(ask("a", cost(1)))
		s.Advance(time.Minute)
		s.left("a", cost(10))
		s.admit(ask("b", cost(1)))
		s.Advance(time.Hour)
		s.refuses(weir.Ended)(s.Cancel(s.Context(), l.ID))
		s.left("a", cost(10))
	}
	s.exactly(ask("a", cost(1)), 10, 12)
}
