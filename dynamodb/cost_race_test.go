package dynamodb

import (
	"sync"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
)

// TestCostOfCreationRace: two processes make the same item at once. Who loses learns the item from
// the refusal, and needs one write more.
func TestCostOfCreationRace(t *testing.T) {
	t.Parallel()
	s := newScene(t, madeTable(t))
	s.twoLimits()
	s.first.settled()
	racers := []*party{s.join(), s.join()}
	both := newMeeting(len(racers))
	for _, p := range racers {
		p.reset()
		p.wire.hold(func(r sentRequest) {
			if r.operation == "PutItem" && !both.wait() {
				t.Error("only one of them made the item")
			}
		})
	}
	var wg sync.WaitGroup
	errs := make([]error, len(racers))
	for i, p := range racers {
		wg.Go(func() { _, errs[i] = p.reserve(t.Context(), "solo") })
	}
	wg.Wait()
	got := make(map[string]int)
	for i, p := range racers {
		if errs[i] != nil {
			t.Fatal(errs[i])
		}
		p.settled()
		got[inCalls(p.calls.Snapshot())]++
	}
	const (
		winner = "2 BatchGetItem, 1 PutItem, 1 UpdateItem (1 refused)"
		loser  = "2 BatchGetItem, 1 PutItem (1 refused), 2 UpdateItem (1 refused)"
	)
	if got[winner] != 1 || got[loser] != 1 {
		t.Errorf("got %v, want one %q and one %q", got, winner, loser)
	}
	s.holds("solo", "rpm", 1000, 2)
	s.holds("solo", "tpm", 100_000, 200)
}

// TestStaleConfiguration: a process goes by a configuration that another has changed. It is told
// by the item, reads once, and never writes back what it had.
func TestStaleConfiguration(t *testing.T) {
	t.Parallel()
	table := madeTable(t)
	for name, tc := range map[string]struct {
		entity       string
		before, then int64
	}{
		"entity, raised":    {"solo", 1000, 2000},
		"entity, lowered":   {"solo", 2000, 1000},
		"resource, raised":  {"", 1000, 2000},
		"resource, lowered": {"", 2000, 1000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, table)
			stale, fresh := s.first, s.join()
			stale.set(tc.entity, costResource, perMinute("rpm", tc.before))
			r := weir.Costs{"rpm": 1}
			for range 3 {
				stale.take("solo", r)
				fresh.take("solo", r)
				fresh.settled() // it has the configuration now
			}
			stale.reset()
			fresh.reset()
			s.clock.Advance(time.Second)
			fresh.set(tc.entity, costResource, perMinute("rpm", tc.then))
			fresh.take("solo", r)
			base := s.bucket("solo", 0).Limit("rpm")
			if base.Capacity != 1000*tc.then || base.Consumed != 7000 {
				t.Fatalf("after one reservation: got %+v", base)
			}
			const turns = 50
			for range turns {
				fresh.take("solo", r)
				stale.take("solo", r)
			}
			end := s.bucket("solo", 0).Limit("rpm")
			const units = 1000 * 2 * turns
			if end.Consumed != base.Consumed+units || end.Balance != base.Balance-units {
				t.Errorf("got %+v, want %d more taken than in %+v", end, units, base)
			}
			redefined := stale.redefined() + fresh.redefined()
			got := stale.calls.Snapshot()
			t.Logf("%d definitions written; the stale process: %s", redefined, inCalls(got))
			if redefined != 1 || refusedWrites(got) != 1 || got.Reads() > 2 {
				t.Errorf("got %d definitions written, and of the stale process %s", redefined, inCalls(got))
			}
		})
	}
}

// redefined is how often the process wrote a definition to an item that was there.
func (p *party) redefined() int {
	return p.wire.count(func(r sentRequest) bool { return r.redefines })
}
