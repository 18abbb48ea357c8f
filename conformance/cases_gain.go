package conformance

import (
	"math"
	"time"

	"github.com/weir-limiter/weir"
)

const century = 100 * 365 * day

// gainCases returns the cases that compare waits with the definition of a bucket's gain in line
// 2.1, millisecond by millisecond.
func gainCases() []Case {
	exact := timed(weir.Bucket)
	odd := system(bucketOf("n", 10, 7, time.Minute))
	tenADay := system(bucketOf("n", 10, 10, day), bucketOf("fast", 5, 60, time.Minute))
	return []Case{
		{"a wait is rounded up", "1.4", exact, onWorld(odd, waitRounded)},
		{"the gain is by absolute time", "2.1", exact,
			onWorld(system(bucketOf("n", 100, 7, time.Minute)).from(begin().Add(123*time.Millisecond)),
				absoluteGain)},
		{"S1: starvation of slow limits", "2.1", exact, onWorld(tenADay, starvation)},
		{"S1: starvation by touching", "2.1", exact, onWorld(tenADay, touching)},
		{"a bucket waits until the balance is reached", "4.2", exact,
			onWorld(system(bucketOf("n", 10, 3, time.Second)), bucketWaits)},
		{"a wait over 292 years is 292 years", "4.3", exact,
			onWorld(system(bucketOf("n", 10, 1, century)), longWait)},
	}
}

// credit returns the floor of t·r/p, in milli-units. It does not guard against overflow.
func credit(l weir.Limit, ms int64) int64 {
	return ms * l.RefillAmount * 1000 / l.RefillPeriod.Milliseconds()
}

// firstGain returns the wait from an instant to the first millisecond by which a bucket has gained
// a number of milli-units. It tries every millisecond.
func firstGain(l weir.Limit, from, milli int64) time.Duration {
	at := from
	for credit(l, at)-credit(l, from) < milli {
		at++
	}
	return time.Duration(at-from) * time.Millisecond
}

// waitRounded checks the first millisecond at which 7 units a minute have become one unit, for
// several phases.
func waitRounded(s *caseWorld) {
	l := bucketOf("n", 10, 7, time.Minute)
	s.admit(ask("a", cost(10)))
	for range 20 {
		now := s.Now().UnixMilli()
		s.expectRetryAfter(ask("a", cost(1)), firstGain(l, now, 1000))
	}
}

// absoluteGain asks at instants at which floor(t1·r/p) − floor(t0·r/p) and floor((t1−t0)·r/p)
// differ.
func absoluteGain(s *caseWorld) {
	l := bucketOf("n", 100, 7, time.Minute)
	s.admit(ask("a", cost(100)))
	emptied := s.Now()
	for taken := range int64(12) {
		// The balance is the gain up to then, less the whole units taken.
		wait := firstGain(l, emptied.UnixMilli(), (taken+1)*1000)
		s.expectRetryAfter(ask("a", cost(1)), emptied.Add(wait).Sub(s.Now()))
	}
}

// starvation checks a slow limit beside a fast one that is charged all the time. Each charge comes
// before the slow limit has gained a milli-unit.
func starvation(s *caseWorld) {
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
	s.expectRetryAfter(ask("a", cost(1)), 2*time.Millisecond)
}

// touching makes requests that the slow limit denies, again and again, and asks for its status.
func touching(s *caseWorld) {
	l := bucketOf("n", 10, 10, day)
	s.admit(ask("a", cost(10)))
	wait := firstGain(l, s.Now().UnixMilli(), 1000)
	for left := wait - 2*time.Millisecond; left > 0; left -= 149_003 * time.Millisecond {
		s.Advance(min(left, 149_003*time.Millisecond))
		s.deny(ask("a", weir.Costs{"n": 1, "fast": 1}))
		s.expectAvailable("a", cost(0))
	}
	s.expectRetryAfter(ask("a", cost(1)), 2*time.Millisecond)
}

func bucketWaits(s *caseWorld) {
	l := bucketOf("n", 10, 3, time.Second)
	s.admit(ask("a", cost(10)))
	emptied := s.Now().UnixMilli()
	for _, n := range []int64{1, 4, 10} {
		now := s.Now().UnixMilli()
		spare := (credit(l, now) - credit(l, emptied)) % 1000 // only whole units have been taken
		s.expectRetryAfter(ask("a", cost(n)), firstGain(l, now, n*1000-spare))
	}
}

func longWait(s *caseWorld) {
	s.admit(ask("a", cost(10)))
	// The first millisecond at which the credit is 2,000 more than now.
	l, now := bucketOf("n", 10, 1, century), s.Now().UnixMilli()
	at := (credit(l, now)+2000)*century.Milliseconds()/1000 + 1
	want := time.Duration(at-now) * time.Millisecond
	if got := s.deny(ask("a", cost(2))).RetryAfter; (got - want).Abs() > time.Millisecond {
		s.Fatalf("retry-after of about 200 years: got %v, want %v", got, want)
	}
	for _, n := range []int64{3, 10} {
		s.equal("retry-after", s.deny(ask("a", cost(n))).RetryAfter, time.Duration(math.MaxInt64))
	}
	deep := s.admit(ask("a", cost(0)))
	s.adjust(deep, 1, cost(largestBucket))
	wait := s.deny(ask("a", cost(1))).RetryAfter
	s.equal("retry-after in deep debt", wait, time.Duration(math.MaxInt64))
}
