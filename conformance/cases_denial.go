package conformance

import (
	"math"
	"time"

	"github.com/weir-limiter/weir"
)

const century = 100 * 365 * day

// denialCases are section 4.
func denialCases() []Case {
	all := timed(allKinds()...)
	bucket, window, slots, budget := timed(weir.Bucket), timed(weir.Window), timed(weir.Concurrency),
		timed(weir.Budget)
	four := system(bucketOf("b", 10, 60, time.Minute), windowOf("w", 10, 20*time.Second),
		slotsOf("c", 10, 30*time.Second), budgetOf("u", 10, "hour", ""))
	two := system(bucketOf("b", 10, 60, time.Minute), bucketOf("m", 10, 6, time.Minute))
	return []Case{
		{"a retry-after is the longest of the exceeded", "4.1", all, scene(four, longestWait)},
		{"a retry-after is the longest of the buckets", "4.1", bucket, scene(two, longestBucket)},
		{"a retry-after is exact over several limits", "4.1", all, scene(four, severalWaits)},
		{"a retry-after is exact over several charges", "4.1", bucket,
			scene(system(bucketOf("b", 10, 60, time.Minute)), chargesWait)},
		{"a bucket waits until the balance is reached", "4.2", bucket,
			scene(system(bucketOf("n", 10, 3, time.Second)), bucketWaits)},
		{"a window waits for several to return", "4.2", window,
			scene(system(windowOf("n", 10, time.Minute)), windowWaits)},
		{"slots wait for several to time out", "4.2", slots,
			scene(system(slotsOf("n", 10, time.Minute)), slotsWait)},
		{"a budget waits for the next period", "4.2", budget,
			scene(system(budgetOf("n", 10, "day", "Europe/Berlin")), budgetWaits)},
		{"a bucket in debt waits longer", "4.2", bucket,
			scene(system(bucketOf("n", 10, 60, time.Minute)), debtWaits)},
		{
			"a wait over 292 years is 292 years",
			"4.3",
			bucket,
			scene(system(bucketOf("n", 10, 1, century)), longWait),
		},
	}
}

func longestWait(s *stage) {
	s.admit(ask("a", weir.Costs{"b": 10, "w": 10, "c": 10, "u": 10}))
	for _, w := range []struct {
		costs weir.Costs
		want  time.Duration
	}{
		{weir.Costs{"b": 5, "c": 0}, 5 * time.Second},
		{weir.Costs{"b": 5, "w": 0, "c": 0}, 5 * time.Second}, // w is full, and nothing is asked of it
		{weir.Costs{"b": 5, "w": 1, "c": 0}, 20 * time.Second},
		{weir.Costs{"b": 5, "w": 1}, 30 * time.Second}, // a slot too
		{weir.Costs{"b": 5, "u": 1, "c": 0}, time.Hour},
	} {
		d := s.deny(ask("a", w.costs))
		s.equal("retry-after", d.RetryAfter, w.want)
		judged := len(w.costs)
		if !named(w.costs) {
			judged++
		}
		s.equal("judged", len(d.Limits), judged)
		for _, st := range d.Limits {
			s.equal(
				st.Limit+" exceeded",
				st.Exceeded,
				w.costs[st.Limit] > 0 || st.Limit == "c" && !named(w.costs),
			)
		}
	}
}

func longestBucket(s *stage) {
	s.admit(ask("a", weir.Costs{"b": 10, "m": 10}))
	for _, w := range []struct {
		b, m int64
		want time.Duration
	}{
		{5, 0, 5 * time.Second}, {5, 1, 10 * time.Second}, {2, 3, 30 * time.Second},
		{0, 1, 10 * time.Second},
	} {
		d := s.deny(ask("a", weir.Costs{"b": w.b, "m": w.m}))
		s.equal("retry-after", d.RetryAfter, w.want)
		s.equal("exceeded", []bool{d.Limits[0].Exceeded, d.Limits[1].Exceeded},
			[]bool{w.b > 0, w.m > 0})
	}
	s.returns(ask("a", weir.Costs{"b": 5, "m": 1}), 10*time.Second)
	s.left("a", weir.Costs{"b": 5, "m": 0})
}

func named(c weir.Costs) bool {
	_, ok := c["c"]
	return ok
}

func severalWaits(s *stage) {
	s.admit(ask("a", weir.Costs{"b": 10, "w": 3, "c": 2}))
	s.Advance(4 * time.Second)
	s.admit(ask("a", weir.Costs{"b": 4, "w": 7, "c": 8}))
	s.returns(ask("a", weir.Costs{"b": 10, "w": 3, "c": 2}), 26*time.Second) // the first slots
	s.returns(ask("a", weir.Costs{"b": 1, "w": 1, "c": 8}), 4*time.Second)   // the later ones
}

func chargesWait(s *stage) {
	s.admit(several(charge("a", weir.Costs{"b": 10}), charge("b", weir.Costs{"b": 7})))
	s.returns(several(charge("b", weir.Costs{"b": 9}), charge("a", weir.Costs{"b": 2})), 6*time.Second)
}

func bucketWaits(s *stage) {
	l := bucketOf("n", 10, 3, time.Second)
	s.admit(ask("a", cost(10)))
	for _, n := range []int64{1, 4, 10} {
		spent := s.Now().UnixMilli()
		// What was left of a milli-unit when the last one was taken is less than a milli-unit.
		at := spent
		for credit(l, at)-credit(l, spent) < n*1000-s.spare(l, spent) {
			at++
		}
		s.returns(ask("a", cost(n)), time.Duration(at-spent)*time.Millisecond)
	}
}

// spare is what the balance holds above whole units, known from the instants alone: the bucket was
// emptied at the start, and only whole units were taken since.
func (s *stage) spare(l weir.Limit, at int64) int64 {
	return (credit(l, at) - credit(l, begin().UnixMilli())) % 1000
}

func windowWaits(s *stage) {
	for _, n := range []int64{2, 3, 5} {
		s.admit(ask("a", cost(n)))
		s.Advance(10 * time.Second)
	}
	for n, want := range map[int64]time.Duration{1: 30, 2: 30, 3: 40, 5: 40, 6: 50, 10: 50} {
		s.equal("retry-after", s.deny(ask("a", cost(n))).RetryAfter, want*time.Second)
	}
	s.returns(ask("a", cost(4)), 40*time.Second)
}

func slotsWait(s *stage) {
	var first *weir.Lease
	for i, n := range []int64{2, 3, 5} {
		l := s.admit(ask("a", cost(n)))
		if i == 0 {
			first = l
		}
		s.Advance(10 * time.Second)
	}
	s.extend(first) // now they return last
	for n, want := range map[int64]time.Duration{1: 40, 3: 40, 4: 50, 8: 50, 9: 60, 10: 60} {
		s.equal("retry-after", s.deny(ask("a", cost(n))).RetryAfter, want*time.Second)
	}
	s.returns(ask("a", cost(9)), 60*time.Second)
}

func budgetWaits(s *stage) {
	s.admit(ask("a", cost(7)))
	// It is 14:00 in Berlin.
	s.equal("retry-after", s.deny(ask("a", cost(4))).RetryAfter, 10*time.Hour)
	s.returns(ask("a", cost(10)), 10*time.Hour)
	s.returns(ask("a", cost(1)), 24*time.Hour)
}

func debtWaits(s *stage) {
	l := s.admit(ask("a", cost(10)))
	s.adjust(l, 1, cost(70))
	d := s.deny(ask("a", cost(0)))
	s.equal("retry-after of 0", d.RetryAfter, time.Minute)
	s.returns(ask("a", cost(10)), 70*time.Second)
}

func longWait(s *stage) {
	s.admit(ask("a", cost(10)))
	// The first millisecond at which the credit is what it is now and 2,000 more.
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
	s.equal(
		"retry-after in deep debt",
		s.deny(ask("a", cost(1))).RetryAfter,
		time.Duration(math.MaxInt64),
	)
}
