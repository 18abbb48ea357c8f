//go:build cgo

package tigerbeetle

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/soak"
	"github.com/weir-limiter/weir/limiter"
)

// createHookLedger calls a function before the next transfers are created.
type createHookLedger struct {
	Ledger

	mu   sync.Mutex
	then func()
	lose func() bool
}

func (b *createHookLedger) CreateTransfers(
	ctx context.Context, t []tb.Transfer,
) ([]tb.CreateTransferResult, error) {
	b.mu.Lock()
	then := b.then
	b.then = nil
	b.mu.Unlock()
	if then != nil {
		then()
	}
	results, err := b.Ledger.CreateTransfers(ctx, t)
	if b.lose != nil && b.lose() {
		return nil, errors.New("the answer was lost")
	}
	return results, err
}

func (*createHookLedger) Close() error { return nil }

func (c *cluster) openInterposed(d *weir.Definitions) (*limiter.Limiter, *createHookLedger) {
	c.t.Helper()
	return openInterposed(c.t, c.ledger, "", c.clock.now, d)
}

func openInterposed(
	t *testing.T, ledger Ledger, namespace string, now func() time.Time, d *weir.Definitions,
) (*limiter.Limiter, *createHookLedger) {
	t.Helper()
	net := &createHookLedger{Ledger: ledger}
	s, err := OpenLedger(t.Context(), net, &Options{Definitions: d, Namespace: namespace, Poll: -1, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	l, err := limiter.New(s, &limiter.Options{Now: now, CacheTTL: -1, StoreTimeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l, net
}

// TestEmptyLeaseExtendedConcurrently has two servers extend a lease without holdings in the same
// millisecond.
func TestEmptyLeaseExtendedConcurrently(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 0)
	d := &weir.Definitions{System: []weir.Limit{bucketOf(20)}}
	a := c.open(d, 0)
	b, net := c.openInterposed(d)
	lease, err := a.Reserve(t.Context(), &weir.Request{Entity: "e", Resource: "r"})
	if err != nil {
		t.Fatal(err)
	}
	net.then = func() {
		if _, err := a.Extend(t.Context(), lease.ID); err != nil {
			t.Error(err)
		}
	}
	if _, err := b.Extend(t.Context(), lease.ID); err != nil {
		t.Error(err)
	}
	for _, verb := range []string{"adjust", "complete"} {
		net.then = func() {
			var err error
			if verb == "adjust" {
				_, err = a.Adjust(t.Context(), lease.ID, 1, nil)
			} else {
				_, err = a.Complete(t.Context(), lease.ID, nil)
			}
			if err != nil {
				t.Error(err)
			}
		}
		if verb == "adjust" {
			_, err = b.Adjust(t.Context(), lease.ID, 1, nil)
		} else {
			_, err = b.Complete(t.Context(), lease.ID, nil)
		}
		if err != nil {
			t.Error(verb, err)
		}
	}
}

// TestConcurrentUpdatesLost has servers change the same leases concurrently, with lost answers. In
// the end the last change determines the charge.
func TestConcurrentUpdatesLost(t *testing.T) {
	t.Parallel()
	for seed := range uint64(soak.Amount(40, 600)) {
		c := newCluster(t, 0)
		settleAtOnceLost(t, seed, c.ledger, "", c.clock.now)
	}
}

// TestConcurrentUpdatesLostLive is TestConcurrentUpdatesLost on a real server.
func TestConcurrentUpdatesLostLive(t *testing.T) {
	t.Parallel()
	ledger := connected(t)
	for seed := range uint64(soak.Amount(2, 20)) {
		settleAtOnceLost(t, seed, ledger, liveNamespace(), time.Now)
	}
}

// concurrentServers is a group of servers that change the same leases concurrently.
type concurrentServers struct {
	*testing.T

	seed    uint64
	random  *rand.Rand
	servers []*limiter.Limiter
	want    map[string]int64 // what is charged in the end
}

func settleAtOnceLost(
	t *testing.T, seed uint64, ledger Ledger, namespace string, clock func() time.Time,
) {
	t.Helper()
	d := fourLimits(1_000_000)
	d.System = append(d.System, weir.Limit{Name: "x", Kind: weir.Window, Capacity: 10, Window: time.Hour, Shadow: true})
	w := &concurrentServers{T: t, seed: seed, random: rand.New(rand.NewPCG(seed, 100)), want: map[string]int64{}}
	for i := range 3 {
		l, net := openInterposed(t, ledger, namespace, clock, d)
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		var mu sync.Mutex
		net.lose = func() bool {
			mu.Lock()
			defer mu.Unlock()
			return random.IntN(6) == 0
		}
		w.servers = append(w.servers, l)
	}
	for n := range 12 {
		id := weir.NewLeaseID(clock())
		w.reserve(id, n%3 == 0)
		last := w.change(id, n)
		w.end(id, n, last)
	}
	probe, _ := openInterposed(t, ledger, namespace, clock, d)
	statuses, err := probe.Status(t.Context(), "e", "r")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range statuses {
		if got := s.Capacity - s.Available; got != w.want[s.Limit] {
			t.Errorf("seed %d: %s: %d are charged, want %d", seed, s.Limit, got, w.want[s.Limit])
		}
	}
}

func (w *concurrentServers) costs(slots int64) weir.Costs {
	r := w.random
	return weir.Costs{"b": r.Int64N(50), "m": r.Int64N(50), "w": r.Int64N(50), "x": r.Int64N(50), "s": slots}
}

// untilKnown repeats a call until its answer is known.
func untilKnown(do func() error) error {
	for {
		if err := do(); !errors.Is(err, weir.Unavailable) {
			return err
		}
	}
}

// reserve makes the same reservation on all servers concurrently; each of them answers with the
// lease.
func (w *concurrentServers) reserve(id weir.LeaseID, keyed bool) {
	r := &weir.Request{LeaseID: id, Entity: "e", Resource: "r", Costs: w.costs(9), Keyed: keyed}
	var all sync.WaitGroup
	for _, s := range w.servers {
		all.Go(func() {
			if err := untilKnown(func() error { _, err := s.Reserve(w.Context(), r); return err }); err != nil {
				w.Errorf("seed %d: reserve: %v", w.seed, err)
			}
		})
	}
	all.Wait()
}

// change has all servers adjust and extend a lease, and returns the totals of the adjust with the
// highest sequence number.
func (w *concurrentServers) change(id weir.LeaseID, n int) weir.Costs {
	const most = 7
	totals := make([]weir.Costs, most+1)
	for k := range totals {
		totals[k] = w.costs(int64(9 - k))
	}
	var all sync.WaitGroup
	for i, s := range w.servers {
		r := rand.New(rand.NewPCG(w.seed, uint64(1000+10*n+i)))
		all.Go(func() {
			for k := 1; k <= most; k++ {
				if k%len(w.servers) != i && r.IntN(3) > 0 {
					continue
				}
				set := totals[k]
				if n%3 == 0 && r.IntN(2) == 0 {
					set = fullNames(set)
				}
				err := untilKnown(func() error { _, err := s.Adjust(w.Context(), id, int64(k), []weir.Costs{set}); return err })
				if err == nil && r.IntN(2) == 0 {
					err = untilKnown(func() error { _, err := s.Extend(w.Context(), id); return err })
				}
				if err != nil {
					w.Errorf("seed %d lease %d: change %d: %v", w.seed, n, k, err)
				}
			}
		})
	}
	all.Wait()
	return totals[most]
}

// fullNames returns costs under full names.
func fullNames(set weir.Costs) weir.Costs {
	full := weir.Costs{}
	for name, v := range set {
		full[weir.Subject{Entity: "e", Resource: "r"}.FullName(name)] = v
	}
	return full
}

// end has all servers end the lease; one of them succeeds.
func (w *concurrentServers) end(id weir.LeaseID, n int, last weir.Costs) {
	var mu sync.Mutex
	var ends []weir.Costs
	var all sync.WaitGroup
	for i, s := range w.servers {
		now := w.costs(0)
		do := func() error { _, err := s.Complete(w.Context(), id, []weir.Costs{now}); return err }
		switch (n + i) % 4 {
		case 0:
			now = nil
			do = func() error { _, err := s.Cancel(w.Context(), id); return err }
		case 1:
			now = last
			do = func() error { _, err := s.Complete(w.Context(), id, nil); return err }
		}
		all.Go(func() {
			err := untilKnown(do)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				ends = append(ends, now)
			} else if !errors.Is(err, weir.Conflict) && !errors.Is(err, weir.Ended) {
				w.Errorf("seed %d lease %d: end: %v", w.seed, n, err)
			}
		})
	}
	all.Wait()
	if len(ends) != 1 {
		w.Errorf("seed %d lease %d: %d ends succeeded", w.seed, n, len(ends))
		return
	}
	for name, v := range ends[0] {
		if name != "s" {
			w.want[name] += v
		}
	}
}
