package conformance

import (
	"fmt"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
)

// available returns what a limit of an entity has available.
func (s *caseWorld) available(entity, limit string) int64 {
	s.Helper()
	return s.of(s.statuses(entity), entity, limit).Available
}

// expectAvailable expects the limits of an entity to have certain units available.
func (s *caseWorld) expectAvailable(entity string, want weir.Costs) {
	s.Helper()
	statuses := s.statuses(entity)
	for name, n := range want {
		if got := s.of(statuses, entity, name).Available; got != n {
			s.Fatalf("at %s: %s of %s: got %d available, want %d", s.clock(), name, entity, got, n)
		}
	}
}

// of returns the status of a limit. The case fails if there is none.
func (s *caseWorld) of(statuses []weir.LimitStatus, entity, limit string) *weir.LimitStatus {
	s.Helper()
	i := slices.IndexFunc(statuses, func(st weir.LimitStatus) bool {
		return st.Entity == entity && st.Limit == limit
	})
	if i < 0 {
		s.Fatalf("got statuses %v, want one of %s of %s", statuses, limit, entity)
	}
	return &statuses[i]
}

// statuses returns an entity's statuses on the usual resource.
func (s *caseWorld) statuses(entity string) []weir.LimitStatus {
	s.Helper()
	statuses, err := s.Status(s.Context(), entity, resource)
	if err != nil {
		s.Fatalf("status of %s: %v", entity, err)
	}
	return statuses
}

// order returns the names of the limits of statuses, in order.
func order(statuses []weir.LimitStatus) []string {
	var names []string
	for _, st := range statuses {
		names = append(names, st.Entity+" "+st.Limit)
	}
	return names
}

// exceeded returns the names of the limits that are exceeded.
func exceeded(statuses []weir.LimitStatus) []string {
	var names []string
	for _, st := range statuses {
		if st.Exceeded {
			names = append(names, st.Limit)
		}
	}
	return names
}

// drain repeats a request and returns how often it was admitted. It prints how often it was
// admitted and how often not.
func (s *caseWorld) drain(r *weir.Request, tries int) (admitted int) {
	s.Helper()
	denied := 0
	for range tries {
		if s.try(r) {
			admitted++
		} else {
			denied++
		}
	}
	s.Logf("%s: admitted %d, denied %d", show(r), admitted, denied)
	return admitted
}

// try reports whether a request is admitted. Any error but a denial ends the case.
func (s *caseWorld) try(r *weir.Request) bool {
	s.Helper()
	_, err := s.Reserve(s.Context(), r)
	if err == nil {
		return true
	}
	if !isDenial(err) {
		s.Fatalf("reserve %s: %v", show(r), err)
	}
	return false
}

// exactly drains and expects exactly as many admissions as the definition admits.
func (s *caseWorld) exactly(r *weir.Request, ideal, tries int) {
	s.Helper()
	s.admitted(s.drain(r, tries), ideal)
}

// admitted checks a number of admissions. If the harness is inexact, up to one in a hundred may be
// missing.
func (s *caseWorld) admitted(got, ideal int) {
	s.Helper()
	least := ideal
	if s.h.Inexact {
		least = ideal - ideal/100
	}
	s.Logf("admitted %d of the %d that the definition admits", got, ideal)
	if got > ideal || got < least {
		s.Fatalf("admitted %d, the definition admits %d", got, ideal)
	}
}

// expectRetryAfter expects a request to be denied now and until a millisecond before its
// retry-after, and to be admitted then. A store with a clock of its own does not add the time by
// which the caller's clock is behind.
func (s *caseWorld) expectRetryAfter(r *weir.Request, after time.Duration) {
	s.Helper()
	told := after
	if behind := s.latest.Sub(s.Now()); s.h.OwnClock && behind > 0 {
		told -= behind
	}
	if d := s.deny(r); exactWait(d) != told {
		s.Fatalf("at %s: reserve %s: got a retry-after of %v, want %v",
			s.clock(), show(r), exactWait(d), told)
	}
	s.Advance(after - time.Millisecond)
	s.deny(r)
	s.Advance(time.Millisecond)
	s.admit(r)
}

// equal expects two values to print the same.
func (s *caseWorld) equal(what string, got, want any) {
	s.Helper()
	if g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); g != w {
		s.Fatalf("%s: got %s, want %s", what, g, w)
	}
}

// equalTime expects two instants to be equal.
func (s *caseWorld) equalTime(what string, got, want time.Time) {
	s.Helper()
	if !got.Equal(want) {
		s.Fatalf("%s: got %v, want %v", what, got.UTC(), want.UTC())
	}
}
