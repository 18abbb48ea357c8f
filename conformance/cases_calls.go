package conformance

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
)

// callCases returns cases about forms of a call for which the script language has no words, or that
// are too long to write.
func callCases() []Case {
	buckets := system(slowLimit(weir.Bucket, "n", 10), slowLimit(weir.Bucket, "m", 10))
	stored := system(slowLimit(weir.Bucket, "n", 100), slowLimit(weir.Bucket, "m", 100))
	return []Case{
		{"64-bit overflow of a sum of charges", "1.1", Needs{}, overflowSum},
		{"at most 16 charges with 32 costs", "3.2", only(weir.Bucket), onWorld(buckets, atMost)},
		{"one form of charges", "3.2", only(weir.Bucket), onWorld(buckets, oneForm)},
		{"N1: names with - or .", "3.4", Needs{}, oddNames},
		{"the same content", "6 content", only(weir.Bucket), onWorld(stored, sameContent)},
		{"the lease counts its numbers", "7.1", only(weir.Bucket), onWorld(stored, leaseCounts)},
	}
}

func overflowSum(t T, h Harness) {
	for _, k := range h.Traits.Kinds {
		onWorld(system(slowLimit(k, "n", 10)), func(s *caseWorld) {
			big := charge("a", cost(math.MaxInt64))
			s.fail(weir.NeverSatisfiable, several(big, big))
			s.fail(weir.NeverSatisfiable, several(big, big, charge("a", cost(2))))
			s.expectAvailable("a", cost(10))
		})(t, h)
	}
}

func atMost(s *caseWorld) {
	var charges []weir.Charge
	for i := range 17 {
		charges = append(charges, charge(fmt.Sprintf("e%d", i), weir.Costs{"n": 1, "m": 1}))
	}
	s.admit(several(charges[:16]...))
	s.expectAvailable("e15", weir.Costs{"n": 9, "m": 9})
	s.fail(weir.Invalid, several(charges...))
	s.expectAvailable("e0", weir.Costs{"n": 9, "m": 9})
	thin := slices.Clone(charges)
	for i := range thin {
		thin[i].Costs = cost(1)
	}
	s.fail(weir.Invalid, several(thin...))
	var wide []weir.Limit
	many := weir.Costs{}
	for i := range 33 {
		name := fmt.Sprintf("l%d", i)
		wide = append(wide, slowLimit(weir.Bucket, name, 10))
		many[name] = 1
	}
	s.configure(systemLimits(wide...))
	s.fail(weir.Invalid, ask("f", many))
	delete(many, "l32")
	s.admit(ask("f", many))
	s.fail(weir.Invalid, several(charge("g", many), charge("h", weir.Costs{"l0": 1})))
	s.expectAvailable("f", weir.Costs{"l0": 9, "l32": 10})
}

func oneForm(s *caseWorld) {
	both := ask("a", cost(1))
	both.Charges = []weir.Charge{charge("a", cost(1))}
	s.fail(weir.Invalid, both)
	s.fail(weir.Invalid, &weir.Request{})
	s.fail(weir.Invalid, ask("", cost(1)))
	s.fail(weir.Invalid, &weir.Request{Entity: "a", Costs: cost(1)})
	s.admit(several(charge("a", cost(1))))
	s.expectAvailable("a", cost(9))
}

// oddNames checks that subjects stay separate although a careless key would be the same for their
// names.
func oddNames(t T, h Harness) {
	for _, k := range h.Traits.Kinds {
		limits := system(slowLimit(k, "n-1", 10), slowLimit(k, "n.1", 10), slowLimit(k, "n", 10), slowLimit(k, "n_1", 10))
		onWorld(limits, func(s *caseWorld) {
			entities := []string{"team-a", "team.a", "team_a", "team:a", "team@a", "TEAM-a"}
			for i, e := range entities {
				r := &weir.Request{Entity: e, Resource: "gpt-4.1/mini", Costs: weir.Costs{
					"n-1": int64(i), "n.1": int64(i + 1), "n": int64(i + 2), "n_1": int64(i + 3)}}
				s.admit(r)
			}
			for i, e := range entities {
				statuses, err := s.Status(s.Context(), e, "gpt-4.1/mini")
				if err != nil {
					s.Fatalf("status of %s: %v", e, err)
				}
				for j, name := range []string{"n-1", "n.1", "n", "n_1"} {
					s.equal(e+" "+name, s.of(statuses, e, name).Available, 10-i-j)
				}
			}
			s.exactly(&weir.Request{Entity: "team-a", Resource: "gpt-4.1/mini",
				Costs: weir.Costs{"n-1": 1, "n.1": 0, "n": 0, "n_1": 0}}, 10, 12)
		})(t, h)
	}
}

func sameContent(s *caseWorld) {
	low := bucketOf("n", 50, 50, time.Minute)
	short := weir.Limit{Name: "n", Capacity: 50} // the same, by its defaults
	other := slowLimit(weir.Bucket, "m", 60)
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
	s.expectAvailable("a", weir.Costs{"n": 96, "m": 98})
}

func leaseCounts(s *caseWorld) {
	l := s.admit(ask("a", cost(10)))
	for i := range int64(5) {
		s.done(l.Adjust(s.Context(), cost(10+i)))
		s.expectAvailable("a", cost(90-i))
	}
	s.done(l.Extend(s.Context()))
	s.done(l.Complete(s.Context(), cost(1)))
	s.expectAvailable("a", cost(99))
	s.refuses(weir.Conflict)(s.Cancel(s.Context(), l.ID))
}
