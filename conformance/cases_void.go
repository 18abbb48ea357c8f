package conformance

import (
	"errors"
	"time"

	"github.com/weir-limiter/weir"
)

// voidCases are line 6.7: cancels that arrive before their reserve.
func voidCases() []Case {
	b := only(weir.Bucket)
	bt := timed(weir.Bucket)
	stored := system(slow(weir.Bucket, "n", 100))
	brief := stored.under(weir.Options{LeaseMemory: 20 * time.Second})
	small := stored.under(weir.Options{LeaseMemorySize: 3})
	return append([]Case{
		{"only a cancel ends the ID of an unknown lease", "6.7", b, scene(stored, onlyCancelVoids)},
		{"a denied ID that is cancelled has ended", "6.7", b, scene(stored, voidDenied)},
		{"a reserve and a cancel at once leave nothing", "6.7", b, scene(stored, voidAtOnce)},
		{"a voided ID is remembered for ten minutes", "6.7", bt, scene(stored, voidRemembered)},
		{"a voided ID is remembered as the option says", "6.7", bt, scene(brief, voidRememberedShortly)},
		{"a voided ID ahead is remembered after its own time", "6.7", bt, scene(stored, voidAhead)},
		{"IDs that are refused anyway take no room", "6.7", bt, scene(small, voidRefused)},
		{"a full memory forgets voided IDs and refuses them", "6.7", bt, scene(small, voidForgotten)},
	}, perKind("a cancel before its reserve", "6.7", cancelFirst)...)
}

// unknown expects a cancel to find no lease.
func (s *stage) unknown(id weir.LeaseID) {
	s.Helper()
	s.refuses(weir.UnknownLease)(s.Cancel(s.Context(), id))
}

func cancelFirst(s *stage, _ weir.Kind) {
	r := with(weir.NewLeaseID(s.Now()), ask("a", cost(6)))
	s.unknown(r.LeaseID)
	s.unknown(r.LeaseID)
	s.fail(weir.Ended, r)
	s.fail(weir.Ended, with(r.LeaseID, ask("a", cost(1))))
	for name, verb := range verbs(s, r.LeaseID) {
		if _, err := verb(); !errors.Is(err, weir.UnknownLease) {
			s.Fatalf("%s on a voided ID: got %v, want %q", name, err, weir.UnknownLease)
		}
	}
	s.left("a", cost(10))
	s.admit(with(weir.NewLeaseID(r.LeaseID.Time()), ask("a", cost(10)))) // another ID of the same time
	s.fail(weir.Ended, r)
	s.unknown(r.LeaseID)
	s.left("a", cost(0))
}

func onlyCancelVoids(s *stage) {
	for name := range verbs(s, weir.LeaseID{}) {
		r := with(weir.NewLeaseID(s.Now()), ask("a", cost(1)))
		if _, err := verbs(s, r.LeaseID)[name](); !errors.Is(err, weir.UnknownLease) {
			s.Fatalf("%s on an unknown lease: got %v, want %q", name, err, weir.UnknownLease)
		}
		if name == "cancel" {
			s.fail(weir.Ended, r)
		} else {
			s.admit(r)
		}
	}
	s.left("a", cost(97))
}

func voidDenied(s *stage) {
	l := s.admit(ask("a", cost(100)))
	r := with(weir.NewLeaseID(s.Now()), ask("a", cost(1)))
	s.deny(r)
	s.unknown(r.LeaseID)
	s.fail(weir.Ended, r)
	s.cancel(l)
	s.fail(weir.Ended, r)
	s.left("a", cost(100))
}

// voidAtOnce: whichever comes first, a lease that was cancelled holds nothing.
func voidAtOnce(s *stage) {
	for range 50 {
		r := with(weir.NewLeaseID(s.Now()), ask("a", cost(3)))
		crowd(6, func(i int) {
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
	s.left("a", cost(100))
}

func voidRemembered(s *stage) {
	r := with(weir.NewLeaseID(s.Now()), ask("a", cost(4)))
	s.Advance(5 * time.Minute)
	s.unknown(r.LeaseID)
	s.Advance(10 * time.Minute)
	s.fail(weir.Ended, r)
	s.Advance(time.Millisecond)
	s.fail(weir.Invalid, r)
	s.left("a", cost(100))
}

func voidRememberedShortly(s *stage) {
	r := with(weir.NewLeaseID(s.Now()), ask("a", cost(4)))
	s.unknown(r.LeaseID)
	s.Advance(20 * time.Second)
	s.fail(weir.Ended, r)
	s.Advance(time.Millisecond)
	s.fail(weir.Invalid, r)
	s.left("a", cost(100))
}

func voidAhead(s *stage) {
	r := with(weir.NewLeaseID(s.Now().Add(time.Minute)), ask("a", cost(4)))
	s.unknown(r.LeaseID)
	s.Advance(11 * time.Minute)
	s.fail(weir.Ended, r)
	s.Advance(time.Millisecond)
	s.fail(weir.Invalid, r)
	s.left("a", cost(100))
}

// voidRefused cancels many IDs with which nothing could be reserved: the memory still has what it had.
func voidRefused(s *stage) {
	s.Advance(time.Hour)
	r := s.settled(3)
	for i := range 10 {
		s.unknown(weir.NewLeaseID(s.Now().Add(-10*time.Minute - time.Duration(i+1)*time.Millisecond)))
		s.unknown(weir.NewLeaseID(s.Now().Add(time.Minute + time.Duration(i+1)*time.Millisecond)))
	}
	for i := range r {
		s.done(s.Complete(s.Context(), r[i].LeaseID, nil))
	}
	s.admit(with(weir.NewLeaseID(r[0].LeaseID.Time()), ask("a", cost(1)))) // the horizon is where it was
	s.left("a", cost(96))
}

// voidForgotten: what a full memory has forgotten is refused, so that it is not admitted either.
func voidForgotten(s *stage) {
	var voided []*weir.Request
	for range 5 {
		r := with(weir.NewLeaseID(s.Now()), ask("a", cost(1)))
		s.unknown(r.LeaseID)
		voided = append(voided, r)
		s.Advance(time.Second)
	}
	for i, r := range voided {
		if _, err := s.Reserve(s.Context(), r); err == nil || isDenial(err) {
			s.Fatalf("voided ID %d: got %v, want an error", i, err)
		}
		if i >= 2 {
			s.fail(weir.Ended, r)
		}
	}
	s.admit(with(weir.NewLeaseID(s.Now()), ask("a", cost(1))))
	s.left("a", cost(99))
}
