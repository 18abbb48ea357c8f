package conformance

import (
	"time"

	"github.com/weir-limiter/weir"
)

// refundCases are line 7.7.
func refundCases() []Case {
	bt := timed(weir.Bucket)
	minute := system(bucketOf("n", 10, 60, time.Minute))
	return append(append([]Case{
		{"R1: balance above capacity after a refund", "7.7", bt, scene(minute, refundCapped)},
		{"R1: balance above capacity after many refunds", "7.7", bt, scene(minute, refundsCapped)},
		{"a refund pays debt", "7.7", only(weir.Bucket),
			scene(system(slow(weir.Bucket, "n", 10)), refundDebt)},
		{"a refund to a past period", "7.7", timed(weir.Budget),
			scene(system(budgetOf("n", 10, "hour", "")), refundPast)},
	}, perKind("double refunds", "7.7", doubleRefunds)...),
		perKind("over-reservation blocking traffic", "7.7", overReservation)...)
}

func refundCapped(s *stage) {
	for _, end := range []func(*weir.Lease){
		func(l *weir.Lease) { s.cancel(l) },
		func(l *weir.Lease) { s.complete(l, cost(0)) },
		func(l *weir.Lease) { s.adjust(l, 1, cost(0)) },
	} {
		l := s.admit(ask("a", cost(8)))
		s.Advance(5 * time.Second)
		s.left("a", cost(7))
		end(l)
		s.left("a", cost(10))
		s.exactly(ask("a", cost(1)), 10, 12)
		s.Advance(time.Minute)
	}
}

func refundsCapped(s *stage) {
	var leases []*weir.Lease
	for range 5 {
		leases = append(leases, s.admit(ask("a", cost(10))))
		s.Advance(10 * time.Second)
	}
	for _, l := range leases {
		s.cancel(l)
		s.left("a", cost(10))
	}
	s.exactly(ask("a", cost(1)), 10, 15)
	s.Advance(time.Second)
	s.exactly(ask("a", cost(1)), 1, 3) // and the refill goes on as it was
}

func refundDebt(s *stage) {
	l := s.admit(ask("a", cost(10)))
	over := s.admit(ask("a", cost(0)))
	s.adjust(over, 1, cost(15))
	s.left("a", cost(-15))
	s.cancel(l)
	s.left("a", cost(-5))
	s.deny(ask("a", cost(0)))
	s.cancel(over)
	s.left("a", cost(10))
}

func refundPast(s *stage) {
	l := s.admit(ask("a", cost(10)))
	s.Advance(time.Hour)
	late := s.admit(ask("a", cost(4)))
	s.extend(late)
	s.refuses(weir.Ended)(s.Cancel(s.Context(), l.ID))
	l = s.admit(ask("a", cost(6)))
	s.Advance(59 * time.Minute)
	s.extend(l)
	s.Advance(time.Minute)
	s.left("a", cost(10))
	s.complete(l, cost(1))
	s.left("a", cost(10)) // nothing was taken in this hour
	s.exactly(ask("a", cost(1)), 10, 12)
}

// doubleRefunds settles in every order that might give back twice.
func doubleRefunds(s *stage, k weir.Kind) {
	s.admit(ask("a", cost(3)))
	l := s.admit(ask("a", cost(5)))
	first := s.cancel(l)
	s.instant("a cancel again", s.cancel(l).At, first.At)
	s.left("a", cost(7))
	s.refuses(weir.Conflict)(s.Complete(s.Context(), l.ID, nil))
	s.left("a", cost(7))
	l = s.admit(ask("a", cost(5)))
	s.adjust(l, 1, cost(0))
	s.adjust(l, 1, cost(0))
	s.left("a", cost(7))
	s.cancel(l)
	s.cancel(l)
	s.left("a", cost(7))
	l = s.admit(ask("a", cost(5)))
	s.complete(l, cost(1))
	s.complete(l, cost(1))
	s.refuses(weir.Conflict)(s.Cancel(s.Context(), l.ID))
	s.refuses(weir.Ended)(s.Adjust(s.Context(), l.ID, 9, []weir.Costs{cost(0)}))
	want := int64(6)
	if k == weir.Concurrency {
		want = 7
	}
	s.left("a", cost(want))
	s.exactly(ask("a", cost(1)), int(want), 9)
}

// overReservation: what was reserved in excess is there for others at once.
func overReservation(s *stage, k weir.Kind) {
	l := s.admit(ask("a", cost(10)))
	s.deny(ask("a", cost(1)))
	s.complete(l, cost(2))
	want := 8
	if k == weir.Concurrency {
		want = 10
	}
	s.exactly(ask("a", cost(1)), want, 12)
}
