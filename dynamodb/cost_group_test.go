package dynamodb

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weir-limiter/weir"
)

// The callers of the group commit tests. Each makes its next call when it has the answer to the
// last.
const (
	groupCallers = 64
	groupTurns   = 30
	groupCalls   = groupCallers * groupTurns
)

// concurrently makes all callers take the given number of turns.
func (p *costProcess) reserveConcurrently(
	turn func(ctx context.Context, caller int) error, turns int,
) {
	p.t.Helper()
	ctx, cancel := context.WithCancel(p.t.Context())
	defer cancel()
	var wg sync.WaitGroup
	var failed atomic.Pointer[error]
	for caller := range groupCallers {
		wg.Go(func() {
			for range turns {
				if err := turn(ctx, caller); err != nil {
					if failed.CompareAndSwap(nil, &err) {
						cancel()
					}
					return
				}
			}
		})
	}
	wg.Wait()
	p.settled()
	if err := failed.Load(); err != nil {
		p.t.Fatal(*err)
	}
}

// reserve makes one reservation.
func (p *costProcess) reserve(ctx context.Context, entity string) (*weir.Lease, error) {
	return p.Reserve(ctx, &weir.Request{
		Entity: entity, Resource: costResource, Costs: weir.Costs{"rpm": 1, "tpm": 100},
	})
}

// plenty sets limits that are never exceeded.
func (s *costWorld) plenty(entity string) {
	s.t.Helper()
	s.first.set(entity, costResource, perMinute("rpm", 10_000_000), perMinute("tpm", 1_000_000_000))
}

// TestCostOfOneBucket checks that callers on one bucket share its writes, and that each unit is
// counted once.
func TestCostOfOneBucket(t *testing.T) {
	t.Parallel()
	table := madeTable(t)
	for name, settle := range map[string]bool{"reserve": false, "reserve and complete": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newCostWorld(t, table, processLeases)
			s.plenty("")
			p := s.first
			p.take("hot", one())
			p.settled()
			p.reset()
			p.reserveConcurrently(func(ctx context.Context, _ int) error {
				lease, err := p.reserve(ctx, "hot")
				if err == nil && settle {
					_, err = lease.Complete(ctx, weir.Costs{"tpm": 40})
				}
				return err
			}, groupTurns)
			got := p.calls.Snapshot()
			t.Logf("%d callers on one bucket: %d × %s: %s; %s writes each", groupCallers, groupCalls, name,
				inCalls(got), perCall(got.Writes()))
			if got.Reads() != 0 || refusedWrites(got) != 0 {
				t.Errorf("got %s, want writes alone", inCalls(got))
			}
			bound := int64(groupCalls / 10)
			tokens := int64(100)
			if settle {
				bound, tokens = 2*bound, 40
			}
			if got.Writes() > bound {
				t.Errorf("got %d writes, want at most %d", got.Writes(), bound)
			}
			s.holds("hot", "rpm", 10_000_000, 1+groupCalls)
			s.holds("hot", "tpm", 1_000_000_000, 100+groupCalls*tokens)
		})
	}
}

// perCall formats a number of writes as writes for each reservation.
func perCall(writes int64) string {
	const scale = 10_000
	return fmt.Sprintf("0.%04d", writes*scale/groupCalls)
}

// holds checks the stored balance and consumption of a limit after the given number of units was
// taken.
func (s *costWorld) holds(entity, limit string, capacity, taken int64) {
	s.t.Helper()
	l := s.bucket(entity, 0).Limit(limit)
	if l.Consumed != 1000*taken || l.Balance != 1000*(capacity-taken) {
		s.t.Errorf("%s of %s: got balance %d and %d consumed, want %d and %d (milli-units)",
			limit, entity, l.Balance, l.Consumed, 1000*(capacity-taken), 1000*taken)
	}
}

// TestCostOfOneParent checks that children share the writes of their parent's bucket item.
func TestCostOfOneParent(t *testing.T) {
	t.Parallel()
	_, table := costKinds(t) // the lean table is faster
	s := newCostWorld(t, table, processLeases)
	s.plenty("")
	p := s.first
	child := func(i int) string { return fmt.Sprintf("bot-%d", i) }
	p.declare("team", "")
	for i := range groupCallers {
		p.declare(child(i), "team")
	}
	p.reserveConcurrently(func(ctx context.Context, caller int) error { // makes the items
		_, err := p.reserve(ctx, child(caller))
		return err
	}, 1)
	p.reset()
	p.reserveConcurrently(func(ctx context.Context, caller int) error {
		_, err := p.reserve(ctx, child(caller))
		return err
	}, groupTurns)
	got := p.calls.Snapshot()
	parent := p.wire.count(func(r sentRequest) bool { return r.entity == "team" })
	t.Logf("%d children of one parent: %d reserves: %s; %s writes of the parent each", groupCallers,
		groupCalls, inCalls(got), perCall(int64(parent)))
	if parent > groupCalls/10 {
		t.Errorf("got %d writes of the parent, want at most %d", parent, groupCalls/10)
	}
	if children := got.Writes() - int64(parent); children != groupCalls || got.Reads() != 0 {
		t.Errorf("got %d writes of the children and %d reads, want %d and none",
			children, got.Reads(), groupCalls)
	}
	s.holds("team", "rpm", 10_000_000, groupCallers+groupCalls)
	s.holds(child(0), "rpm", 10_000_000, 1+groupTurns)
}

// TestCascadeWritesAreConcurrent holds the write of the child until the parent's write has come,
// and the other way round: both are sent in one round trip.
func TestCascadeWritesAreConcurrent(t *testing.T) {
	t.Parallel()
	table := madeTable(t)
	for name, lacking := range map[string]bool{"same limits": false, "the parent lacks one": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newCostWorld(t, table, processLeases)
			if lacking {
				s.first.set("team", costResource, perMinute("rpm", 1000))
			}
			p := warmFamily(s)
			p.settled()
			p.reset()
			both := newBarrier(2)
			p.wire.hold(func(r sentRequest) {
				if !both.wait() {
					t.Errorf("the write of %s went alone", r.entity)
				}
			})
			p.take("bot", one())
			p.settled()
			p.wire.hold(nil)
			if got := inCalls(p.calls.Snapshot()); got != "2 UpdateItem" {
				t.Errorf("got %s", got)
			}
			s.holds("bot", "tpm", 100_000, 200)
			if l := s.bucket("team", 0).Limit("tpm"); (l == nil) != lacking {
				t.Errorf("the parent's tpm: got %+v", l)
			}
			s.holds("team", "rpm", 1000, 2)
		})
	}
}
