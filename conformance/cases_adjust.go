package conformance

import (
	"time"

	"github.com/weir-limiter/weir"
)

// adjustCases are line 7.1.
func adjustCases() []Case {
	cascade := Needs{Kinds: []weir.Kind{weir.Bucket}, Depth: 1}
	stored := system(slow(weir.Bucket, "n", 100), slow(weir.Bucket, "m", 100))
	n := func(capacity int64) []weir.Limit { return []weir.Limit{slow(weir.Bucket, "n", capacity)} }
	pair := Setup{Definitions: family(n(100), n(100))}
	return append([]Case{
		{"sequence numbers", "7.1", only(weir.Bucket), scene(stored, sequences)},
		{"a replay answers like the last one applied", "7.1", timed(weir.Bucket),
			scene(stored, adjustReplays)},
		{"a refused call uses no number up", "7.1", only(weir.Bucket), scene(stored, refusedNumber)},
		{"the lease counts its numbers", "7.1", only(weir.Bucket), scene(stored, leaseCounts)},
		{"totals reach every ancestor", "7.1", cascade, scene(pair, totalsCascade)},
		{"only the limits named change", "7.1", only(weir.Bucket), scene(stored, namedChange)},
	}, perKind("totals are what the lease stands for", "7.1", totalsAbsolute)...)
}

func sequences(s *stage) {
	l := s.admit(ask("a", cost(10)))
	s.adjust(l, 1, cost(20))
	s.left("a", cost(80))
	s.adjust(l, 1, cost(50)) // a replay, whatever it says
	s.left("a", cost(80))
	s.adjust(l, 7, cost(30)) // a gap is fine
	s.left("a", cost(70))
	for seq := int64(1); seq <= 7; seq++ {
		s.adjust(l, seq, cost(99))
		s.left("a", cost(70))
	}
	s.adjust(l, 1<<62, cost(5))
	s.left("a", cost(95))
	for _, seq := range []int64{0, -1, -1 << 63} {
		s.refuses(weir.Invalid)(s.Adjust(s.Context(), l.ID, seq, []weir.Costs{cost(1)}))
	}
	s.cancel(l)
	s.left("a", cost(100))
}

func adjustReplays(s *stage) {
	l := s.admit(ask("a", cost(10)))
	s.Advance(time.Second)
	r := s.adjust(l, 5, cost(20))
	s.instant("applied", r.At, s.Now())
	s.Advance(time.Second)
	for _, seq := range []int64{5, 4, 1} {
		again := s.adjust(l, seq, cost(30))
		s.instant("again", again.At, r.At)
		s.instant("expires", again.Expires, l.Expires)
	}
	later := s.adjust(l, 6, cost(20))
	s.instant("applied", later.At, s.Now())
}

func refusedNumber(s *stage) {
	l := s.admit(ask("a", cost(10)))
	s.refuses(weir.Invalid)(s.Adjust(s.Context(), l.ID, 3, []weir.Costs{{"z": 1}}))
	s.refuses(weir.Invalid)(s.Adjust(s.Context(), l.ID, 3, []weir.Costs{cost(-1)}))
	s.refuses(weir.Invalid)(s.Adjust(s.Context(), l.ID, 3, []weir.Costs{cost(largestBucket + 1)}))
	s.adjust(l, 2, cost(20))
	s.left("a", cost(80))
	s.adjust(l, 3, cost(30))
	s.left("a", cost(70))
}

func leaseCounts(s *stage) {
	l := s.admit(ask("a", cost(10)))
	for i := range int64(5) {
		s.done(l.Adjust(s.Context(), cost(10+i)))
		s.left("a", cost(90-i))
	}
	s.done(l.Extend(s.Context()))
	s.done(l.Complete(s.Context(), cost(1)))
	s.left("a", cost(99))
	s.refuses(weir.Conflict)(l.Cancel(s.Context()))
}

func totalsCascade(s *stage) {
	l := s.admit(ask("child", cost(10)))
	s.adjust(l, 1, cost(30))
	s.left("child", cost(70))
	s.left("parent", cost(70))
	s.adjust(l, 2, cost(3))
	s.left("child", cost(97))
	s.left("parent", cost(97))
	s.complete(l, cost(4))
	s.left("child", cost(96))
	s.left("parent", cost(96))
}

func namedChange(s *stage) {
	l := s.admit(ask("a", weir.Costs{"n": 10, "m": 20}))
	s.adjust(l, 1, weir.Costs{"m": 5})
	s.left("a", weir.Costs{"n": 90, "m": 95})
	s.adjust(l, 2)
	s.adjust(l, 3, weir.Costs{})
	s.left("a", weir.Costs{"n": 90, "m": 95})
	s.adjust(l, 4, weir.Costs{"n": 0})
	s.left("a", weir.Costs{"n": 100, "m": 95})
}

// totalsAbsolute: totals are not differences, and several adjusts do not add up.
func totalsAbsolute(s *stage, k weir.Kind) {
	l := s.admit(ask("a", cost(8)))
	for i, n := range []int64{6, 6, 2, 2, 1, 0} {
		s.adjust(l, int64(i+1), cost(n))
		s.left("a", cost(10-n))
	}
	if k != weir.Concurrency {
		s.adjust(l, 10, cost(9))
		s.left("a", cost(1))
	}
	s.exactly(ask("a", cost(1)), int(s.look("a", "n")), 12)
}
