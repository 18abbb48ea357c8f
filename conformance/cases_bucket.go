package conformance

import (
	"time"

	"github.com/weir-limiter/weir"
)

const day = 24 * time.Hour

// bucketCases are line 2.1.
func bucketCases() []Case {
	exact := timed(weir.Bucket)
	odd := bucketOf("n", 100, 7, time.Minute)
	tenADay := system(bucketOf("n", 10, 10, day), bucketOf("fast", 5, 60, time.Minute))
	return []Case{
		{"a cost fits up to the balance", "2.1", only(weir.Bucket),
			scene(system(slow(weir.Bucket, "n", 10)), fitsBalance)},
		{"a bucket regains up to its capacity", "2.1", exact,
			scene(system(bucketOf("n", 10, 60, time.Minute)), upToCapacity)},
		{"refill and capacity are two numbers", "2.1", exact,
			scene(system(bucketOf("n", 10, 4, 2*time.Second)), refillRate)},
		{"the gain is by absolute time", "2.1", exact,
			scene(system(odd).from(begin().Add(123*time.Millisecond)), absoluteGain)},
		{"debt is paid by the refill", "2.1", exact,
			scene(system(bucketOf("n", 10, 60, time.Minute)), debtPaid)},
		{"S1: starvation of slow limits", "2.1", exact, scene(tenADay, starvation)},
		{"S1: starvation by touching", "2.1", exact, scene(tenADay, touching)},
		{"S2: refill dropped", "2.1", exact,
			scene(system(bucketOf("n", 100, 1, time.Second), bucketOf("fast", 200, 10, time.Second)),
				refillDropped)},
	}
}

func fitsBalance(s *stage) {
	s.deny(exceeding(s, ask("a", cost(10)), ask("a", cost(1))))
	s.admit(ask("b", cost(4)))
	s.deny(ask("b", cost(7)))
	s.admit(ask("b", cost(6)))
	s.exactly(ask("c", cost(3)), 3, 6)
	s.left("c", cost(1))
}

// exceeding admits a first request and returns the second.
func exceeding(s *stage, first, second *weir.Request) *weir.Request {
	s.Helper()
	s.admit(first)
	return second
}

func upToCapacity(s *stage) {
	s.admit(ask("a", cost(10)))
	s.Advance(9 * time.Second)
	s.left("a", cost(9))
	s.Advance(3 * time.Second)
	s.left("a", cost(10))
	s.Advance(time.Hour)
	s.left("a", cost(10))
	s.exactly(ask("a", cost(1)), 10, 15)
}

func refillRate(s *stage) {
	s.admit(ask("a", cost(10)))
	s.Advance(499 * time.Millisecond)
	s.left("a", cost(0))
	s.Advance(time.Millisecond)
	s.left("a", cost(1))
	s.returns(ask("a", cost(3)), time.Second)
	s.returns(ask("a", cost(10)), 5*time.Second)
}

// absoluteGain asks at instants at which floor(t1·r/p) − floor(t0·r/p) and floor((t1−t0)·r/p) differ.
func absoluteGain(s *stage) {
	l := bucketOf("n", 100, 7, time.Minute)
	s.admit(ask("a", cost(100)))
	spent := s.Now().UnixMilli()
	for i := range 12 {
		// The balance is what was gained since the bucket was emptied, less the whole units taken.
		at := spent
		for credit(l, at)-credit(l, spent) < int64(i+1)*1000 {
			at++
		}
		s.returns(ask("a", cost(1)), time.Duration(at-s.Now().UnixMilli())*time.Millisecond)
	}
}

func debtPaid(s *stage) {
	l := s.admit(ask("a", cost(10)))
	s.complete(l, cost(25))
	s.left("a", cost(-15))
	s.returns(ask("a", cost(1)), 16*time.Second)
}

// starvation spends beside a fast limit that is touched all the time. Each touch comes before a
// milli-unit of the slow limit has gathered.
func starvation(s *stage) {
	l := bucketOf("n", 10, 10, day)
	s.admit(ask("a", weir.Costs{"n": 10, "fast": 1}))
	spent := s.Now().UnixMilli()
	wait := firstGain(l, spent, 1000)
	touches := 0
	for left := wait - 2*time.Millisecond; left > 0; left -= 7001 * time.Millisecond {
		s.Advance(min(left, 7001*time.Millisecond))
		s.admit(ask("a", weir.Costs{"n": 0, "fast": 1}))
		touches++
	}
	s.Logf("%d touches in %v", touches, wait)
	s.returns(ask("a", cost(1)), 2*time.Millisecond)
}

// touching denies the slow limit itself all the time, and asks for its status.
func touching(s *stage) {
	l := bucketOf("n", 10, 10, day)
	s.admit(ask("a", cost(10)))
	wait := firstGain(l, s.Now().UnixMilli(), 1000)
	for left := wait - 2*time.Millisecond; left > 0; left -= 29_003 * time.Millisecond {
		s.Advance(min(left, 29_003*time.Millisecond))
		s.deny(ask("a", weir.Costs{"n": 1, "fast": 1}))
		s.left("a", cost(0))
	}
	s.returns(ask("a", cost(1)), 2*time.Millisecond)
}

// refillDropped judges a limit that has enough beside one that has not: both must gain.
func refillDropped(s *stage) {
	both := weir.Costs{"n": 1, "fast": 200}
	s.admit(ask("a", weir.Costs{"n": 50, "fast": 200}))
	for range 3 {
		s.Advance(5 * time.Second)
		s.deny(ask("a", both))
	}
	s.Advance(5 * time.Second)
	s.left("a", weir.Costs{"n": 70, "fast": 200})
	s.admit(ask("a", both))
	s.Advance(10 * time.Second)
	s.admit(ask("a", weir.Costs{"n": 1}))
	s.left("a", weir.Costs{"n": 78, "fast": 100})
}
