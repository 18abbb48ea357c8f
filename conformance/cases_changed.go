package conformance

import (
	"time"

	"github.com/weir-limiter/weir"
)

// changedCases are lines 8.1, 8.2, 8.4, 8.5 and 8.6.
func changedCases() []Case {
	bt, wt, ct := timed(weir.Bucket), timed(weir.Window), timed(weir.Concurrency)
	minute := system(bucketOf("n", 10, 60, time.Minute))
	window := system(windowOf("n", 10, time.Minute))
	slots := system(slotsOf("n", 10, time.Minute))
	spent := system(bucketOf("n", 10, 60, time.Minute), slow(weir.Bucket, "spent", 1))
	cases := []Case{
		{
			"O2: default changes reach live buckets",
			"8.1",
			only(weir.Bucket),
			scene(levels(), defaultsReach),
		},
		{"a change that is wrong changes nothing", "8.1", only(weir.Bucket), scene(minute, wrongChange)},
		{"a bucket keeps its balance", "8.2", bt, scene(minute, keepsBalance)},
		{"L2: changed limits trim a bucket", "8.2", bt, scene(minute, lowersBucket)},
		{"a bucket gained under the definition it had", "8.2", bt, scene(minute, gainedBefore)},
		{"capacity set back and forth", "8.2", bt, scene(minute, backAndForth)},
		{"a changed window keeps its units and ends", "8.2", wt, scene(window, windowChanged)},
		{"changed slots keep their ends", "8.2", ct, scene(slots, slotsChanged)},
		{"a full bucket may be forgotten after a minute", "8.4", bt, scene(minute, forgottenFull)},
		{"a denial leaves a bucket forgotten", "8.4", bt, scene(spent, forgottenDenied)},
		{"a used bucket is not forgotten", "8.4", bt, scene(minute, notForgotten)},
		{"a refund works under the definition in force", "8.6", bt, scene(minute, refundInForce)},
		{"growth works under the definition in force", "8.6", wt, scene(window, growthInForce)},
		{"an extend works under the definition in force", "8.6", ct, scene(slots, extendInForce)},
		{"without a definition the last one counts", "8.6", bt, scene(minute, refundRemoved)},
		{"a changed calendar counts the old period to its end", "8.5", timed(weir.Budget),
			scene(system(budgetOf("n", 100, "month", "")).from(parsed("2025-10-01T00:30:00Z")), calendarChanges)},
		{"a changed kind begins anew", "8.5", only(allKinds()...), scene(Setup{}, kindChanges)},
		{"a changed kind finds its old use", "8.5", only(allKinds()...), scene(Setup{}, kindReturns)},
	}
	return append(append(cases,
		perKind("L2: changed limits keep what is in use", "8.2", keepsUse)...),
		perKind("a change takes effect with the next call", "8.1", takesEffect)...)
}

func takesEffect(s *stage, k weir.Kind) {
	s.admit(ask("a", cost(10)))
	s.deny(ask("a", cost(1)))
	s.admit(ask("fresh", cost(4)))
	s.configure(everybody(slow(k, "n", 12)))
	st := s.statuses("a")[0]
	s.equal("capacity", st.Capacity, 12)
	s.admit(ask("b", cost(12)))
	s.configure(everybody(slow(k, "n", 3), slow(weir.Bucket, "new", 5)))
	s.fail(weir.NeverSatisfiable, ask("a", cost(4)))
	s.admit(ask("d", weir.Costs{"n": 3, "new": 5}))
	s.exactly(ask("e", cost(1)), 3, 5)
	s.configure(&weir.Definitions{})
	s.fail(weir.NoLimits, ask("a", cost(1)))
}

// calendarChanges has more periods of the new calendar end before the old one's than a store may
// care to look through.
func calendarChanges(s *stage) {
	s.admit(ask("a", cost(90)))
	s.configure(everybody(budgetOf("n", 100, "hour", "")))
	s.left("a", cost(10))
	for range 100 {
		s.admit(ask("a", cost(1)))
		s.Advance(time.Hour)
	}
	s.left("a", cost(10))
	s.exactly(ask("a", cost(1)), 10, 12)
	s.Advance(parsed("2025-11-01T00:00:00Z").Sub(s.Now()))
	s.left("a", cost(100))
	s.admit(ask("a", cost(100)))
}

// keepsUse raises and lowers a limit in use. A bucket keeps its balance, the others their use.
func keepsUse(s *stage, k weir.Kind) {
	s.admit(ask("a", cost(7)))
	s.configure(everybody(slow(k, "n", 20)))
	want := int64(13)
	if k == weir.Bucket {
		want = 3
	}
	s.left("a", cost(want))
	s.admit(ask("a", cost(2)))
	s.configure(everybody(slow(k, "n", 10)))
	s.left("a", cost(1))
	s.configure(everybody(slow(k, "n", 5)))
	want = -4
	if k == weir.Bucket {
		want = 1
	}
	s.left("a", cost(want))
	s.configure(everybody(slow(k, "n", 10)))
	s.left("a", cost(1))
	s.exactly(ask("a", cost(1)), 1, 3)
}

// defaultsReach changes the level that a live limit comes from, and the levels themselves.
func defaultsReach(s *stage) {
	r := &weir.Request{Entity: "other", Resource: "x", Costs: cost(30)}
	s.admit(r)
	d := levels().Definitions
	d.System = []weir.Limit{slow(weir.Bucket, "n", 25)}
	s.configure(d)
	s.fail(weir.NeverSatisfiable, r)
	r.Costs = cost(11)
	s.deny(r)
	r.Costs = cost(1)
	s.exactly(r, 10, 12)
	d = levels().Definitions
	d.Resources["x"] = []weir.Limit{slow(weir.Bucket, "n", 99)}
	s.configure(d)
	st := s.of(s.deny(r).Limits, "other", "n")
	s.equal("status", []any{st.Level, st.Capacity},
		[]any{weir.LevelResource, 99})
}

func wrongChange(s *stage) {
	s.admit(ask("a", cost(4)))
	for _, bad := range []*weir.Definitions{
		everybody(weir.Limit{Name: "n", Capacity: 0}),
		everybody(bucketOf("n", 20, 20, time.Minute), bucketOf("n", 20, 20, time.Minute)),
		everybody(bucketOf("n", 20, 20, time.Minute), budgetOf("u", 1, "year", "")),
		everybody(budgetOf("u", 1, "day", "Atlantis/Capital")),
		everybody(windowOf("w", 1, 1500*time.Millisecond)),
		everybody(bucketOf("1n", 20, 20, time.Minute)),
		{OnUnavailable: "maybe", System: []weir.Limit{bucketOf("n", 20, 20, time.Minute)}},
	} {
		s.refused(weir.Invalid, s.Configure(bad))
		st := s.statuses("a")
		s.equal("limits", []any{len(st), st[0].Capacity, st[0].Available}, []any{1, 10, 6})
	}
}

func keepsBalance(s *stage) {
	s.admit(ask("a", cost(7)))
	s.configure(everybody(bucketOf("n", 30, 60, time.Minute)))
	s.left("a", cost(3))
	s.returns(ask("a", cost(10)), 7*time.Second)
	s.Advance(time.Hour)
	s.left("a", cost(30))
}

func lowersBucket(s *stage) {
	s.admit(ask("a", cost(2)))
	s.configure(everybody(bucketOf("n", 4, 60, time.Minute)))
	s.exactly(ask("a", cost(1)), 4, 8)
	s.returns(ask("a", cost(4)), 4*time.Second)
}

// gainedBefore: until the next call the bucket gains under the rate that it had.
func gainedBefore(s *stage) {
	s.admit(ask("a", cost(10)))
	s.Advance(2 * time.Second)
	s.configure(everybody(bucketOf("n", 10, 600, time.Minute)))
	s.Advance(time.Second)
	s.admit(ask("a", cost(3))) // 3 at one a second, not 2 and 10
	s.deny(ask("a", cost(1)))
	s.Advance(500 * time.Millisecond)
	s.left("a", cost(5)) // from that call on, ten a second
	s.configure(everybody(bucketOf("n", 10, 6, time.Minute)))
	s.admit(ask("a", cost(5)))
	s.returns(ask("a", cost(1)), 10*time.Second)
}

func backAndForth(s *stage) {
	s.admit(ask("a", cost(10)))
	for range 5 {
		for _, capacity := range []int64{1000, 1, 10} {
			s.configure(everybody(bucketOf("n", capacity, 60, time.Minute)))
			s.left("a", cost(0))
			s.deny(ask("a", cost(1)))
		}
	}
	s.returns(ask("a", cost(1)), time.Second)
	s.Advance(5 * time.Second)
	s.configure(everybody(bucketOf("n", 2, 60, time.Minute)))
	s.admit(ask("a", cost(0))) // trims
	s.configure(everybody(bucketOf("n", 10, 60, time.Minute)))
	s.exactly(ask("a", cost(1)), 2, 4)
}

func windowChanged(s *stage) {
	s.admit(ask("a", cost(6)))
	s.Advance(10 * time.Second)
	s.configure(everybody(windowOf("n", 8, 20*time.Second)))
	s.admit(ask("a", cost(2))) // until 30 s; the first until 60 s
	s.returns(ask("a", cost(1)), 20*time.Second)
	s.returns(ask("a", cost(4)), 30*time.Second)
	s.returns(ask("a", cost(8)), 20*time.Second)
}

func slotsChanged(s *stage) {
	s.admit(ask("a", cost(6)))
	s.configure(everybody(slotsOf("n", 8, 10*time.Second)))
	s.admit(ask("a", cost(2)))
	s.returns(ask("a", cost(1)), 10*time.Second)
	s.returns(ask("a", cost(8)), 50*time.Second)
}

// forgottenFull: a minute after a bucket became full it counts as new, so that a raise finds it
// full.
func forgottenFull(s *stage) {
	for _, e := range []string{"kept", "gone"} {
		s.admit(ask(e, cost(5))) // full again after five seconds
	}
	s.Advance(64*time.Second + 999*time.Millisecond)
	s.configure(everybody(bucketOf("n", 30, 1, time.Hour)))
	s.admit(ask("kept", cost(0)))
	s.left("kept", cost(10))
	s.Advance(time.Millisecond)
	if s.h.FullKept && s.look("gone", "n") == 10 {
		return
	}
	s.left("gone", cost(30))
	s.exactly(ask("gone", cost(10)), 3, 4)
	s.left("kept", cost(10))
}

// forgottenDenied: a request that is denied takes nothing, also of the limits that would have
// admitted it. So a bucket that was forgotten by then, or never used, still starts full at a
// capacity that is raised a moment later.
func forgottenDenied(s *stage) {
	one := weir.Costs{"spent": 1}
	s.admit(ask("full", weir.Costs{"n": 5, "spent": 1})) // full again after five seconds
	s.admit(ask("beside", cost(5)))
	s.admit(ask("empty", one))
	s.Advance(65 * time.Second)
	s.deny(ask("full", weir.Costs{"n": 1, "spent": 1}))
	s.deny(several(charge("beside", cost(1)), charge("empty", one)))
	s.deny(several(charge("unused", cost(1)), charge("empty", one)))
	s.Advance(time.Second)
	s.configure(everybody(bucketOf("n", 30, 1, time.Hour), slow(weir.Bucket, "spent", 1)))
	for _, e := range []string{"full", "beside", "unused"} {
		if s.h.FullKept && s.look(e, "n") == 10 {
			continue
		}
		s.left(e, cost(30))
		s.exactly(ask(e, cost(10)), 3, 4)
	}
}

func notForgotten(s *stage) {
	l := s.admit(ask("a", cost(10)))
	s.adjust(l, 1, cost(200))
	s.Advance(199 * time.Second)
	s.left("a", cost(9))
	s.configure(everybody(bucketOf("n", 500, 60, time.Minute)))
	s.left("a", cost(9))
	s.deny(ask("a", cost(11)))
	s.admit(ask("a", cost(9)))
}

func refundInForce(s *stage) {
	l := s.admit(ask("a", cost(5)))
	s.configure(everybody(bucketOf("n", 20, 1, time.Hour)))
	s.cancel(l)
	s.left("a", cost(10)) // 5 and 5, below the new capacity
	l = s.admit(ask("a", cost(5)))
	s.configure(everybody(bucketOf("n", 7, 1, time.Hour)))
	s.cancel(l)
	s.left("a", cost(7))
	l = s.admit(ask("a", cost(7)))
	s.configure(everybody(bucketOf("n", 20, 60, time.Minute)))
	s.left("a", cost(0))
	s.adjust(l, 1, cost(0)) // from here on under the new one
	s.Advance(12 * time.Second)
	s.left("a", cost(19)) // 7 and 12, above the old capacity
}

func growthInForce(s *stage) {
	l := s.admit(ask("a", cost(4)))
	s.configure(everybody(windowOf("n", 10, 20*time.Second)))
	s.adjust(l, 1, cost(5)) // with the first 4, as these were taken
	s.returns(ask("a", cost(6)), time.Minute)
	s.Advance(time.Minute)
	s.adjust(l, 2, cost(10))
	s.returns(ask("a", cost(10)), 20*time.Second)
}

func extendInForce(s *stage) {
	l := s.admit(ask("a", cost(10)))
	s.Advance(10 * time.Second)
	s.configure(everybody(slotsOf("n", 10, 2*time.Hour)))
	r := s.extend(l)
	s.instant("holds until", r.HoldsUntil, s.Now().Add(2*time.Hour))
	s.instant("expires", r.Expires, s.Now().Add(2*time.Hour))
	s.returns(ask("a", cost(1)), 2*time.Hour)
}

// refundRemoved settles a lease whose limit is gone: its last definition caps the refund.
func refundRemoved(s *stage) {
	l := s.admit(ask("a", cost(8)))
	s.configure(&weir.Definitions{})
	s.Advance(5 * time.Second)
	s.cancel(l)
	s.configure(everybody(bucketOf("n", 30, 1, time.Hour)))
	s.readded(weir.Bucket, 10, 30)
}

func kindChanges(s *stage) {
	kinds := allKinds()
	for i, k := range kinds {
		s.configure(everybody(slow(k, "n", 10)))
		s.left("a", cost(10))
		s.admit(ask("a", cost(int64(i+1))))
	}
}

func kindReturns(s *stage) {
	kinds := allKinds()
	leases := map[weir.Kind]*weir.Lease{}
	for i, k := range kinds {
		s.configure(everybody(slow(k, "n", 10)))
		leases[k] = s.admit(ask("a", cost(int64(i+1))))
	}
	for i, k := range kinds {
		s.configure(everybody(slow(k, "n", 10)))
		s.left("a", cost(int64(9-i)))
	}
	// A lease is settled under its own kind, whatever the limit is by now.
	for _, k := range kinds {
		s.cancel(leases[k])
	}
	for _, k := range kinds {
		s.configure(everybody(slow(k, "n", 10)))
		s.left("a", cost(10))
	}
}
