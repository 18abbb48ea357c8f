package conformance

import (
	"time"

	"github.com/weir-limiter/weir"
)

// removedCases are line 8.3: limits that are removed and added.
func removedCases() []Case {
	return append(append(append([]Case{
		{"L1: changed limits, one added", "8.3", only(weir.Bucket), scene(Setup{}, addedLimit)},
		{"E1: leftovers of a removed entity", "8.3", only(weir.Bucket), scene(Setup{}, removedEntity)},
		{"P1: leftovers of everything removed", "8.3", only(weir.Bucket), scene(Setup{}, removedAll)},
		{"units that ran out while a limit was removed", "8.3", timed(weir.Window, weir.Concurrency),
			scene(Setup{}, ranOutMeanwhile)},
		{"an unnamed slot of a removed limit", "8.3", only(weir.Bucket, weir.Concurrency),
			scene(Setup{}, slotRemoved)},
	}, perKind("E1: leftovers of a removed limit", "8.3", removedLimit)...),
		perKind("a lease of a removed limit is settled", "8.3", removedSettled)...),
		perKind("a limit that is added again", "8.3", addedAgain)...)
}

// addedLimit: a limit that is added to a live entity starts full and admits.
func addedLimit(s *stage) {
	a, b := slow(weir.Bucket, "a", 10), slow(weir.Bucket, "b", 10)
	s.configure(everybody(a))
	s.admit(ask("e", weir.Costs{"a": 4}))
	s.configure(everybody(a, b))
	s.left("e", weir.Costs{"a": 6, "b": 10})
	s.exactly(ask("e", weir.Costs{"a": 1, "b": 1}), 6, 8)
	s.exactly(ask("e", weir.Costs{"b": 1}), 4, 6)
}

func removedLimit(s *stage, k weir.Kind) {
	other := slow(weir.Bucket, "other", 10)
	s.configure(everybody(slow(k, "n", 10), other))
	s.admit(ask("a", weir.Costs{"n": 10, "other": 1}))
	s.configure(everybody(other))
	s.fail(weir.UnknownLimit, ask("a", cost(1)))
	l := s.admit(ask("a", weir.Costs{"other": 1}))
	s.equal("judged", order(l.Limits), []string{"a other"})
	s.equal("status", order(s.statuses("a")), []string{"a other"})
	s.exactly(ask("a", weir.Costs{"other": 1}), 8, 10)
}

func removedSettled(s *stage, k weir.Kind) {
	other := slow(weir.Bucket, "other", 10)
	both := everybody(slow(k, "n", 10), other)
	s.configure(both)
	done := s.admit(ask("a", weir.Costs{"n": 3, "other": 3}))
	back := s.admit(ask("a", weir.Costs{"n": 4, "other": 4}))
	s.configure(everybody(other))
	s.extend(done)
	s.adjust(done, 1, weir.Costs{"n": 2, "other": 2})
	s.complete(done, weir.Costs{"n": 1, "other": 1})
	s.cancel(back)
	s.left("a", weir.Costs{"other": 9})
	s.configure(both)
	s.left("a", weir.Costs{"other": 9})
	want := int64(9)
	if k == weir.Concurrency {
		want = 10
	}
	s.readded(k, want, 10)
}

// readded is what the limit n of a has after it was removed and added again: what it had, or all
// of it where the store may forget a bucket.
func (s *stage) readded(k weir.Kind, had, full int64) int64 {
	s.Helper()
	got := s.look("a", "n")
	forgotten := got == full && k == weir.Bucket && s.h.RemovedForgotten
	if got != had && !forgotten {
		s.Fatalf("got %d available after it was added again, want %d", got, had)
	}
	return got
}

// addedAgain: what is in use counts again, and a bucket keeps its balance while it is remembered.
func addedAgain(s *stage, k weir.Kind) {
	s.admit(ask("a", cost(7)))
	s.configure(&weir.Definitions{})
	s.fail(weir.NoLimits, ask("a", cost(1)))
	s.configure(everybody(slow(k, "n", 10)))
	left := int(s.readded(k, 3, 10))
	s.exactly(ask("a", cost(1)), left, left+2)
}

func ranOutMeanwhile(s *stage) {
	limits := everybody(windowOf("w", 10, time.Minute), slotsOf("c", 10, time.Minute))
	s.configure(limits)
	s.admit(ask("a", weir.Costs{"w": 10, "c": 10}))
	s.Advance(20 * time.Second)
	s.admit(ask("b", weir.Costs{"w": 10, "c": 10}))
	s.configure(&weir.Definitions{})
	s.Advance(40 * time.Second)
	s.configure(limits)
	s.left("a", weir.Costs{"w": 10, "c": 10})
	s.left("b", weir.Costs{"w": 0, "c": 0})
	s.returns(ask("b", weir.Costs{"w": 1}), 20*time.Second)
}

func slotRemoved(s *stage) {
	n, c := slow(weir.Bucket, "n", 10), slow(weir.Concurrency, "c", 1)
	s.configure(everybody(n, c))
	l := s.admit(ask("a", cost(1)))
	s.deny(ask("a", cost(1)))
	s.configure(everybody(n))
	s.admit(ask("a", cost(1)))
	s.complete(l)
	s.configure(everybody(n, c))
	s.exactly(ask("a", cost(1)), 1, 3)
}

// removedEntity takes an entity's own limits and its parent away again.
func removedEntity(s *stage) {
	system := []weir.Limit{slow(weir.Bucket, "n", 10)}
	d := family([]weir.Limit{slow(weir.Bucket, "mine", 5)}, []weir.Limit{slow(weir.Bucket, "mine", 3)})
	d.System = system
	s.configure(d)
	s.exactly(ask("child", weir.Costs{"mine": 1}), 3, 5)
	s.configure(everybody(system...))
	s.fail(weir.UnknownLimit, ask("child", weir.Costs{"mine": 1}))
	l := s.admit(ask("child", cost(1)))
	s.equal("judged", order(l.Limits), []string{"child n"})
	s.exactly(ask("child", cost(1)), 9, 11)
	s.left("parent", cost(10))
	e, err := s.Explain(s.Context(), "child", resource)
	if err != nil || e.Level != weir.LevelSystem || len(e.Hidden) > 0 || e.Parent != nil {
		s.Fatalf("explain: got %+v, %v, want the system's limits alone", e, err)
	}
}

func removedAll(s *stage) {
	s.configure(everybody(slow(weir.Bucket, "n", 10)))
	s.cancel(s.admit(ask("a", cost(10))))
	s.configure(&weir.Definitions{})
	s.fail(weir.NoLimits, ask("a", cost(1)))
	_, err := s.Status(s.Context(), "a", resource)
	s.refused(weir.NoLimits, err)
	statuses, err := s.Status(s.Context(), "a", "")
	if err != nil && isUnsupported(err) {
		return
	}
	if err != nil || len(statuses) > 0 {
		s.Fatalf("status of everything: got %v, %v, want nothing", statuses, err)
	}
}
