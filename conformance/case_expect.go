package conformance

import (
	"fmt"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
)

// look is what a limit of an entity has available.
func (s *caseWorld) available(entity, limit string) int64 {
	s.Helper()
	return s.of(s.statuses(entity), entity, limit).Available
}

// expectAvailable expects limits of an entity to have so much available.
func (s *caseWorld) expectAvailable(entity string, want weir.Costs) {
	s.Helper()
	statuses := s.statuses(entity)
	for name, n := range want {
		if got := s.of(statuses, entity, name).Available; got != n {
			s.Fatalf("at %s: %s of %s: got %d available, want %d", s.clock(), name, entity, got, n)
		}
	}
}

// of finds the status of a limit, which must be there.
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

// statuses are an entity's, on the usual resource.
func (s *caseWorld) statuses(entity string) []weir.LimitStatus {
	s.Helper()
	statuses, err := s.Status(s.Context(), entity, resource)
	if err != nil {
		s.Fatalf("status of %s: %v", entity, err)
	}
	return statuses
}

// order names the limits that statuses are about.
func order(statuses []weir.LimitStatus) []string {
	var names []string
	for _, st := range statuses {
		names = append(names, st.Entity+" "+st.Limit)
	}
	return names
}

// exceeded names the limits that are exceeded.
func exceeded(statuses []weir.LimitStatus) []string {
	var names []string
	for _, st := range statuses {
		if st.Exceeded {
			names = append(names, st.Limit)
		}
	}
	return names
}

// drain repeats a request and returns how often it was admitted. It prints both figures: what was
// admitted, and what was not.
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

// exactly drains and expects as many admissions as the definition admits: none more, and none less.
func (s *caseWorld) exactly(r *weir.Request, ideal, tries int) {
	s.Helper()
	s.admitted(s.drain(r, tries), ideal)
}

// admitted judges a number of admissions. Where answers are bounds, one in a hundred may be
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

// expectRetryAfter expects a request to be denied now, and still a millisecond before its
// retry-after, and to be admitted at it. A store with a clock of its own does not count by how far
// the caller's is behind.
func (s *caseWorld) expectRetryAfter(r *weir.Request, after time.Duration) {
	s.Helper()
	told := after
	if behind := s.latest.Sub(s.Now()); s.h.OwnClock && behind > 0 {
		told -= behind
	}
	if d := s.deny(r); d.RetryAfter != told {
		s.Fatalf("at %s: reserve %s: got a retry-after of %v, want %v",
			s.clock(), show(r), d.RetryAfter, told)
	}
	s.Advance(after - time.Millisecond)
	s.deny(r)
	s.Advance(time.Millisecond)
	s.admit(r)
}

// equal compares two values by how they print.
func (s *caseWorld) equal(what string, got, want any) {
	s.Helper()
	if g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); g != w {
		s.Fatalf("%s: got %s, want %s", what, g, w)
	}
}

// equalTime compares two instants.
func (s *caseWorld) equalTime(what string, got, want time.Time) {
	s.Helper()
	if !got.Equal(want) {
		s.Fatalf("%s: got %v, want %v", what, got.UTC(), want.UTC())
	}
}
