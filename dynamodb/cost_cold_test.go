package dynamodb

import (
	"context"
	"sync"
	"testing"
	"time"
)

// TestCostOfCold: a process that never saw an item writes it at once, and reads the configuration
// once for each cache time, after an answer.
func TestCostOfCold(t *testing.T) {
	t.Parallel()
	s := newScene(t, madeTable(t))
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

// TestCostOfColdCrowd: all who come while the configuration is being read go without it, and it is
// read once.
func TestCostOfColdCrowd(t *testing.T) {
	t.Parallel()
	s := newScene(t, madeTable(t))
	s.plenty("")
	s.first.take("solo", one())
	s.first.settled()
	p := s.join()
	p.reset()
	answered := make(chan struct{})
	p.wire.hold(func(r sentRequest) {
		if isRead(r) {
			<-answered
		}
	})
	var wg sync.WaitGroup
	errs := make([]error, crowdCallers)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for i := range errs {
		wg.Go(func() { _, errs[i] = p.reserve(ctx, "solo") })
	}
	wg.Wait()
	first := p.calls.Snapshot()
	close(answered)
	p.settled()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	if first.Reads() != 0 || first.Writes() > crowdCallers {
		t.Errorf("until the answers: got %s, want no read", inCalls(first))
	}
	if got := p.calls.Snapshot(); got.Reads() != 1 {
		t.Errorf("in all: got %s, want one read", inCalls(got))
	}
	s.holds("solo", "rpm", 10_000_000, 1+crowdCallers)
}
