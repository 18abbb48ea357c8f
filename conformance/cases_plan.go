package conformance

import (
	"errors"
	"time"

	"github.com/weir-limiter/weir"
)

// planCases are lines 3.5, 3.7 and 3.8.
func planCases() []Case {
	bs := only(weir.Bucket)
	bt := timed(weir.Bucket)
	two := system(slow(weir.Bucket, "n", 10), slow(weir.Bucket, "m", 10))
	rates := system(bucketOf("n", 10, 60, time.Minute), bucketOf("m", 10, 10, time.Minute))
	return append(append([]Case{
		{"the first fault in the order of judging", "3.5", bs, scene(two, firstFault)},
		{"a parent that can never hold it", "3.5", Needs{Kinds: bs.Kinds, Depth: 1},
			scene(Setup{Definitions: parentSmaller()}, neverParent)},
		{"errors that look like denials", "3.5", bs, scene(two, looksLikeDenial)},
		{"judged in order", "3.7", Needs{Kinds: bs.Kinds, Depth: 1},
			scene(Setup{Definitions: parentSmaller()}, judgedInOrder)},
		{"all limits are judged after a denial", "3.7", bt, scene(rates, allJudged)},
	}, perKind("a sum above the capacity is never satisfiable", "3.5", neverSatisfiable)...),
		perKind("what is available is reported", "3.8", reports)...)
}

func parentSmaller() *weir.Definitions {
	return family(
		[]weir.Limit{slow(weir.Bucket, "n", 10), slow(weir.Bucket, "m", 10)},
		[]weir.Limit{slow(weir.Bucket, "n", 8), slow(weir.Bucket, "k", 10)})
}

func neverSatisfiable(s *stage, _ weir.Kind) {
	s.admit(ask("a", cost(10))) // as much as it holds
	e := s.fail(weir.NeverSatisfiable, ask("a", cost(11)))
	s.equal("field", e.Field, "costs.n")
	s.fail(weir.NeverSatisfiable, ask("b", cost(11)))
	s.left("b", cost(10))
	s.deny(ask("a", cost(10)))
}

func firstFault(s *stage) {
	over := weir.Costs{"n": 11, "m": 12}
	s.equal("by name", s.fail(weir.NeverSatisfiable, ask("a", over)).Field, "costs.m")
	e := s.fail(
		weir.NeverSatisfiable,
		several(charge("a", cost(11)), charge("b", weir.Costs{"m": 12})),
	)
	s.equal("by charge", e.Field, "costs.n")
	e = s.fail(weir.NeverSatisfiable, several(charge("b", weir.Costs{"m": 12}), charge("a", cost(11))))
	s.equal("by charge", e.Field, "costs.m")
	// An unknown name is found before any sum is looked at.
	s.fail(weir.UnknownLimit, ask("a", weir.Costs{"m": 12, "z": 1}))
}

func neverParent(s *stage) {
	s.admit(ask("child", cost(8)))
	s.fail(weir.NeverSatisfiable, ask("child", cost(9)))
	s.left("child", cost(2))
	s.left("parent", cost(0))
	s.deny(ask("child", cost(1)))
}

// looksLikeDenial: an error is never a denial, so that nobody retries what cannot be, and a denial
// is never an error of another code, so that nobody calls a full limit broken.
func looksLikeDenial(s *stage) {
	old := with(weir.NewLeaseID(s.Now().Add(-24*time.Hour)), ask("a", cost(1)))
	for code, r := range map[weir.Code]*weir.Request{
		weir.NeverSatisfiable: ask("a", cost(11)),
		weir.UnknownLimit:     ask("a", weir.Costs{"z": 1}),
		weir.Invalid:          old,
	} {
		_, err := s.Reserve(s.Context(), r)
		s.refused(code, err)
	}
	l := s.admit(ask("a", cost(10)))
	s.refuses(weir.Invalid)(s.Adjust(s.Context(), l.ID, 1, []weir.Costs{{"z": 1}}))
	s.refuses(weir.UnknownLease)(s.Cancel(s.Context(), weir.NewLeaseID(s.Now())))
	_, err := s.Reserve(s.Context(), ask("a", cost(1)))
	if !isDenial(err) {
		s.Fatalf("a full limit: got %v, want a denial", err)
	}
	if e, ok := errors.AsType[*weir.Error](err); ok {
		s.Fatalf("a full limit: got a denial that is %v too", e)
	}
}

func judgedInOrder(s *stage) {
	all := weir.Costs{"n": 1, "m": 1, "k": 1}
	l := s.admit(ask("child", all))
	s.equal("order", order(l.Limits), []string{"child m", "child n", "parent k", "parent n"})
	l = s.admit(several(
		charge("parent", weir.Costs{"n": 1}), charge("child", weir.Costs{"m": 1, "n": 1})))
	s.equal("order", order(l.Limits), []string{"parent n", "child m", "child n"})
	l = s.admit(several(charge("child", weir.Costs{"n": 1}), charge("parent", weir.Costs{"k": 1})))
	s.equal("order", order(l.Limits), []string{"child n", "parent k", "parent n"})
	d := s.deny(ask("child", weir.Costs{"n": 8, "m": 9, "k": 10}))
	s.equal("order", order(d.Limits), []string{"child m", "child n", "parent k", "parent n"})
}

// allJudged: whoever is denied by two limits learns of both, and of the longer wait.
func allJudged(s *stage) {
	s.admit(ask("a", weir.Costs{"n": 10, "m": 10}))
	d := s.deny(ask("a", weir.Costs{"m": 1, "n": 1}))
	s.equal("exceeded", exceeded(d.Limits), []string{"m", "n"})
	s.equal("wait of m", d.Limits[0].RetryAfter, 6*time.Second)
	s.equal("wait of n", d.Limits[1].RetryAfter, time.Second)
	s.Advance(time.Second)
	d = s.deny(ask("a", weir.Costs{"m": 1, "n": 1}))
	s.equal("exceeded", exceeded(d.Limits), []string{"m"})
	s.equal("wait of n", d.Limits[1].RetryAfter, time.Duration(0))
}

func reports(s *stage, k weir.Kind) {
	l := s.admit(ask("a", cost(3)))
	s.equal("status", l.Limits[0], weir.LimitStatus{
		Entity: "a", Resource: resource, Limit: "n", Kind: k,
		Level: weir.LevelSystem, Capacity: 10, Available: 7, Requested: 3,
	})
	d := s.deny(ask("a", cost(9)))
	st := d.Limits[0]
	s.equal("available to the denied", st.Available, 7)
	s.equal("requested", st.Requested, 9)
	s.equal("exceeded", st.Exceeded, true)
	if d.LeaseID.IsZero() {
		s.Fatalf("a denial without a lease ID")
	}
	status := s.statuses("a")
	s.equal("statuses", status, []weir.LimitStatus{{Entity: "a", Resource: resource, Limit: "n",
		Kind: k, Level: weir.LevelSystem, Capacity: 10, Available: 7}})
}
