package dynamodb

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
)

// TestCostOfCreationRace makes two processes create the same item at the same time. The loser gets
// the item with the refusal and needs one more write.
func TestCostOfCreationRace(t *testing.T) {
	t.Parallel()
	s := newCostWorld(t, madeTable(t), processLeases)
	s.twoLimits()
	s.first.settled()
	racers := []*costProcess{s.join(), s.join()}
	both := newBarrier(len(racers))
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

// TestStaleConfiguration makes a process use a configuration that another process has changed. The
// item shows it the change; it reads once, and never writes its old definitions back.
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
			s := newCostWorld(t, table, processLeases)
			stale, fresh := s.first, s.join()
			stale.set(tc.entity, costResource, perMinute("rpm", tc.before))
			r := weir.Costs{"rpm": 1}
			for range 3 {
				stale.take("solo", r)
				fresh.take("solo", r)
				fresh.settled() // it has read the configuration
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

// redefined returns the number of times that the process wrote a definition to an existing item.
func (p *costProcess) redefined() int {
	return p.wire.count(func(r sentRequest) bool { return r.redefines })
}

// TestRefundAfterTrim makes another process lower the limit and trim the bucket while a cold
// process waits for the configuration. The refund of the cold process does not fill the bucket
// again, and returns the units that the trimmed bucket lacks because of the take.
func TestRefundAfterTrim(t *testing.T) {
	t.Parallel()
	table := madeTable(t)
	for name, tc := range map[string]struct{ asked, used, then, left int64 }{
		"above what is left": {900, 10, 10, 0},
		"into what is left":  {90, 5, 50, 45}, // 10 of 100 are left, 5 are taken, 40 are refunded
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newCostWorld(t, table, processLeases)
			before := perMinute("rpm", 1000)
			if tc.asked < 100 {
				before = perMinute("rpm", 100)
			}
			s.first.set("", costResource, before)
			s.first.take("solo", weir.Costs{"rpm": 0})
			s.first.settled()
			written, trimmed := make(chan struct{}), make(chan struct{})
			p := s.join(func(o *Options) {
				tell := sync.OnceFunc(func() { close(written) })
				o.HTTP = &http.Client{Transport: &answeredWrite{o.HTTP.Transport, tell}}
			})
			p.wire.hold(func(r sentRequest) {
				if isRead(r) {
					<-trimmed
				}
			})
			done := make(chan error, 1)
			go func() {
				r := &weir.Request{Entity: "solo", Resource: costResource, Costs: weir.Costs{"rpm": tc.asked}}
				_, err := p.Reserve(t.Context(), r)
				done <- err
			}()
			<-written
			s.first.set("", costResource, perMinute("rpm", tc.then))
			s.first.take("solo", weir.Costs{"rpm": tc.used})
			s.first.settled()
			close(trimmed)
			if err := <-done; !errors.Is(err, weir.NeverSatisfiable) {
				t.Fatalf("got %v, want never satisfiable", err)
			}
			p.settled()
			if l := s.bucket("solo", 0).Limit("rpm"); l.Balance != 1000*tc.left {
				t.Errorf("got %d of %d, want %d", l.Balance/1000, l.Capacity/1000, tc.left)
			}
		})
	}
}

// answeredWrite is a transport that reports when an update of an item has been answered.
type answeredWrite struct {
	base http.RoundTripper
	tell func()
}

// RoundTrip sends a request.
func (a *answeredWrite) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := a.base.RoundTrip(req)
	if strings.HasSuffix(req.Header.Get("X-Amz-Target"), ".UpdateItem") {
		a.tell()
	}
	return resp, err
}
