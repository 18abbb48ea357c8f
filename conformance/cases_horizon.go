package conformance

import (
	"time"

	"github.com/weir-limiter/weir"
)

// horizonCases are lines 6.2 and 6.4.
func horizonCases() []Case {
	bt := timed(weir.Bucket)
	stored := system(slow(weir.Bucket, "n", 100))
	brief := stored.under(weir.Options{LeaseMemory: 20 * time.Second})
	small := stored.under(weir.Options{LeaseMemorySize: 3})
	bounded := stored.under(weir.Options{MaxLeases: 10, MaxLeasesPerCaller: 3})
	callers := bt
	callers.Callers = true
	return []Case{
		{"IDs from before the table opened", "6.2", bt, scene(stored, beforeOpening)},
		{"IDs older than the lease memory", "6.2", bt, scene(brief, olderThanMemory)},
		{"IDs that may have been forgotten early", "6.2", bt, scene(small, forgottenEarly)},
		{"a forgotten lease is not charged twice", "6.2", bt, scene(small, neverTwice)},
		{"ended leases are remembered for ten minutes", "6.4", bt, scene(stored, remembered)},
		{"ended leases are remembered as the option says", "6.4", bt, scene(brief, rememberedShortly)},
		{"an ID ahead is remembered after its own time", "6.4", bt, scene(stored, rememberedAhead)},
		{"a full memory forgets the oldest", "6.4", bt, scene(small, forgetsOldest)},
		{"live leases are not forgotten", "6.4", bt, scene(small, liveKept)},
		{"one caller's IDs refuse no other's", "6.8", callers, scene(small, onlyTheFlooder)},
		{"live leases are bounded", "6.9", callers, scene(bounded, boundedLeases)},
		{"the live leases of a caller are bounded", "6.9", callers, scene(bounded, boundedShare)},
	}
}

// onlyTheFlooder: a caller whose leases fill the memory, with IDs ahead of the clock, moves its own
// horizon and makes the limiter forget its own leases.
func onlyTheFlooder(s *stage) {
	good := weir.ContextWithCaller(s.Context(), "good")
	bad := weir.ContextWithCaller(s.Context(), "bad")
	mine := with(weir.NewLeaseID(s.Now()), ask("a", cost(1)))
	settle := func(r *weir.Request) {
		l, err := s.Reserve(good, r)
		if err == nil {
			_, err = s.Complete(good, l.ID, nil)
		}
		if err != nil {
			s.Fatalf("the other caller: got %v", err)
		}
	}
	settle(mine)
	for i := range 20 {
		r := with(weir.NewLeaseID(s.Now().Add(time.Duration(38+i)*time.Second)), ask("a", cost(0)))
		if l, err := s.Reserve(bad, r); err == nil {
			_, _ = s.Cancel(bad, l.ID)
		}
	}
	_, err := s.Reserve(good, mine)
	s.refused(weir.Ended, err)
	settle(with(weir.NewLeaseID(s.Now()), ask("a", cost(1))))
	s.left("a", cost(98))
}

// boundedLeases: above the bound nothing is reserved, and a lease that ends makes room.
func boundedLeases(s *stage) {
	var leases []*weir.Lease
	for range 10 {
		leases = append(leases, s.admit(ask("a", cost(1))))
	}
	s.fail(weir.Overloaded, ask("a", cost(1)))
	s.fail(weir.Overloaded, with(weir.NewLeaseID(s.Now()), ask("a", cost(0))))
	s.left("a", cost(90))
	s.complete(leases[0])
	s.admit(ask("a", cost(1)))
	s.fail(weir.Overloaded, ask("a", cost(1)))
	s.Advance(time.Hour) // they expire
	s.admit(with(weir.NewLeaseID(s.Now()), ask("a", cost(1))))
}

// boundedShare: a caller with its share of the live leases leaves the others theirs.
func boundedShare(s *stage) {
	one := weir.ContextWithCaller(s.Context(), "one")
	other := weir.ContextWithCaller(s.Context(), "other")
	for range 3 {
		if _, err := s.Reserve(one, ask("a", cost(1))); err != nil {
			s.Fatalf("got %v", err)
		}
	}
	_, err := s.Reserve(one, ask("a", cost(1)))
	s.refused(weir.Overloaded, err)
	if _, err := s.Reserve(other, ask("a", cost(1))); err != nil {
		s.Fatalf("another caller: got %v", err)
	}
	s.left("a", cost(96))
}

func beforeOpening(s *stage) {
	opened := s.Now().Truncate(time.Millisecond)
	s.fail(weir.Invalid, with(weir.NewLeaseID(opened.Add(-time.Millisecond)), ask("a", cost(1))))
	s.admit(with(weir.NewLeaseID(opened), ask("a", cost(1))))
	s.Advance(5 * time.Minute)
	s.fail(weir.Invalid, with(weir.NewLeaseID(opened.Add(-time.Millisecond)), ask("a", cost(1))))
	s.admit(with(weir.NewLeaseID(opened), ask("a", cost(1))))
	s.left("a", cost(98))
}

func olderThanMemory(s *stage) {
	s.Advance(time.Minute)
	s.fail(
		weir.Invalid,
		with(weir.NewLeaseID(s.Now().Add(-20_001*time.Millisecond)), ask("a", cost(1))),
	)
	s.admit(with(weir.NewLeaseID(s.Now().Add(-20*time.Second)), ask("a", cost(1))))
	s.left("a", cost(99))
}

// settled makes leases that are completed at once, a second apart.
func (s *stage) settled(n int) []*weir.Request {
	var requests []*weir.Request
	for range n {
		r := with(weir.NewLeaseID(s.Now()), ask("a", cost(1)))
		s.complete(s.admit(r))
		requests = append(requests, r)
		s.Advance(time.Second)
	}
	return requests
}

func forgottenEarly(s *stage) {
	r := s.settled(5) // two are forgotten, at 0 s and 1 s
	s.fail(weir.Invalid, with(weir.NewLeaseID(r[1].LeaseID.Time()), ask("a", cost(1))))
	s.fail(weir.Invalid, with(weir.NewLeaseID(r[0].LeaseID.Time()), ask("a", cost(1))))
	later := weir.NewLeaseID(r[1].LeaseID.Time().Add(time.Millisecond))
	s.admit(with(later, ask("a", cost(1))))
	s.left("a", cost(94))
}

func neverTwice(s *stage) {
	requests := s.settled(20)
	for _, r := range requests {
		if _, err := s.Reserve(s.Context(), r); err == nil {
			s.Fatalf("lease %v of %s was reserved twice", r.LeaseID, r.LeaseID.Time())
		} else if isDenial(err) {
			s.Fatalf("lease %v: got a denial, want an error", r.LeaseID)
		}
	}
	s.left("a", cost(80))
}

func remembered(s *stage) {
	r := with(weir.NewLeaseID(s.Now()), ask("a", cost(4)))
	l := s.admit(r)
	s.Advance(30 * time.Minute)
	done := s.complete(l, cost(2))
	s.Advance(10 * time.Minute)
	s.instant("replay", s.complete(l, cost(2)).At, done.At)
	s.fail(weir.Ended, r)
	s.Advance(time.Millisecond)
	s.refuses(weir.UnknownLease)(s.Complete(s.Context(), l.ID, []weir.Costs{cost(2)}))
	s.fail(weir.Invalid, r)
	s.left("a", cost(98))
}

func rememberedShortly(s *stage) {
	r := with(weir.NewLeaseID(s.Now()), ask("a", cost(4)))
	s.cancel(s.admit(r))
	s.Advance(20 * time.Second)
	s.fail(weir.Ended, r)
	s.Advance(time.Millisecond)
	s.fail(weir.Invalid, r)
	s.refuses(weir.UnknownLease)(s.Cancel(s.Context(), r.LeaseID))
}

// rememberedAhead: an ID may be a minute ahead of the clock. It is remembered until the horizon has
// passed it, or it could be used again.
func rememberedAhead(s *stage) {
	r := with(weir.NewLeaseID(s.Now().Add(time.Minute)), ask("a", cost(4)))
	s.complete(s.admit(r))
	s.Advance(11 * time.Minute)
	s.fail(weir.Ended, r)
	s.Advance(time.Millisecond)
	s.fail(weir.Invalid, r)
	s.left("a", cost(96))
}

func forgetsOldest(s *stage) {
	r := s.settled(3)
	for i := range r {
		s.fail(weir.Ended, r[i])
	}
	s.settled(1)
	if s.h.Remembers { // the store has no room to run out of
		s.done(s.Complete(s.Context(), r[0].LeaseID, nil))
		s.fail(weir.Ended, r[0])
	} else {
		s.refuses(weir.UnknownLease)(s.Complete(s.Context(), r[0].LeaseID, nil))
		s.fail(weir.Invalid, r[0])
	}
	s.done(s.Complete(s.Context(), r[1].LeaseID, nil))
	s.done(s.Complete(s.Context(), r[2].LeaseID, nil))
	s.left("a", cost(96))
}

func liveKept(s *stage) {
	l := s.admit(ask("a", cost(4)))
	s.settled(10)
	s.adjust(l, 1, cost(5))
	s.cancel(l)
	s.left("a", cost(90))
}
