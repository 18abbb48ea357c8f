package conformance

import (
	"time"

	"github.com/weir-limiter/weir"
)

// skewCases are line 1.3: clocks that step back.
func skewCases() []Case {
	skewed := func(k weir.Kind) Needs { return Needs{Kinds: []weir.Kind{k}, Skew: true, Exact: true} }
	minute := system(bucketOf("n", 60, 60, time.Minute))
	window := system(windowOf("n", 10, time.Minute))
	slots := system(slotsOf("n", 10, time.Minute))
	hour := time.Date(2025, 6, 18, 11, 59, 30, 0, time.UTC)
	return []Case{
		{"C1: clock skew of two callers", "1.3", skewed(weir.Bucket), scene(minute, twoClocks)},
		{"C1: clock skew gains nothing", "1.3", skewed(weir.Bucket), scene(minute, skewGains)},
		{"an earlier now is taken as the latest", "1.3", skewed(weir.Bucket), scene(minute, standsStill)},
		{"a denial is seen too", "1.3", skewed(weir.Bucket), scene(minute, denialSeen)},
		{"C1: clock skew of a window", "1.3", skewed(weir.Window), scene(window, skewWindow)},
		{"C1: clock skew of slots", "1.3", skewed(weir.Concurrency), scene(slots, skewSlots)},
		{"C1: clock skew of a budget", "1.3", skewed(weir.Budget),
			scene(system(budgetOf("n", 10, "hour", "")).from(hour), skewBudget)},
		{"a settlement under an earlier now", "1.3", skewed(weir.Window), scene(window, skewSettle)},
		{"C1: clock skew and IDs ahead", "1.3", skewed(weir.Bucket), scene(minute, skewAhead)},
		{"C1: clock skew that is mended", "1.3", skewed(weir.Bucket), scene(minute, skewMended)},
		{"C1: clock skew of leases", "1.3", skewed(weir.Bucket), scene(minute, skewLease)},
	}
}

// twoClocks lets two callers ask in turn whose clocks are five seconds apart, for twenty seconds.
func twoClocks(s *stage) {
	const apart = 5 * time.Second
	milli, seen, ideal, got := int64(60_000), s.Now().UnixMilli(), 0, 0
	once := func() {
		now := max(seen, s.Now().UnixMilli())
		milli, seen = min(60_000, milli+now-seen), now // a milli-unit in each millisecond
		if milli >= 1000 {
			milli -= 1000
			ideal++
		}
		if s.try(ask("a", cost(1))) {
			got++
		}
	}
	for range 200 {
		once()
		s.Advance(apart)
		once()
		s.Advance(100*time.Millisecond - apart)
	}
	s.admitted(got, ideal)
}

func skewGains(s *stage) {
	s.admit(ask("a", cost(60)))
	for range 10 {
		s.Advance(-30 * time.Second)
		s.left("a", cost(0))
		s.deny(ask("a", cost(1)))
		s.Advance(30 * time.Second)
		s.deny(ask("a", cost(1)))
	}
	s.returns(ask("a", cost(1)), time.Second)
}

func standsStill(s *stage) {
	s.Advance(10 * time.Second)
	s.admit(ask("a", cost(60)))
	s.Advance(-10 * time.Second)
	// Until the clock has caught up nothing is gained; the wait is told by the caller's clock.
	s.returns(ask("a", cost(2)), 12*time.Second)
}

func denialSeen(s *stage) {
	s.admit(ask("a", cost(60)))
	s.Advance(3 * time.Second)
	s.deny(ask("a", cost(5)))
	s.Advance(-2 * time.Second)
	s.left("a", cost(3))
	s.admit(ask("a", cost(3)))
	s.deny(ask("a", cost(1)))
	s.Advance(2 * time.Second)
	s.returns(ask("a", cost(1)), time.Second)
}

func skewWindow(s *stage) {
	s.Advance(30 * time.Second)
	s.admit(ask("a", cost(4)))
	s.Advance(-30 * time.Second)
	s.admit(ask("a", cost(6))) // counts as taken 30 seconds from now
	s.returns(ask("a", cost(1)), 90*time.Second)
	s.left("a", cost(9))
}

func skewSlots(s *stage) {
	s.Advance(30 * time.Second)
	s.admit(ask("a", cost(4)))
	s.Advance(-30 * time.Second)
	l := s.admit(ask("a", cost(6)))
	s.Advance(30 * time.Second)
	s.extend(l)
	s.Advance(-20 * time.Second)
	s.extend(l)
	s.returns(ask("a", cost(1)), 80*time.Second)
	s.left("a", cost(9))
}

func skewBudget(s *stage) {
	s.admit(ask("a", cost(7)))
	s.Advance(time.Minute)
	s.left("a", cost(10))
	s.admit(ask("a", cost(8)))
	s.Advance(-time.Minute) // the new hour stays
	s.deny(ask("a", cost(3)))
	s.admit(ask("a", cost(2)))
	s.returns(ask("a", cost(1)), time.Hour+30*time.Second)
}

func skewSettle(s *stage) {
	l := s.admit(ask("a", cost(4)))
	s.Advance(70 * time.Second)
	s.admit(ask("a", cost(1)))
	s.Advance(-20 * time.Second) // before the first 4 return: but they have
	s.adjust(l, 1, cost(9))      // 5 more, until a minute after the latest instant
	s.Advance(20 * time.Second)
	s.left("a", cost(4))
	s.returns(ask("a", cost(5)), time.Minute)
}

func skewLease(s *stage) {
	first, second := weir.NewLeaseID(s.Now()), weir.NewLeaseID(s.Now())
	s.admit(with(first, ask("a", cost(1))))
	s.admit(with(second, ask("a", cost(1))))
	s.Advance(time.Hour)
	s.refuses(weir.Ended)(s.Cancel(s.Context(), first))
	s.left("a", cost(60)) // a call that does not look at the other lease
	s.Advance(-30 * time.Second)
	s.refuses(weir.Ended)(s.Cancel(s.Context(), second))
	s.fail(weir.Ended, with(second, ask("a", cost(1))))
	s.fail(weir.Ended, with(first, ask("a", cost(1))))
}

// skewAhead: what is too far ahead is told by the latest instant that any call has brought.
func skewAhead(s *stage) {
	ahead := weir.NewLeaseID(s.Now().Add(100 * time.Second))
	s.fail(weir.Invalid, with(ahead, ask("a", cost(1))))
	s.Advance(50 * time.Second)
	s.left("a", cost(60))
	s.Advance(-50 * time.Second)
	s.admit(with(ahead, ask("a", cost(1))))
}

// skewMended: a clock that was a day ahead is put right; the lease table does not stay a day ahead.
func skewMended(s *stage) {
	s.Advance(day)
	s.admit(ask("a", cost(1)))
	s.Advance(-day)
	l := s.admit(with(weir.NewLeaseID(s.Now()), ask("b", cost(1))))
	s.cancel(l)
	s.left("b", cost(60))
}
