package conformance

import (
	"fmt"
	"time"

	"github.com/weir-limiter/weir"
)

// leaseCases are lines 6.1, 6.3, 6.5 and 6.6, but for races.
func leaseCases() []Case {
	b := only(weir.Bucket)
	bt := timed(weir.Bucket)
	ct := timed(weir.Concurrency)
	stored := system(slow(weir.Bucket, "n", 10))
	short := stored.under(weir.Options{LeaseLifetime: 10 * time.Second})
	return append([]Case{
		{"the limiter makes an ID", "6.1", b, scene(stored, makesID)},
		{"a caller may bring an ID", "6.1", b, scene(stored, bringsID)},
		{"an ID that is too old or too far ahead", "6.1", bt, scene(stored, badID)},
		{"known IDs are answered first", "6.1", bt, scene(stored, knownFirst)},
		{"a lease lives for an hour", "6.3", bt, scene(stored, livesAnHour)},
		{"a lease lives as long as the option says", "6.3", bt, scene(short, livesShortly)},
		{"never less than its longest timeout", "6.3", ct,
			scene(system(slotsOf("n", 10, time.Minute), slotsOf("long", 10, 2*time.Hour)), longTimeout)},
		{"never as little as its slots' timeout", "6.3", ct,
			scene(system(slotsOf("n", 10, time.Minute)), outlivesSlots)},
		{"an extend renews the lease", "6.3", bt, scene(stored, extendRenews)},
		{"expired lease re-reserved", "6.3", bt, scene(stored, expiredAgain)},
		{"an error leaves no lease", "6.5", b, scene(stored, errorNoLease)},
	}, perKind("a denial leaves no lease", "6.5", denialNoLease)...)
}

func makesID(s *stage) {
	seen := map[weir.LeaseID]bool{}
	for range 5 {
		l := s.admit(ask("a", cost(1)))
		if l.ID.IsZero() || seen[l.ID] {
			s.Fatalf("got lease ID %v again, or none", l.ID)
		}
		seen[l.ID] = true
		if d := l.ID.Time().Sub(s.Now()).Abs(); d > time.Minute {
			s.Fatalf("the ID %v carries a time that is off by %v", l.ID, d)
		}
	}
	s.left("a", cost(5))
}

func bringsID(s *stage) {
	id := weir.NewLeaseID(s.Now())
	l := s.admit(with(id, ask("a", cost(4))))
	s.equal("lease ID", l.ID, id)
	s.equal("receipt", s.cancel(l).LeaseID, id)
	s.left("a", cost(10))
}

func badID(s *stage) {
	s.Advance(time.Hour)
	for ago, ok := range map[time.Duration]bool{
		-time.Minute:                         true,
		-time.Minute - time.Millisecond:      false,
		-time.Hour:                           false,
		0:                                    true,
		10 * time.Minute:                     true,
		10*time.Minute + time.Millisecond:    false,
		100 * 24 * time.Hour:                 false,
		9*time.Minute + 59*time.Second + 999: true,
	} {
		id := weir.NewLeaseID(s.Now().Add(-ago))
		if ok {
			s.cancel(s.admit(with(id, ask("a", cost(10)))))
		} else {
			s.equal("field", s.fail(weir.Invalid, with(id, ask("a", cost(1)))).Field, "lease_id")
		}
	}
	s.left("a", cost(10))
}

func knownFirst(s *stage) {
	id := weir.NewLeaseID(s.Now())
	r := with(id, ask("a", cost(4)))
	l := s.admit(r)
	s.Advance(30 * time.Minute) // the ID is older than any that would be taken
	s.fail(weir.Invalid, with(weir.NewLeaseID(l.ReservedAt), ask("a", cost(1))))
	again := s.admit(r)
	s.equal("limits", again.Limits, l.Limits)
	s.instant("reserved at", again.ReservedAt, l.ReservedAt)
	s.fail(weir.Conflict, with(id, ask("a", cost(5))))
	s.left("a", cost(6))
}

func livesAnHour(s *stage) {
	l := s.admit(ask("a", cost(4)))
	s.instant("expires", l.Expires, s.Now().Add(time.Hour))
	s.Advance(time.Hour - time.Millisecond)
	s.adjust(l, 1, cost(5))
	s.Advance(time.Millisecond)
	s.refuses(weir.Ended)(s.Adjust(s.Context(), l.ID, 2, []weir.Costs{cost(1)}))
	s.left("a", cost(5)) // what it stood for stays charged
}

func livesShortly(s *stage) {
	l := s.admit(ask("a", cost(4)))
	s.instant("expires", l.Expires, s.Now().Add(10*time.Second))
	s.Advance(10*time.Second - time.Millisecond)
	s.instant("expires", s.extend(l).Expires, s.Now().Add(10*time.Second))
	s.Advance(10 * time.Second)
	s.refuses(weir.Ended)(s.Extend(s.Context(), l.ID))
	s.left("a", cost(6))
}

func longTimeout(s *stage) {
	l := s.admit(ask("a", nil))
	s.instant("expires", l.Expires, s.Now().Add(2*time.Hour))
	s.instant("holds until", l.HoldsUntil, s.Now().Add(time.Minute))
	s.Advance(2*time.Hour - time.Millisecond)
	r := s.extend(l)
	s.instant("expires", r.Expires, s.Now().Add(2*time.Hour))
	s.Advance(2 * time.Hour)
	s.refuses(weir.Ended)(s.Complete(s.Context(), l.ID, nil))
}

func outlivesSlots(s *stage) {
	l := s.admit(ask("a", cost(3)))
	s.instant("expires", l.Expires, s.Now().Add(time.Hour))
	s.Advance(59 * time.Minute)
	s.instant("expires", s.extend(l).Expires, s.Now().Add(time.Hour))
	s.complete(l)
}

func extendRenews(s *stage) {
	l := s.admit(ask("a", cost(4)))
	for range 3 {
		s.Advance(59 * time.Minute)
		r := s.extend(l)
		s.instant("expires", r.Expires, s.Now().Add(time.Hour))
	}
	s.complete(l, cost(1))
	s.left("a", cost(9))
}

// expiredAgain: a lease that has ended by itself is not born again, and is charged once.
func expiredAgain(s *stage) {
	id := weir.NewLeaseID(s.Now())
	r := with(id, ask("a", cost(4)))
	s.admit(r)
	s.Advance(time.Hour)
	s.fail(weir.Ended, r)
	s.left("a", cost(6))
	s.Advance(10 * time.Minute) // remembered to the last millisecond
	s.fail(weir.Ended, r)
	s.Advance(time.Millisecond) // forgotten, and too old by now
	s.fail(weir.Invalid, r)
	s.refuses(weir.UnknownLease)(s.Cancel(s.Context(), id))
	s.left("a", cost(6))
}

func denialNoLease(s *stage, k weir.Kind) {
	l := s.admit(ask("a", cost(7)))
	id := weir.NewLeaseID(s.Now())
	d := s.deny(with(id, ask("a", cost(4))))
	s.equal("lease ID", d.LeaseID, id)
	for name, verb := range verbs(s, id) {
		if name == "cancel" { // it would end the ID (6.7)
			continue
		}
		if _, err := verb(); err == nil {
			s.Fatalf("%s on a denied lease succeeded", name)
		} else {
			s.refused(weir.UnknownLease, err)
		}
	}
	s.deny(with(id, ask("a", cost(5)))) // other content: judged anew
	other := weir.NewLeaseID(s.Now())
	s.deny(with(other, ask("a", cost(4))))
	s.unknown(other)
	s.cancel(l)
	s.admit(with(id, ask("a", cost(6))))
	s.left("a", cost(4))
	s.admit(with(id, ask("a", cost(6))))
	s.left("a", cost(4))
}

// verbs are the four on a lease.
func verbs(s *stage, id weir.LeaseID) map[string]func() (*weir.Receipt, error) {
	return map[string]func() (*weir.Receipt, error){
		"adjust": func() (*weir.Receipt, error) {
			return s.Adjust(s.Context(), id, 1, []weir.Costs{cost(1)})
		},
		"complete": func() (*weir.Receipt, error) { return s.Complete(s.Context(), id, nil) },
		"cancel":   func() (*weir.Receipt, error) { return s.Cancel(s.Context(), id) },
		"extend":   func() (*weir.Receipt, error) { return s.Extend(s.Context(), id) },
	}
}

func errorNoLease(s *stage) {
	id := weir.NewLeaseID(s.Now())
	s.fail(weir.UnknownLimit, with(id, ask("a", weir.Costs{"z": 1})))
	s.fail(weir.NeverSatisfiable, with(id, ask("a", cost(11))))
	s.fail(weir.Invalid, with(id, ask("a", cost(-1))))
	s.refuses(weir.UnknownLease)(s.Extend(s.Context(), id))
	s.admit(with(id, ask("a", cost(3))))
	s.left("a", cost(7))
	for i := range 3 {
		s.fail(weir.Invalid, with(id, ask(fmt.Sprintf("!%d", i), cost(1))))
	}
	s.done(s.Cancel(s.Context(), id))
}
