package conformance

import (
	"time"

	"github.com/weir-limiter/weir"
)

// contentCases are what section 6 says below its table.
func contentCases() []Case {
	b := only(weir.Bucket)
	stored := system(slow(weir.Bucket, "n", 100), slow(weir.Bucket, "m", 100))
	return []Case{
		{"the same content", "6 content", b, scene(stored, sameContent)},
		{"other content", "6 content", b, scene(stored, otherContent)},
		{"a request's own mistakes come first", "6 content", b, scene(stored, ownMistakes)},
		{"actuals are content", "6 content", b, scene(stored, actualsContent)},
		{"replay of a multi-limit reserve", "6 content", Needs{Kinds: b.Kinds, Depth: 1},
			sceneOf(func(h *Harness) Setup {
				return Setup{Definitions: family(four(h), four(h))}
			}, replayMany)},
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

func otherContent(s *stage) {
	id := weir.NewLeaseID(s.Now())
	first := several(charge("a", cost(4)), charge("b", cost(4)))
	s.admit(with(id, first))
	low := slow(weir.Bucket, "n", 100)
	for _, r := range []*weir.Request{
		ask("a", cost(4)),
		several(charge("b", cost(4)), charge("a", cost(4))),
		several(charge("a", cost(4)), charge("b", cost(5))),
		several(charge("a", cost(4)), charge("b", weir.Costs{"m": 4})),
		several(charge("a", cost(4)), charge("b", weir.Costs{"n": 4, "m": 0})),
		several(charge("a", cost(4)), charge("c", cost(4))),
		several(charge("a", cost(4)), weir.Charge{Entity: "b", Resource: "other", Costs: cost(4)}),
		several(charge("a", cost(4)), charge("b", cost(4)), charge("b", cost(0))),
		bringing(first, low),
	} {
		s.fail(weir.Conflict, with(id, r))
	}
	s.left("a", weir.Costs{"n": 96, "m": 100})
	s.left("b", weir.Costs{"n": 96, "m": 100})
	other := weir.NewLeaseID(s.Now())
	s.admit(with(other, bringing(first, low)))
	s.fail(weir.Conflict, with(other, first))
	low.Capacity--
	s.fail(weir.Conflict, with(other, bringing(first, low)))
}

// ownMistakes: what is wrong with a request by itself is found before its lease is looked up.
func ownMistakes(s *stage) {
	l := s.admit(ask("a", cost(4)))
	s.complete(l)
	for _, id := range []weir.LeaseID{l.ID, weir.NewLeaseID(s.Now())} {
		s.fail(weir.Invalid, with(id, ask("a", cost(-1))))
		s.fail(weir.Invalid, with(id, ask("a b", cost(1))))
		s.fail(weir.Invalid, with(id, ask("a", weir.Costs{"n n": 1})))
		s.fail(weir.Invalid, with(id, bringing(ask("a", cost(1)), weir.Limit{Name: "n", Capacity: -1})))
		for _, bad := range []weir.Costs{{"n": -1}, {"1": 1}, {"wcu": 1}} {
			s.refuses(weir.Invalid)(s.Complete(s.Context(), id, []weir.Costs{bad}))
			s.refuses(weir.Invalid)(s.Adjust(s.Context(), id, 1, []weir.Costs{bad}))
		}
		s.refuses(weir.Invalid)(s.Adjust(s.Context(), id, 0, []weir.Costs{cost(1)}))
	}
	s.left("a", cost(96))
}

func actualsContent(s *stage) {
	l := s.admit(ask("a", weir.Costs{"n": 4, "m": 4}))
	r := s.complete(l, weir.Costs{"n": 3, "m": 4})
	s.instant("again", s.complete(l, weir.Costs{"m": 4, "n": 3}).At, r.At)
	for _, other := range [][]weir.Costs{
		nil,
		{{"n": 3}}, // the same effect, but not the same content
		{{"n": 3, "m": 5}},
		{{"n": 3, "m": 4}, {}},
		{{"n": 3, "m": 4, "z": 1}},
	} {
		s.refuses(weir.Conflict)(s.Complete(s.Context(), l.ID, other))
	}
	s.left("a", weir.Costs{"n": 97, "m": 96})
}

func replayMany(s *stage) {
	all := weir.Costs{"b": 2, "w": 2, "c": 2, "u": 2}
	r := with(weir.NewLeaseID(s.Now()), several(charge("child", all),
		charge("child", weir.Costs{"b": 1, "w": 1, "c": 1, "u": 1})))
	l := s.admit(r)
	for range 5 {
		again := s.admit(r)
		s.equal("answer", again.Limits, l.Limits)
		s.instant("reserved at", again.ReservedAt, l.ReservedAt)
		for _, e := range []string{"child", "parent"} {
			s.left(e, weir.Costs{"b": 7, "w": 7, "c": 7, "u": 7})
		}
	}
	s.cancel(l)
	s.fail(weir.Ended, r)
	s.left("parent", weir.Costs{"b": 10, "w": 10, "c": 10, "u": 10})
}
