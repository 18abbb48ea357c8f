package conformance

import (
	"time"

	"github.com/weir-limiter/weir"
)

// broughtCases are section 5.
func broughtCases() []Case {
	b := only(weir.Bucket)
	cascade := Needs{Kinds: b.Kinds, Depth: 1}
	stored := system(slow(weir.Bucket, "n", 10), slow(weir.Bucket, "m", 10))
	minute := system(bucketOf("n", 10, 60, time.Minute))
	pair := Setup{Definitions: family(
		[]weir.Limit{slow(weir.Bucket, "n", 10)}, []weir.Limit{slow(weir.Bucket, "n", 10)})}
	bare := Setup{Definitions: family(nil, nil)}
	return append(append([]Case{
		{"the first level that has limits wins whole", "5.1", b, scene(levels(), levelWins)},
		{"levels are explained", "5.1", b, scene(levels(), levelsExplained)},
		{"a request's limits where nothing is configured", "5.2", cascade, scene(bare, unconfigured)},
		{"a brought limit may only lower", "5.3", b, scene(stored, onlyLowers)},
		{"a brought capacity is waited for", "5.3", timed(weir.Bucket), scene(minute, loweredWait)},
		{"a brought limit spares the ancestors", "5.3", cascade, scene(pair, sparesAncestors)},
		{"a brought limit lowers the limiter's", "5.3", b,
			scene(Setup{Options: weir.Options{Limits: []weir.Limit{slow(weir.Bucket, "n", 10)}}},
				lowersOptions)},
		{"a brought limit that nobody has", "5.4", cascade, scene(Setup{Definitions: parentSmaller()},
			unknownBrought)},
		{"a brought limit of another kind", "5.4", only(weir.Bucket, weir.Window),
			scene(stored, otherKind)},
		{"a brought limit without a cost is not judged", "5.4", b, scene(stored, broughtNotJudged)},
		{"a brought limit that is wrong", "5.4", b, scene(stored, broughtWrong)},
	}, perKind("O1: brought limits ignored", "5.3", broughtIgnored)...),
		perKind("a brought ceiling is in units used", "5.3", ceilingUsed)...)
}

// levels has limits on every level, each with a capacity of its own.
func levels() Setup {
	l := func(capacity int64) []weir.Limit { return []weir.Limit{slow(weir.Bucket, "n", capacity)} }
	return Setup{
		Definitions: &weir.Definitions{
			System:    []weir.Limit{slow(weir.Bucket, "n", 40), slow(weir.Bucket, "sys", 10)},
			Resources: map[string][]weir.Limit{"m": l(30)},
			Entities: map[string]weir.EntityDefinition{
				"own":     {Limits: map[string][]weir.Limit{"m": l(10), weir.DefaultResource: l(20)}},
				"default": {Limits: map[string][]weir.Limit{weir.DefaultResource: l(20)}},
			},
		},
		Options: weir.Options{Limits: l(50)},
	}
}

func levelWins(s *stage) {
	for _, want := range []struct {
		entity, resource string
		level            weir.Level
		capacity         int64
	}{
		{"own", "m", weir.LevelEntity, 10},
		{"own", "x", weir.LevelEntityDefault, 20},
		{"default", "m", weir.LevelEntityDefault, 20},
		{"other", "m", weir.LevelResource, 30},
		{"other", "x", weir.LevelSystem, 40},
	} {
		r := &weir.Request{Entity: want.entity, Resource: want.resource, Costs: cost(1)}
		st := s.admit(r).Limits[0]
		s.equal(want.entity+" on "+want.resource,
			[]any{st.Level, st.Capacity, st.Available},
			[]any{want.level, want.capacity, want.capacity - 1})
	}
	// A weaker level adds nothing to a stronger one.
	s.fail(weir.UnknownLimit, ask("own", weir.Costs{"sys": 1}))
	s.admit(&weir.Request{Entity: "other", Resource: "x", Costs: weir.Costs{"sys": 1}})
	s.exactly(ask("own", cost(1)), 9, 11)
	s.configure(&weir.Definitions{})
	st := s.admit(ask("own", cost(0))).Limits[0]
	s.equal("without others", []any{st.Level, st.Capacity},
		[]any{weir.LevelLimiter, 50})
}

func levelsExplained(s *stage) {
	want := []struct {
		level    weir.Level
		capacity int64
	}{{weir.LevelEntity, 10}, {weir.LevelEntityDefault, 20}, {weir.LevelResource, 30},
		{weir.LevelSystem, 40}, {weir.LevelLimiter, 50}}
	e, err := s.Explain(s.Context(), "own", "m")
	if err != nil {
		s.Fatalf("explain: %v", err)
	}
	s.equal("wins", []any{e.Level, e.Limits[0].Capacity}, []any{want[0].level, want[0].capacity})
	s.equal("hidden", len(e.Hidden), len(want)-1)
	for i, h := range e.Hidden {
		s.equal(
			"hidden",
			[]any{h.Level, h.Limits[0].Capacity},
			[]any{want[i+1].level, want[i+1].capacity},
		)
	}
	if e.Parent != nil {
		s.Fatalf("got a parent %v, want none", e.Parent)
	}
	_, err = s.Explain(s.Context(), "own", "1m")
	s.refused(weir.Invalid, err)
}

// bringing adds limits to a request.
func bringing(r *weir.Request, limits ...weir.Limit) *weir.Request {
	c := *r
	c.Limits = limits
	return &c
}

func unconfigured(s *stage) {
	mine := slow(weir.Bucket, "n", 10)
	l := s.admit(bringing(ask("child", cost(4)), mine))
	s.equal("order", order(l.Limits), []string{"child n", "parent n"})
	for _, st := range l.Limits {
		s.equal("status", []any{st.Level, st.Capacity, st.Available},
			[]any{weir.LevelRequest, 10, 6})
	}
	s.deny(bringing(ask("child", cost(7)), mine))
	s.fail(weir.NeverSatisfiable, bringing(ask("child", cost(11)), mine))
	s.fail(weir.UnknownLimit, bringing(ask("child", weir.Costs{"z": 1}), mine))
	s.fail(weir.NoLimits, ask("child", cost(1)))
	l = s.admit(bringing(ask("parent", cost(6)), mine))
	s.equal("what the child used on its parent counts", l.Limits[0].Available, 0)
	s.deny(bringing(ask("child", cost(1)), mine))
}

func onlyLowers(s *stage) {
	l := s.admit(bringing(ask("a", cost(3)), slow(weir.Bucket, "n", 1000)))
	s.equal("capacity", l.Limits[0].Capacity, 10)
	s.equal("available", l.Limits[0].Available, 7)
	s.fail(weir.NeverSatisfiable, bringing(ask("a", cost(11)), slow(weir.Bucket, "n", 1000)))
	s.deny(bringing(ask("a", cost(8)), slow(weir.Bucket, "n", 1000)))
	s.exactly(bringing(ask("a", cost(1)), slow(weir.Bucket, "n", 5)), 2, 4)
	s.exactly(ask("a", cost(1)), 5, 7)
}

func loweredWait(s *stage) {
	s.admit(ask("a", cost(9)))
	low := bucketOf("n", 4, 1, time.Hour) // its rate does not matter, only its capacity
	d := s.deny(bringing(ask("a", cost(1)), low))
	s.equal("available against the ceiling", d.Limits[0].Available, -5)
	s.equal("capacity", d.Limits[0].Capacity, 4)
	s.returns(bringing(ask("a", cost(1)), low), 6*time.Second)
	s.left("a", cost(6))
}

func sparesAncestors(s *stage) {
	low := slow(weir.Bucket, "n", 4)
	s.admit(ask("parent", cost(5)))
	l := s.admit(bringing(ask("child", cost(3)), low))
	s.equal("child", l.Limits[0].Available, 1)
	s.equal("parent", []int64{l.Limits[1].Capacity, l.Limits[1].Available}, []int64{10, 2})
	d := s.deny(bringing(ask("child", cost(2)), low))
	s.equal("exceeded", []bool{d.Limits[0].Exceeded, d.Limits[1].Exceeded}, []bool{true, false})
	// Where the request names the parent itself, it counts there too.
	s.deny(bringing(several(charge("child", cost(0)), charge("parent", cost(0))), low))
	s.admit(several(charge("child", cost(0)), charge("parent", cost(0))))
}

func lowersOptions(s *stage) {
	s.admit(bringing(ask("a", cost(4)), slow(weir.Bucket, "n", 1000)))
	s.left("a", cost(6))
	s.deny(bringing(ask("a", cost(1)), slow(weir.Bucket, "n", 4)))
	s.exactly(ask("a", cost(1)), 6, 8)
}

func unknownBrought(s *stage) {
	e := s.fail(weir.UnknownLimit, bringing(ask("child", cost(1)), slow(weir.Bucket, "z", 5)))
	s.equal("field", e.Field, "limits.z")
	// The parent has k, but the request does not name the parent.
	s.fail(weir.UnknownLimit, bringing(ask("child", cost(1)), slow(weir.Bucket, "k", 5)))
	s.admit(bringing(ask("parent", cost(1)), slow(weir.Bucket, "k", 5)))
	s.admit(bringing(several(charge("child", cost(1)), charge("parent", cost(1))),
		slow(weir.Bucket, "k", 5)))
	s.left("child", cost(9))
	s.left("parent", cost(5))
}

func otherKind(s *stage) {
	s.fail(weir.Invalid, bringing(ask("a", cost(1)), slow(weir.Window, "n", 5)))
	s.fail(weir.Invalid, bringing(ask("a", weir.Costs{"m": 1}), slow(weir.Window, "n", 5)))
	s.left("a", weir.Costs{"n": 10, "m": 10})
}

func broughtNotJudged(s *stage) {
	s.admit(ask("a", cost(10)))
	l := s.admit(bringing(ask("a", weir.Costs{"m": 1}), slow(weir.Bucket, "n", 1)))
	s.equal("judged", order(l.Limits), []string{"a m"})
}

func broughtWrong(s *stage) {
	twice := bringing(ask("a", cost(1)), slow(weir.Bucket, "n", 5), slow(weir.Bucket, "n", 6))
	for _, r := range []*weir.Request{
		twice,
		bringing(ask("a", cost(1)), slow(weir.Bucket, "n", 0)),
		bringing(ask("a", cost(1)), slow(weir.Bucket, "n", -5)),
		bringing(ask("a", cost(1)), slow(weir.Bucket, "n n", 5)),
		bringing(ask("a", cost(1)), weir.Limit{Name: "n", Kind: "leaky", Capacity: 5}),
	} {
		if _, err := s.Reserve(s.Context(), r); err == nil || isDenial(err) {
			s.Fatalf("limits %v: got %v, want an error", r.Limits, err)
		}
	}
	s.left("a", cost(10))
}

// broughtIgnored asks with a lower capacity, on a limit that already has state.
func broughtIgnored(s *stage, k weir.Kind) {
	low := slow(k, "n", 4)
	s.admit(ask("a", cost(1)))
	s.exactly(bringing(ask("a", cost(1)), low), 3, 6)
	s.fail(weir.NeverSatisfiable, bringing(ask("a", cost(5)), low))
	s.left("a", cost(6)) // the limit itself is as it was
	s.exactly(ask("a", cost(1)), 6, 8)
}

func ceilingUsed(s *stage, k weir.Kind) {
	s.admit(ask("a", cost(4)))
	l := s.admit(bringing(ask("a", cost(2)), slow(k, "n", 7)))
	s.equal("status", []int64{l.Limits[0].Capacity, l.Limits[0].Available}, []int64{7, 1})
	d := s.deny(bringing(ask("a", cost(0)), slow(k, "n", 5)))
	s.equal("status", []int64{d.Limits[0].Capacity, d.Limits[0].Available}, []int64{5, -1})
	s.admit(bringing(ask("a", cost(0)), slow(k, "n", 6)))
}
