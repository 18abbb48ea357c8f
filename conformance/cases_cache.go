package conformance

import (
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/limiter"
)

// cacheCases returns the cases of line 8.1 in which another process changes the configuration, and
// a case about the limiter's clock.
func cacheCases() []storeCase {
	bt := timed(weir.Bucket)
	ten := Setup{Definitions: systemLimits(slowLimit(weir.Bucket, "n", 10))}
	cached, uncached := limiter.Options{CacheTTL: 10 * time.Second}, limiter.Options{CacheTTL: -1}
	return append([]storeCase{
		{"a change elsewhere takes effect within the cache time", "8.1", bt,
			onBroken(ten.under(cached), changedElsewhere)},
		{"the cache time is a minute by default", "8.1", bt, onBroken(ten, cachedMinute)},
		{"no limits are remembered too", "8.1", bt, onBroken(Setup{}, negativeCached)},
		{"without a cache a change takes effect at once", "8.1", bt,
			onBroken(ten.under(uncached), changedUncached)},
		{"the cache can be dropped", "8.1", bt, onBroken(ten, cacheDropped)},
		{"the clock is read once for a call", "1.2", timed(weir.Bucket, weir.Concurrency), clockReadOnce},
	}, reachCases(ten, cached, uncached)...)
}

// reachCases returns the cases of line 8.1 for processes whose configuration is out of date. The
// state that they have of a bucket admits more, or less, than what is configured.
func reachCases(ten Setup, cached, uncached limiter.Options) []storeCase {
	const o2 = "O2: default changes reach "
	bt := timed(weir.Bucket)
	idle := func(s *faultyWorld) *caseWorld {
		s.Advance(35 * time.Second)
		return s.caseWorld
	}
	var cases []storeCase
	for _, change := range []struct {
		name string
		play func(s *faultyWorld, later func(*faultyWorld) *caseWorld)
	}{
		{"lowered", reachLowered}, {"raised", reachRaised},
		{"all removed", reachRemoved}, {"one removed", reachRemovedOne},
	} {
		with := func(later func(*faultyWorld) *caseWorld) func(*faultyWorld) {
			return func(s *faultyWorld) { change.play(s, later) }
		}
		cases = append(cases,
			storeCase{o2 + "an idle process: " + change.name, "8.1", bt,
				onBroken(ten.under(cached), with(idle))},
			storeCase{o2 + "an idle process without a cache: " + change.name, "8.1", bt,
				onBroken(ten.under(uncached), with(idle))},
			storeCase{o2 + "a process that starts: " + change.name, "8.1", bt,
				onBroken(ten.under(cached), with((*faultyWorld).secondProcess))})
	}
	return cases
}

// secondProcess starts another process on the same store.
func (s *faultyWorld) secondProcess() *caseWorld {
	s.Helper()
	b := s.store.Store
	if s.opens.OpenSecond != nil {
		b = s.opens.OpenSecond(s.T, b)
	}
	w := &storeWorld{timekeeper: s.World}
	var err error
	w.Limiter, err = limiter.New(b, &limiter.Options{Now: s.Now, StoreTimeout: s.opens.StoreTimeout})
	if err != nil {
		s.Fatalf("open a limiter: %v", err)
	}
	return &caseWorld{T: s.T, World: s.opens.front(w), h: s.h}
}

// reachLowered checks that a request is refused because of the lowered capacity although the bucket
// has the units, and that none of it is charged.
func reachLowered(s *faultyWorld, later func(*faultyWorld) *caseWorld) {
	s.admit(ask("a", cost(2)))
	s.configureElsewhere(slowLimit(weir.Bucket, "n", 5))
	p := later(s)
	p.fail(weir.NeverSatisfiable, ask("a", cost(8)))
	p.expectAvailable("a", cost(5))
	p.exactly(ask("a", cost(1)), 5, 8)
	p.fail(weir.NeverSatisfiable, ask("b", cost(6)))
	p.exactly(ask("b", cost(1)), 5, 8)
}

// reachRaised checks that a bucket keeps its balance, and that everything else is as configured.
func reachRaised(s *faultyWorld, later func(*faultyWorld) *caseWorld) {
	s.admit(ask("a", cost(4)))
	s.configureElsewhere(slowLimit(weir.Bucket, "n", 20))
	p := later(s)
	p.deny(ask("a", cost(7))) // and not never satisfiable
	p.deny(ask("a", cost(20)))
	p.exactly(ask("a", cost(1)), 6, 8)
	p.exactly(ask("b", cost(1)), 20, 22)
}

// reachRemoved checks that a request without any limits is refused, and that nothing of it is
// charged.
func reachRemoved(s *faultyWorld, later func(*faultyWorld) *caseWorld) {
	s.admit(ask("a", cost(2)))
	s.configureElsewhere()
	p := later(s)
	p.fail(weir.NoLimits, ask("a", cost(3)))
	p.fail(weir.NoLimits, ask("b", cost(3)))
	s.configureElsewhere(slowLimit(weir.Bucket, "n", 10))
	s.Advance(time.Minute)
	p.expectAvailable("a", cost(8))
}

// reachRemovedOne checks that a request with a removed limit's name is refused, and that nothing of
// it is charged.
func reachRemovedOne(s *faultyWorld, later func(*faultyWorld) *caseWorld) {
	s.configureElsewhere(slowLimit(weir.Bucket, "m", 10), slowLimit(weir.Bucket, "n", 10))
	s.limiter.DropCache()
	s.admit(ask("a", weir.Costs{"m": 1, "n": 2}))
	s.configureElsewhere(slowLimit(weir.Bucket, "n", 10))
	p := later(s)
	p.fail(weir.UnknownLimit, ask("a", weir.Costs{"m": 1, "n": 2}))
	p.expectAvailable("a", cost(8))
	p.exactly(ask("a", cost(1)), 8, 10)
}

// configureElsewhere changes the store's configuration without the limiter.
func (s *faultyWorld) configureElsewhere(limits ...weir.Limit) {
	s.Helper()
	other := s.store.Store
	if s.opens.OpenSecond != nil {
		other = s.opens.OpenSecond(s.T, other)
	}
	d, err := systemLimits(limits...).Normalize()
	if err != nil {
		s.Fatalf("definitions: %v", err)
	}
	switch b := other.(type) {
	case driver.ConfigWriter:
		err = b.WriteConfig(s.Context(), s.Now(), d)
	case driver.ConfigEditor:
		err = b.WriteLimits(s.Context(), s.Now(), weir.Subject{}, d.System)
	default:
		s.Skipf("the store's configuration cannot be written")
	}
	if err != nil {
		s.Fatalf("write the configuration: %v", err)
	}
}

func changedElsewhere(s *faultyWorld) {
	s.admit(ask("a", cost(4)))
	s.configureElsewhere(slowLimit(weir.Bucket, "n", 5))
	s.Advance(10*time.Second - time.Millisecond)
	s.deny(ask("a", cost(7))) // the old capacity still holds 10
	s.Advance(time.Millisecond)
	s.fail(weir.NeverSatisfiable, ask("a", cost(7)))
	s.expectAvailable("a", cost(5))
}

func cachedMinute(s *faultyWorld) {
	s.admit(ask("a", cost(4)))
	s.configureElsewhere(slowLimit(weir.Bucket, "n", 5))
	s.Advance(time.Minute - time.Millisecond)
	s.deny(ask("a", cost(7)))
	s.fail(weir.NeverSatisfiable, ask("b", cost(7))) // this entity's limits were not cached
	s.Advance(time.Millisecond)
	s.fail(weir.NeverSatisfiable, ask("a", cost(7)))
}

func negativeCached(s *faultyWorld) {
	s.fail(weir.NoLimits, ask("a", cost(4)))
	s.configureElsewhere(slowLimit(weir.Bucket, "n", 5))
	s.fail(weir.NoLimits, ask("a", cost(4)))
	s.Advance(time.Minute)
	s.admit(ask("a", cost(4)))
}

func changedUncached(s *faultyWorld) {
	s.admit(ask("a", cost(4)))
	s.configureElsewhere(slowLimit(weir.Bucket, "n", 5))
	s.fail(weir.NeverSatisfiable, ask("a", cost(7)))
	s.configureElsewhere(slowLimit(weir.Bucket, "n", 10))
	s.deny(ask("a", cost(7)))
}

func cacheDropped(s *faultyWorld) {
	s.admit(ask("a", cost(4)))
	s.configureElsewhere(slowLimit(weir.Bucket, "n", 5))
	s.deny(ask("a", cost(7)))
	before := s.limiter.CacheStats()
	s.limiter.DropCache()
	s.fail(weir.NeverSatisfiable, ask("a", cost(7)))
	after := s.limiter.CacheStats()
	if before.Hits == 0 || before.Misses == 0 || after.Misses <= before.Misses {
		s.Fatalf(
			"got %+v before the drop and %+v after it, want hits before and a miss after",
			before,
			after,
		)
	}
}

// clockReadOnce checks that a call reads the clock once: the limiter's clock jumps by a second with
// each reading.
func clockReadOnce(t T, h StoreHarness) {
	clock, readings := NewClock(begin()), 0
	now := func() time.Time {
		readings++
		clock.Advance(time.Second)
		return clock.Now()
	}
	set := Setup{Start: begin(), Definitions: systemLimits(
		slowLimit(weir.Bucket, "n", 10), slotsOf("c", 10, time.Minute))}
	lim, err := limiter.New(h.Open(t, set), &limiter.Options{Now: now})
	if err != nil {
		t.Fatalf("open a limiter: %v", err)
	}
	s := &caseWorld{T: t, World: &storeWorld{Limiter: lim, timekeeper: clock}, h: h.Service(t)}
	defer func() { _ = lim.Close() }()
	once := func(verb string, f func()) {
		readings = 0
		f()
		s.equal("readings of the clock in "+verb, readings, 1)
	}
	var l *weir.Lease
	once("reserve", func() { l = s.admit(ask("a", cost(1))) })
	s.equalTime("the ID's time", l.ID.Time(), clock.Now())
	s.equalTime("reserved at", l.ReservedAt, clock.Now())
	s.equalTime("holds until", l.HoldsUntil, clock.Now().Add(time.Minute))
	once("adjust", func() { s.adjust(l, 1, cost(2)) })
	once("extend", func() {
		s.equalTime("holds until", s.extend(l).HoldsUntil, clock.Now().Add(time.Minute))
	})
	once("complete", func() { s.complete(l) })
	once("status", func() { s.expectAvailable("a", cost(8)) })
}
