package dynamodb

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/limiter"
)

// TestCostOfColdItem checks that a process that has not seen an item writes it at once, and reads
// the configuration once for each cache time, at the same time as a write.
func TestCostOfColdItem(t *testing.T) {
	t.Parallel()
	s := newCostWorld(t, madeTable(t), processLeases)
	warmFlat(s)
	s.first.settled()
	p := s.join()
	p.reset()
	const every, reserves = 5 * time.Second, 36
	for range reserves { // three cache times
		p.take("solo", one())
		p.settled()
		s.clock.Advance(every)
	}
	if got, want := inCalls(p.calls.Snapshot()), "3 BatchGetItem, 36 UpdateItem"; got != want {
		t.Errorf("in three minutes: got %s, want %s", got, want)
	}
	if l := s.bucket("solo", 0).Limit("rpm"); l.Consumed != 1000*(1+reserves) {
		t.Errorf("got %d consumed, want %d", l.Consumed, 1000*(1+reserves))
	}
}

// TestCostOfConcurrentColdReserves checks that all callers that come while the configuration is
// being read wait for that read. The first caller has written already; the others share the writes
// that follow.
func TestCostOfConcurrentColdReserves(t *testing.T) {
	t.Parallel()
	s := newCostWorld(t, madeTable(t), processLeases)
	s.plenty("")
	s.first.take("solo", one())
	s.first.settled()
	p := s.join()
	p.reset()
	waiting := newBarrier(groupCallers)
	p.wire.hold(func(r sentRequest) {
		if isRead(r) && !waiting.wait() { // hold the read until all callers are there
			t.Error("the callers did not come")
		}
	})
	var wg sync.WaitGroup
	errs := make([]error, groupCallers)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for i := range errs {
		wg.Go(func() {
			if i > 0 {
				waiting.arrive()
			}
			_, errs[i] = p.reserve(ctx, "solo")
		})
	}
	wg.Wait()
	p.settled()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	got := p.calls.Snapshot()
	t.Logf("%d callers: %s", groupCallers, inCalls(got))
	if got.Reads() != 1 || got.Writes() > groupCallers {
		t.Errorf("got %s, want one read", inCalls(got))
	}
	s.holds("solo", "rpm", 10_000_000, 1+groupCallers)
}

// TestColdReserveIsOneRoundTrip checks that the read and the write of a process without any state
// are in flight at the same time, and that its answer waits for both.
func TestColdReserveIsOneRoundTrip(t *testing.T) {
	t.Parallel()
	s := newCostWorld(t, madeTable(t), processLeases)
	warmFlat(s)
	s.first.settled()
	p := s.join()
	p.reset()
	both := newBarrier(2)
	p.wire.hold(func(sentRequest) {
		if !both.wait() {
			t.Error("the read and the write were not in flight at the same time")
		}
	})
	p.take("solo", one())
	if got, want := inCalls(p.calls.Snapshot()), "1 BatchGetItem, 1 UpdateItem"; got != want {
		t.Errorf("when the answer was there: got %s, want %s", got, want)
	}
}

// TestColdReserveRefundsIfReadFails checks that a call is unavailable if the configuration cannot
// be read, and that the units it took are refunded.
func TestColdReserveRefundsIfReadFails(t *testing.T) {
	t.Parallel()
	w := newFaultWorld(t)
	w.limits(t, "acme", perSecond("rpm", 100, 1))
	mustTake(t, w.trapped(t, limiter.Options{}), "acme", 10)
	p := &trap{fault: testkit.Throttle, operation: "BatchGetItem"}
	p.set(1 << 30)
	s := w.trapped(t, limiter.Options{}, p)
	_, err := s.limiter.Reserve(t.Context(), rpmOf("acme", 60))
	if !errors.Is(err, weir.Unavailable) {
		t.Errorf("got %v, want unavailable", err)
	}
	s.store.running.Wait()
	w.wantTaken(t, "acme", "rpm", 10)
	p.set(0)
	mustTake(t, s, "acme", 90)
}
