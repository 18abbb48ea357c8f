package conformance

import (
	"time"

	"github.com/weir-limiter/weir"
)

// kindCases are lines 2.5 and 2.6.
func kindCases() []Case {
	return append(append(
		perKind("a new limit is empty", "2.5", startsEmpty),
		perKind("a cost of 0 fits a limit that is just used up", "2.6", zeroFits)...),
		perKind("a cost of 0 is denied over the capacity", "2.6", zeroDenied)...)
}

func startsEmpty(s *stage, _ weir.Kind) {
	s.left("a", cost(10))
	s.admit(ask("a", cost(10)))
	s.deny(ask("a", cost(1)))
	s.left("b", cost(10))
}

func zeroFits(s *stage, _ weir.Kind) {
	s.admit(ask("a", cost(0)))
	s.left("a", cost(10))
	s.admit(ask("a", cost(10)))
	s.admit(ask("a", cost(0)))
	s.left("a", cost(0))
}

// zeroDenied brings each kind over its capacity: by an overrun, or by a capacity that is lowered.
func zeroDenied(s *stage, k weir.Kind) {
	l := s.admit(ask("a", cost(10)))
	if k == weir.Concurrency {
		s.configure(everybody(slow(k, "n", 8)))
		s.left("a", cost(-2))
	} else {
		s.adjust(l, 1, cost(11))
		s.left("a", cost(-1))
	}
	d := s.deny(ask("a", cost(0)))
	s.equal("requested", d.Limits[0].Requested, 0)
	if d.RetryAfter < time.Millisecond {
		s.Fatalf("got a retry-after of %v, want a wait", d.RetryAfter)
	}
	s.cancel(l)
	s.admit(ask("a", cost(0)))
}
