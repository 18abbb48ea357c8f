package conformance

import (
	"time"

	"github.com/weir-limiter/weir"
)

// callCases are about forms of a call that a script has no words for, or about more of it than
// anybody would write.
func callCases() []Case {
	stored := system(slow(weir.Bucket, "n", 100), slow(weir.Bucket, "m", 100))
	return []Case{
		{"the same content", "6 content", only(weir.Bucket), scene(stored, sameContent)},
		{"the lease counts its numbers", "7.1", only(weir.Bucket), scene(stored, leaseCounts)},
	}
}

func sameContent(s *stage) {
	low := bucketOf("n", 50, 50, time.Minute)
	short := weir.Limit{Name: "n", Capacity: 50} // the same by its defaults
	other := slow(weir.Bucket, "m", 60)
	id := weir.NewLeaseID(s.Now())
	first := bringing(ask("a", weir.Costs{"n": 4, "m": 2}), low, other)
	l := s.admit(with(id, first))
	for _, r := range []*weir.Request{
		first,
		bringing(ask("a", weir.Costs{"m": 2, "n": 4}), other, short),
		bringing(several(charge("a", weir.Costs{"n": 4, "m": 2})), low, other),
	} {
		again := s.admit(with(id, r))
		s.equal("lease ID", again.ID, l.ID)
		s.equal("answer", again.Limits, l.Limits)
	}
	s.left("a", weir.Costs{"n": 96, "m": 98})
}

func leaseCounts(s *stage) {
	l := s.admit(ask("a", cost(10)))
	for i := range int64(5) {
		s.done(l.Adjust(s.Context(), cost(10+i)))
		s.left("a", cost(90-i))
	}
	s.done(l.Extend(s.Context()))
	s.done(l.Complete(s.Context(), cost(1)))
	s.left("a", cost(99))
	s.refuses(weir.Conflict)(l.Cancel(s.Context()))
}
