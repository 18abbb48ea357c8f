package conformance

import (
	"math"
	"time"

	"github.com/weir-limiter/weir"
)

// shadowCases are line 3.6, and what others say of shadow limits.
func shadowCases() []Case {
	var cases []Case
	for _, k := range allKinds() {
		set := system(shadowed(slow(k, "n", 10)), slow(weir.Bucket, "real", 10))
		needs := Needs{Kinds: only(weir.Bucket, k).Kinds, Shadow: true}
		cases = append(cases,
			Case{"a shadow limit never denies: " + string(k), "3.6", needs,
				scene(set, shadowNeverDenies)},
			Case{"a shadow limit is settled: " + string(k), "3.6", needs,
				scene(set, func(s *stage) { shadowSettled(s, k) })},
			Case{"a full shadow limit refuses nobody: " + string(k), "3.6", needs,
				scene(set, func(s *stage) { shadowFull(s, k) })})
		if k != weir.Concurrency { // slots do not grow
			cases = append(cases, Case{
				"a full shadow limit holds up no settlement: " + string(k), "7.11",
				needs, scene(set, func(s *stage) { shadowHoldsUp(s, k) }),
			})
		}
	}
	mixed := system(shadowed(bucketOf("n", 10, 1, time.Minute)), bucketOf("real", 10, 60, time.Minute))
	waits := timed(weir.Bucket)
	waits.Shadow = true
	return append(cases,
		Case{"a shadow limit's wait does not count", "4.1", waits, scene(mixed, shadowWait)},
		Case{"the largest shadow bucket", "1.1", Needs{Kinds: waits.Kinds, Shadow: true},
			scene(system(shadowed(slow(weir.Bucket, "n", 10))), shadowLargest)})
}

func shadowLargest(s *stage) {
	s.fail(weir.Invalid, ask("b", cost(largestBucket+1)))
	s.admit(ask("b", cost(largestBucket)))
}

func shadowNeverDenies(s *stage) {
	l := s.admit(ask("a", cost(7)))
	s.equal("shadow", l.Limits[0].Shadow, true)
	s.equal("exceeded", l.Limits[0].Exceeded, false)
	s.left("a", cost(3))
	l = s.admit(ask("a", cost(6))) // over the capacity
	s.equal("exceeded", l.Limits[0].Exceeded, true)
	s.equal("available", l.Limits[0].Available, -3)
	s.left("a", cost(-3))
	l = s.admit(ask("a", cost(25))) // above what it could ever hold
	s.equal("exceeded", l.Limits[0].Exceeded, true)
	s.equal("retry-after of what can never be", l.Limits[0].RetryAfter, time.Duration(0))
	s.left("a", cost(-28))
	s.admit(ask("a", cost(0)))
	s.exactly(ask("a", weir.Costs{"n": 1, "real": 1}), 10, 12) // the real one still denies
	s.left("a", weir.Costs{"n": -38, "real": 0})
	d := s.deny(ask("a", weir.Costs{"n": 1, "real": 1}))
	s.equal("judged", exceeded(d.Limits), []string{"n", "real"})
}

func shadowSettled(s *stage, k weir.Kind) {
	l := s.admit(ask("a", cost(15)))
	s.left("a", cost(-5))
	s.adjust(l, 1, cost(4))
	s.left("a", cost(6))
	s.cancel(l)
	s.left("a", cost(10))
	if k != weir.Concurrency {
		s.complete(s.admit(ask("a", cost(1))), cost(30))
		s.left("a", cost(-20))
	}
}

// mostOf is the largest cost that a limit of a kind takes.
func mostOf(k weir.Kind) int64 {
	if k == weir.Bucket {
		return largestBucket
	}
	return math.MaxInt64
}

// shadowFull: one caller must not be able to stop the others with a limit that never denies.
func shadowFull(s *stage, k weir.Kind) {
	most := mostOf(k)
	left := 10 - most
	s.admit(ask("a", cost(most)))
	s.left("a", cost(left))
	named := s.admit(ask("a", weir.Costs{"n": most, "real": 4}))
	s.extend(named)
	s.complete(named, weir.Costs{"n": 0, "real": 2})
	s.left("a", weir.Costs{"n": left, "real": 8})
	named = s.admit(ask("a", weir.Costs{"n": most, "real": 4}))
	s.adjust(named, 1, weir.Costs{"n": most, "real": 0}) // what it names was not counted, and is no mistake
	s.complete(named, weir.Costs{"n": most, "real": 0})
	s.left("a", weir.Costs{"n": left, "real": 8})
	l := s.admit(ask("a", weir.Costs{"n": most, "real": 1}))
	s.equal("exceeded", s.of(l.Limits, "a", "n").Exceeded, true)
	s.equal("requested", s.of(l.Limits, "a", "n").Requested, most)
	s.equal("available after it", s.of(l.Limits, "a", "n").Available, left)
	s.left("a", weir.Costs{"n": left, "real": 7})
	s.cancel(l) // gives back nothing of what was not counted
	s.left("a", weir.Costs{"n": left, "real": 8})
	s.exactly(ask("a", weir.Costs{"n": most, "real": 1}), 8, 12)
	s.left("a", weir.Costs{"n": left, "real": 0})
}

func shadowHoldsUp(s *stage, k weir.Kind) {
	l := s.admit(ask("a", weir.Costs{"n": 2, "real": 5}))
	most := mostOf(k)
	s.admit(ask("a", cost(most-2)))
	left := s.look("a", "n")
	s.adjust(l, 1, weir.Costs{"n": most, "real": 3})
	s.left("a", weir.Costs{"n": left, "real": 7})
	s.adjust(l, 2, weir.Costs{"n": 1, "real": 3}) // a shrink is counted
	s.left("a", weir.Costs{"n": left + 1, "real": 7})
	s.complete(l, weir.Costs{"n": most, "real": 4})
	s.left("a", weir.Costs{"n": left + 1, "real": 6})
}

func shadowWait(s *stage) {
	s.admit(ask("a", weir.Costs{"n": 10, "real": 10}))
	d := s.deny(ask("a", weir.Costs{"n": 5, "real": 1}))
	s.equal("retry-after", d.RetryAfter, time.Second)
	st := s.of(d.Limits, "a", "n")
	s.equal("wait of the shadow limit", st.RetryAfter, 5*time.Minute)
	s.Advance(time.Second)
	s.admit(ask("a", weir.Costs{"n": 5, "real": 1}))
}
