//go:build cgo

package tigerbeetle

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/tigerbeetle/emulator"
)

// cluster is an emulator that several servers use.
type cluster struct {
	t      *testing.T
	clock  worldClock
	ledger *emulator.Emulator
}

func newCluster(t *testing.T, most int) *cluster {
	t.Helper()
	c := &cluster{t: t}
	c.clock.to(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC))
	c.ledger = emulator.New(&emulator.Options{Now: c.clock.now, MaxEvents: most})
	return c
}

func (c *cluster) pass(d time.Duration) { c.clock.to(c.clock.now().Add(d)) }

// losingLedger carries calls out and loses their answers.
type losingLedger struct {
	Ledger

	lose atomic.Bool
}

func (l *losingLedger) CreateTransfers(
	ctx context.Context, transfers []tb.Transfer,
) ([]tb.CreateTransferResult, error) {
	results, err := l.Ledger.CreateTransfers(ctx, transfers)
	if l.lose.Swap(false) {
		return nil, errors.New("the answer was lost")
	}
	return results, err
}

func (*losingLedger) Close() error { return nil }

// member is one server of a cluster. It learns the time from answers alone, and its own clock may
// be wrong.
type member struct {
	*limiter.Limiter

	store *Store
	net   *losingLedger
}

func (c *cluster) open(d *weir.Definitions, skew time.Duration) *member {
	c.t.Helper()
	now := func() time.Time { return c.clock.now().Add(skew) }
	net := &losingLedger{Ledger: c.ledger}
	s, err := OpenLedger(c.t.Context(), net, &Options{Definitions: d, Poll: -1, Now: now})
	if err != nil {
		c.t.Fatal(err)
	}
	l, err := limiter.New(s, &limiter.Options{Now: now, CacheTTL: -1, StoreTimeout: 30 * time.Second})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = l.Close() })
	return &member{l, s, net}
}

// admits returns how many requests of one unit are admitted, one after another, until one is
// denied.
func (c *cluster) admits(m *member, limit string, most int) int {
	c.t.Helper()
	for n := range most {
		_, err := m.Reserve(c.t.Context(), unit(limit, 1))
		if denied(err) {
			return n
		}
		if err != nil {
			c.t.Fatal(err)
		}
	}
	return most
}

func unit(limit string, n int64) *weir.Request {
	return &weir.Request{Entity: "e", Resource: "r", Costs: weir.Costs{limit: n}}
}

func bucketOf(capacity int64) weir.Limit {
	return weir.Limit{
		Name: "b", Kind: weir.Bucket, Capacity: capacity, RefillAmount: 10, RefillPeriod: time.Second,
	}
}

func fourLimits(capacity int64) *weir.Definitions {
	return &weir.Definitions{System: []weir.Limit{
		{Name: "b", Kind: weir.Bucket, Capacity: capacity, RefillAmount: 1, RefillPeriod: 24 * time.Hour},
		{Name: "m", Kind: weir.Budget, Capacity: capacity, Every: "month", Zone: "UTC"},
		{Name: "s", Kind: weir.Concurrency, Capacity: capacity, Timeout: time.Hour},
		{Name: "w", Kind: weir.Window, Capacity: capacity, Window: time.Hour},
	}}
}

// TestServersRefill checks that with three servers whose clocks are seconds apart, one of them idle
// for minutes at a time, a bucket admits what it holds and regains, and an idle bucket costs the
// cluster nothing.
func TestServersRefill(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		c := newCluster(t, 0)
		d := &weir.Definitions{System: []weir.Limit{bucketOf(20)}}
		servers := []*member{c.open(d, 0), c.open(d, 5*time.Second), c.open(d, -5*time.Second)}
		random := rand.New(rand.NewPCG(seed, 1))
		begin, admitted := c.clock.now(), int64(0)
		ask := func(m *member) {
			if _, err := m.Reserve(t.Context(), unit("b", 1)); err == nil {
				admitted++
			} else if !denied(err) {
				t.Fatal(err)
			}
		}
		for range 2000 {
			c.pass(time.Duration(random.IntN(50)) * time.Millisecond)
			ask(servers[random.IntN(len(servers))])
		}
		want := 20 + int64(c.clock.now().Sub(begin)/time.Millisecond)*10/1000
		if admitted > want || admitted < want*99/100 {
			t.Errorf("seed %d: admitted %d, want at most %d and hardly fewer", seed, admitted, want)
		}
		before := c.sent(codeRefill)
		c.pass(5 * time.Minute)
		if got := c.sent(codeRefill); got != before {
			t.Errorf("seed %d: %d refills while idle", seed, got-before)
		}
		admitted = 0
		for range 30 {
			for _, m := range servers {
				ask(m)
			}
		}
		// A server that has had no answer for five minutes assumes a time up to 0.3 s too early.
		if admitted < 20 || admitted > 23 {
			t.Errorf("seed %d: admitted %d after the pause, want 20 and what 0.3 s give", seed, admitted)
		}
		if got := c.sent(codeRefill) - before; got < 1 || got > len(servers) {
			t.Errorf("seed %d: %d refills for one gap", seed, got)
		}
	}
}

// sent returns the number of transfers with a code.
func (c *cluster) sent(code uint16) int {
	n := 0
	for _, t := range c.ledger.Contents().Transfers {
		if t.Code == code {
			n++
		}
	}
	return n
}

// TestServersCapacity lowers and raises a capacity by one server's configuration. The other server
// is not ready until it has the same, and the two admit what the capacity leaves.
func TestServersCapacity(t *testing.T) {
	t.Parallel()
	for at, limit := range []string{"b", "m", "s", "w"} {
		c := newCluster(t, 0)
		of := func(capacity int64) *weir.Definitions { // a request also takes a slot if there are slots
			return &weir.Definitions{System: fourLimits(capacity).System[at : at+1]}
		}
		a, b := c.open(of(20), 0), c.open(of(20), 0)
		if got := c.admits(b, limit, 5); got != 5 {
			t.Fatalf("%s: %d at first", limit, got)
		}
		// A bucket keeps its balance as far as it fits the capacity; the others keep what is in
		// use.
		for i, step := range []struct {
			capacity      int64
			bucket, other int
		}{{10, 10, 5}, {20, 0, 10}, {10, 0, 0}, {20, 0, 0}} {
			c.configure(a, b, of(step.capacity), limit)
			want := step.other
			if limit == "b" {
				want = step.bucket
			}
			if got := c.admits(b, limit, 30); got != want {
				t.Errorf("%s: step %d: admitted %d, want %d", limit, i, got, want)
			}
			c.pass(time.Second)
		}
		old := c.open(of(10), 0)
		if err := old.store.Ready(t.Context()); !errors.Is(err, weir.Superseded) {
			t.Errorf("%s: with the older file: %v", limit, err)
		}
		if err := c.open(of(20), 0).store.Ready(t.Context()); err != nil {
			t.Errorf("%s: with the newest file: %v", limit, err)
		}
		c.pass(31 * 24 * time.Hour)
		if got := c.admits(b, limit, 30); got != 20 {
			t.Errorf("%s: admitted %d a month later, want 20", limit, got)
		}
	}
}

// configure puts the same limits in force on two servers, one after the other.
func (c *cluster) configure(a, b *member, d *weir.Definitions, limit string) {
	c.t.Helper()
	if err := a.store.WriteConfig(c.t.Context(), c.clock.now(), d); err != nil {
		c.t.Fatal(err)
	}
	if err := b.store.Ready(c.t.Context()); !errors.Is(err, weir.Superseded) {
		c.t.Errorf("%s: the other server: %v", limit, err)
	}
	if _, err := b.Reserve(c.t.Context(), unit(limit, 1)); !errors.Is(err, weir.Superseded) {
		c.t.Errorf("%s: a server that is not ready: %v", limit, err)
	}
	if err := b.store.WriteConfig(c.t.Context(), c.clock.now(), d); err != nil {
		c.t.Fatal(err)
	}
	if err := b.store.Ready(c.t.Context()); err != nil {
		c.t.Errorf("%s: with the same limits: %v", limit, err)
	}
}

// TestServersConfigureConcurrently checks that each server has the definitions that it is ready
// for, whichever was last.
func TestServersConfigureConcurrently(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 0)
	a := c.open(fourLimits(1), 0)
	var all sync.WaitGroup
	for i := range int64(8) {
		all.Go(func() {
			if err := a.store.WriteConfig(t.Context(), c.clock.now(), fourLimits(10+i)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	mine, err := digestOf(a.store.config.Load())
	if err != nil || a.store.version.own != mine || a.store.Ready(t.Context()) != nil {
		t.Errorf("serves other definitions than those it put in force: %v", err)
	}
}

// TestServersConcurrent checks that 64 callers on two servers are admitted exactly the capacity.
func TestServersConcurrent(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 0)
	servers := []*member{c.open(fourLimits(100), 0), c.open(fourLimits(100), 0)}
	for _, costs := range []weir.Costs{{"b": 1}, {"b": 1, "m": 1, "s": 1, "w": 1}} {
		request := &weir.Request{Entity: "e", Resource: "r", Costs: costs}
		if len(costs) > 1 {
			request.Entity = "four"
		}
		var admitted atomic.Int64
		var all sync.WaitGroup
		for i := range 64 {
			all.Go(func() {
				for range 5 {
					_, err := servers[i%2].Reserve(t.Context(), request)
					if err == nil {
						admitted.Add(1)
					} else if !denied(err) {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		if got := admitted.Load(); got != 100 {
			t.Errorf("%v: admitted %d, want 100", costs, got)
		}
	}
}

// TestServersClose checks that stores that are closed during calls still answer every call.
func TestServersClose(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 0)
	servers := []*member{c.open(fourLimits(1000), 0), c.open(fourLimits(1000), 0)}
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			for {
				_, err := servers[i%2].Reserve(t.Context(), unit("b", 1))
				if errors.Is(err, weir.Unavailable) {
					return
				}
			}
		})
	}
	for _, m := range servers {
		if err := m.store.Close(); err != nil {
			t.Error(err)
		}
	}
	all.Wait()
}

// TestServersCancelledWait checks that a call that waits for another one to move a bucket's anchor
// ends with its context.
func TestServersCancelledWait(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 0)
	a := c.open(&weir.Definitions{System: []weir.Limit{bucketOf(20)}}, 0)
	if _, err := a.Reserve(t.Context(), unit("b", 1)); err != nil {
		t.Fatal(err)
	}
	c.pass(time.Second)
	state := a.store.states.byKey[limitKey{weir.Subject{Entity: "e", Resource: "r"}, "b", weir.Bucket}]
	state.mu.Lock()
	state.bucket.moving, state.bucket.moved = true, make(chan struct{})
	state.mu.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := a.Reserve(ctx, unit("b", 1)); !errors.Is(err, weir.Unavailable) {
		t.Errorf("got %v, want %v", err, weir.Unavailable)
	}
}

// TestServersLarge checks extreme amounts, an overrun, and a request that does not fit one call.
func TestServersLarge(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 0)
	d := &weir.Definitions{System: []weir.Limit{
		{Name: "m", Kind: weir.Budget, Capacity: math.MaxInt64, Every: "month", Zone: "UTC"},
		{Name: "w", Kind: weir.Window, Capacity: 100, Window: time.Minute},
	}}
	a, b := c.open(d, 0), c.open(d, 0)
	if _, err := a.Reserve(t.Context(), unit("m", math.MaxInt64)); err != nil {
		t.Error(err)
	}
	if _, err := b.Reserve(t.Context(), unit("m", 1)); !denied(err) {
		t.Errorf("beyond the largest: %v", err)
	}
	first, err := a.Reserve(t.Context(), unit("w", 40))
	if err != nil {
		t.Fatal(err)
	}
	c.pass(30 * time.Second)
	second, err := b.Reserve(t.Context(), unit("w", 60))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Complete(t.Context(), second.ID, []weir.Costs{{"w": 110}}); err != nil {
		t.Fatal(err)
	}
	if got := c.admits(b, "w", 1); got != 0 {
		t.Error("admitted on a window that was overrun")
	}
	c.pass(31 * time.Second) // the first 40 have returned: 110 of 100 are in use
	if got := c.admits(a, "w", 1); got != 0 {
		t.Error("admitted while the overrun lasts")
	}
	c.pass(31 * time.Second)
	if got := c.admits(b, "w", 101); got != 100 {
		t.Errorf("admitted %d once all is back, want 100", got)
	}
	if _, err := b.Cancel(t.Context(), first.ID); err != nil {
		t.Errorf("a lease whose hold is back: %v", err)
	}
}

func TestServersTooLarge(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 253)
	d := &weir.Definitions{Entities: map[string]weir.EntityDefinition{}}
	costs := weir.Costs{}
	for i := range 32 {
		l := bucketOf(20)
		l.Name = "b" + string(rune('a'+i/26)) + string(rune('a'+i%26))
		d.System, costs[l.Name] = append(d.System, l), 1
	}
	d.Entities["p"] = weir.EntityDefinition{}
	d.Entities["e"] = weir.EntityDefinition{Parent: "p", Cascade: true}
	a := c.open(d, 0)
	before := c.ledger.Contents()
	_, err := a.Reserve(t.Context(), &weir.Request{Entity: "e", Resource: "r", Costs: costs})
	if !errors.Is(err, weir.Invalid) {
		t.Errorf("got %v, want %v", err, weir.Invalid)
	}
	// The takes of 25 costs on two entities may need 251 events. The keys of three charges make it
	// 254.
	keyed := &weir.Request{Keyed: true}
	for i, n := range []int{9, 8, 8} {
		charge := weir.Charge{Entity: "e", Resource: "r" + strconv.Itoa(i), Costs: weir.Costs{}}
		for _, l := range d.System[:n] {
			charge.Costs[l.Name] = 1
		}
		keyed.Charges = append(keyed.Charges, charge)
	}
	if _, err := a.Reserve(t.Context(), keyed); !errors.Is(err, weir.Invalid) {
		t.Errorf("with keys: got %v, want %v", err, weir.Invalid)
	}
	if after := c.ledger.Contents(); len(after.Accounts) != len(before.Accounts) ||
		len(after.Transfers) != len(before.Transfers) {
		t.Error("something was written")
	}
	if _, err := a.Reserve(t.Context(), &weir.Request{Entity: "p", Resource: "r", Costs: costs}); err != nil {
		t.Errorf("half of it: %v", err)
	}
	keyed.Keyed = false
	if _, err := a.Reserve(t.Context(), keyed); err != nil {
		t.Errorf("without keys: %v", err)
	}
}

// denied reports whether a limit denied the request, not contention.
func denied(err error) bool {
	_, ok := errors.AsType[*weir.DeniedError](err)
	return ok
}

// TestServersFollowDefinitionsInForce checks that a command that acts once puts definitions in
// force only if there are none, and reserves only under the ones in force.
func TestServersFollowDefinitionsInForce(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 0)
	open := func(capacity int64, follow bool) *Store {
		s, err := OpenLedger(t.Context(), sharedLedger{c.ledger}, &Options{
			Definitions: fourLimits(capacity), Poll: -1, Now: c.clock.now, Follow: follow,
		})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, tt := range []struct {
		capacity      int64
		follow, ready bool
	}{
		{10, true, true}, // nothing was in force
		{20, true, false},
		{10, true, true},
		{20, false, true}, // a server with a file of its own
		{10, true, false},
		{20, true, true},
	} {
		err := open(tt.capacity, tt.follow).Ready(t.Context())
		if ready := err == nil; ready != tt.ready {
			t.Errorf("%+v: got %v", tt, err)
		}
	}
}
