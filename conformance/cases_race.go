package conformance

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/weir-limiter/weir"
)

// raceCases returns the cases with concurrent calls.
func raceCases() []Case {
	b := only(weir.Bucket)
	cascade := Needs{Kinds: b.Kinds, Depth: 1}
	stored := system(slowLimit(weir.Bucket, "n", 1000))
	hundred := []weir.Limit{slowLimit(weir.Bucket, "n", 100)}
	cases := []Case{
		{"calls with one ID are charged once", "6.6", b, onWorld(stored, oneIDReserve)},
		{"calls with one ID and several contents", "6.6", b, onWorld(stored, oneIDContents)},
		{"adjusts with one ID", "6.6", b, onWorld(stored, oneIDAdjust)},
		{"completes and cancels with one ID", "6.6", b, onWorld(stored, oneIDSettle)},
		{"a reserve and a cancel at once leave nothing", "6.7", b,
			onWorld(system(slowLimit(weir.Bucket, "n", 100)), voidAtOnce)},
		{"no reader sees a part", "3.1", Needs{Kinds: b.Kinds, Exact: true},
			onWorld(system(slowLimit(weir.Bucket, "n", 1000), slowLimit(weir.Bucket, "m", 1000)), bothLimitsAtOnce)},
		{"charges in opposite order", "3.1", b, onWorld(system(hundred...), oppositeOrder)},
		{"concurrent requests that together pass a parent's limit", "3.1", cascade,
			onWorld(Setup{Definitions: childAndParent([]weir.Limit{slowLimit(weir.Bucket, "n", 1000)}, hundred)},
				togetherParent)},
	}
	for _, k := range allKinds() {
		cases = append(cases, Case{"concurrent requests that together pass a limit: " + string(k), "3.1",
			only(k), onWorld(system(slowLimit(k, "n", 100)), concurrentReserves)},
			Case{"a shrink is never free for others: " + string(k), "7.6", only(k),
				onWorld(system(slowLimit(k, "n", 100)), shrinkHeld)})
	}
	return cases
}

// bothLimitsAtOnce takes and gives back units of two limits together. Every status shows the same
// use of both.
func bothLimitsAtOnce(s *caseWorld) {
	both := ask("a", weir.Costs{"n": 1, "m": 1})
	concurrently(4, func(i int) {
		for range 50 {
			if i == 0 {
				statuses, err := s.Status(s.Context(), "a", resource)
				if err != nil || statuses[0].Available != statuses[1].Available {
					s.Errorf("got %v, %v, want both limits alike", statuses, err)
				}
			} else if l, err := s.Reserve(s.Context(), both); err != nil {
				if !s.h.MayContend || !isContended(err) {
					s.Errorf("reserve: %v", err)
				}
			} else if _, err := s.Cancel(s.Context(), l.ID); err != nil {
				s.Errorf("cancel: %v", err)
			}
			runtime.Gosched()
		}
	})
	s.expectAvailable("a", weir.Costs{"n": 1000, "m": 1000})
}

// concurrently runs f in n goroutines and waits for them. f must not end the case. The goroutines
// begin together: they yield until all of them run instead of sleeping, because on a busy machine
// some could be done before the one that wakes the others has woken them all.
func concurrently(n int, f func(i int)) {
	var running atomic.Int64
	var done sync.WaitGroup
	for i := range n {
		done.Go(func() {
			for running.Add(1); running.Load() < int64(n); {
				runtime.Gosched()
			}
			f(i)
		})
	}
	done.Wait()
}

// outcomeCounts counts outcomes. Its methods may be called concurrently.
type outcomeCounts struct {
	admitted, denied, other atomic.Int64
	lastOther               atomic.Value // the last error that was no denial
}

func (c *outcomeCounts) count(err error) {
	switch {
	case err == nil:
		c.admitted.Add(1)
	case isDenial(err):
		c.denied.Add(1)
	default:
		c.other.Add(1)
		c.lastOther.Store(err.Error())
	}
}

// untilDenied makes a request until it has been denied five times, at most 100 times. No caller is
// done before the limit is used up, so that all of them compete for its last units.
func (s *caseWorld) untilDenied(c *outcomeCounts, r *weir.Request) {
	for calls, denied := 0, 0; calls < 100 && denied < 5; calls++ {
		_, err := s.Reserve(s.Context(), r)
		c.count(err)
		if err != nil {
			denied++
		}
		runtime.Gosched()
	}
}

// finally judges how many of several concurrent requests, each for one unit, were admitted. If the
// store may deny concurrent calls that would fit, it first asks for the rest again, one request
// after the other.
func (s *caseWorld) finally(c *outcomeCounts, r *weir.Request, ideal int) {
	s.Helper()
	if n := c.other.Load(); n > 0 {
		s.Errorf("%d errors, the last is %v", n, c.lastOther.Load())
	}
	got := int(c.admitted.Load())
	s.Logf("admitted %d and denied %d at once", got, c.denied.Load())
	if s.h.mayDenyEarly() {
		if got == 0 {
			s.Fatalf("admitted none of the requests that were made at once")
		}
		got += s.drain(r, ideal)
	}
	s.admitted(got, ideal)
}

func concurrentReserves(s *caseWorld) {
	var c outcomeCounts
	concurrently(8, func(int) { s.untilDenied(&c, ask("a", cost(1))) })
	s.finally(&c, ask("a", cost(1)), 100)
	s.expectAvailable("a", cost(0))
}

func togetherParent(s *caseWorld) {
	var c outcomeCounts
	concurrently(8, func(i int) {
		e := "child"
		if i%2 == 1 {
			e = "parent"
		}
		s.untilDenied(&c, ask(e, cost(1)))
	})
	s.finally(&c, ask("parent", cost(1)), 100)
	s.expectAvailable("parent", cost(0))
}

// oppositeOrder checks that two requests that charge the same entities in opposite order do not
// block one another and leave nothing behind.
func oppositeOrder(s *caseWorld) {
	var c outcomeCounts
	concurrently(8, func(i int) {
		first, second := "a", "b"
		if i%2 == 1 {
			first, second = second, first
		}
		s.untilDenied(&c, several(charge(first, cost(1)), charge(second, cost(1))))
	})
	s.finally(&c, several(charge("a", cost(1)), charge("b", cost(1))), 100)
	s.expectAvailable("a", cost(0))
	s.expectAvailable("b", cost(0))
}

func oneIDReserve(s *caseWorld) {
	for range 20 {
		r := with(weir.NewLeaseID(s.Now()), ask("a", cost(3)))
		before := s.available("a", "n")
		var c outcomeCounts
		concurrently(8, func(int) {
			l, err := s.Reserve(s.Context(), r)
			c.count(err)
			if err == nil && l.Limits[0].Available != before-3 {
				s.Errorf("got %d available in an answer, want %d", l.Limits[0].Available, before-3)
			}
		})
		s.equal("admitted", c.admitted.Load(), 8)
		s.expectAvailable("a", cost(before-3))
	}
}

func oneIDContents(s *caseWorld) {
	for range 20 {
		id := weir.NewLeaseID(s.Now())
		before := s.available("a", "n")
		var winner atomic.Int64
		concurrently(8, func(i int) {
			_, err := s.Reserve(s.Context(), with(id, ask("a", cost(int64(i+1)))))
			if err == nil {
				winner.Add(int64(i + 1))
			} else if !errors.Is(err, weir.Conflict) {
				s.Errorf("got %v, want a conflict", err)
			}
		})
		s.expectAvailable("a", cost(before-winner.Load()))
		s.done(s.Cancel(s.Context(), id))
		s.expectAvailable("a", cost(before))
	}
}

// oneIDAdjust checks that the adjust with the highest sequence number counts in the end, in
// whatever order they come.
func oneIDAdjust(s *caseWorld) {
	for range 20 {
		l := s.admit(ask("a", cost(1)))
		concurrently(8, func(i int) {
			totals := []weir.Costs{cost(int64(10 * i))}
			if _, err := s.Adjust(s.Context(), l.ID, int64(i+1), totals); err != nil {
				s.Errorf("adjust: %v", err)
			}
		})
		s.expectAvailable("a", cost(930))
		s.cancel(l)
	}
}

func oneIDSettle(s *caseWorld) {
	for range 20 {
		l := s.admit(ask("a", cost(5)))
		before := s.available("a", "n")
		var completed, cancelled outcomeCounts
		concurrently(8, func(i int) {
			if i%2 == 0 {
				_, err := s.Complete(s.Context(), l.ID, []weir.Costs{cost(2)})
				completed.count(err)
			} else {
				_, err := s.Cancel(s.Context(), l.ID)
				cancelled.count(err)
			}
		})
		got := []int64{completed.admitted.Load(), cancelled.admitted.Load(), s.available("a", "n") - before}
		if got[0] == 4 {
			s.equal("completes, cancels, returned", got, []int64{4, 0, 3})
		} else {
			s.equal("completes, cancels, returned", got, []int64{0, 4, 5})
		}
	}
}

// shrinkHeld shrinks a lease step by step while other callers ask for the units that it holds.
func shrinkHeld(s *caseWorld) {
	l := s.admit(ask("a", cost(100)))
	var c outcomeCounts
	concurrently(4, func(i int) {
		for step := range 50 {
			if i > 0 {
				_, err := s.Reserve(s.Context(), ask("a", cost(1)))
				c.count(err)
			} else if _, err := s.Adjust(s.Context(), l.ID, int64(step+1),
				[]weir.Costs{cost(int64(99 - step))}); err != nil {
				s.Errorf("adjust: %v", err)
			}
			runtime.Gosched()
		}
	})
	s.equal("errors", c.other.Load(), 0)
	admitted := c.admitted.Load()
	s.Logf("admitted %d of the 50 that were given back", admitted)
	s.expectAvailable("a", cost(50-admitted))
	s.exactly(ask("a", cost(1)), int(50-admitted), 55)
}

// voidAtOnce checks that a lease that is reserved and cancelled at the same time holds nothing,
// whichever comes first.
func voidAtOnce(s *caseWorld) {
	for range 50 {
		r := with(weir.NewLeaseID(s.Now()), ask("a", cost(3)))
		concurrently(6, func(i int) {
			var err error
			if i%2 == 0 {
				_, err = s.Reserve(s.Context(), r)
			} else {
				_, err = s.Cancel(s.Context(), r.LeaseID)
			}
			if err != nil && !errors.Is(err, weir.Ended) && !errors.Is(err, weir.UnknownLease) {
				s.Errorf("call %d: %v", i, err)
			}
		})
		s.fail(weir.Ended, r)
	}
	s.expectAvailable("a", cost(100))
}
