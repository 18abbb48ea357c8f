//go:build cgo

package tigerbeetle

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/tigerbeetle/emulator"
)

// counted counts the calls of a cluster.
type counted struct{ calls, transfers, lookups, queries int64 }

// meter is an emulator that counts its calls. It outlives the servers that use it.
type meter struct {
	*emulator.Emulator
	clock                              *worldClock
	calls, transfers, lookups, queries atomic.Int64
	// created is the number of transfers that were created.
	created atomic.Int64
	// during, if not nil, is called before the next create_transfers call is carried out.
	during atomic.Pointer[func()]
}

func newMeter() *meter {
	clock := &worldClock{}
	clock.to(time.Date(2030, 5, 1, 12, 0, 0, 0, time.UTC))
	return &meter{Emulator: emulator.New(&emulator.Options{Now: clock.now, Tick: time.Millisecond}), clock: clock}
}

// Close does nothing, because other stores use the cluster.
func (m *meter) Close() error { return nil }

func (m *meter) CreateTransfers(ctx context.Context, t []tb.Transfer) ([]tb.CreateTransferResult, error) {
	m.calls.Add(1)
	m.transfers.Add(int64(len(t)))
	if f := m.during.Swap(nil); f != nil {
		(*f)()
	}
	results, err := m.Emulator.CreateTransfers(ctx, t)
	for i := range results {
		if results[i].Status == tb.TransferCreated {
			m.created.Add(1)
		}
	}
	return results, err
}

func (m *meter) LookupAccounts(ctx context.Context, ids []tb.Uint128) ([]tb.Account, error) {
	m.lookups.Add(1)
	return m.Emulator.LookupAccounts(ctx, ids)
}

func (m *meter) LookupTransfers(ctx context.Context, ids []tb.Uint128) ([]tb.Transfer, error) {
	m.lookups.Add(1)
	return m.Emulator.LookupTransfers(ctx, ids)
}

func (m *meter) AccountTransfers(ctx context.Context, f tb.AccountFilter) ([]tb.Transfer, error) {
	m.queries.Add(1)
	return m.Emulator.AccountTransfers(ctx, f)
}

func (m *meter) QueryAccounts(ctx context.Context, f tb.QueryFilter) ([]tb.Account, error) {
	m.queries.Add(1)
	return m.Emulator.QueryAccounts(ctx, f)
}

func (m *meter) QueryTransfers(ctx context.Context, f tb.QueryFilter) ([]tb.Transfer, error) {
	m.queries.Add(1)
	return m.Emulator.QueryTransfers(ctx, f)
}

func (m *meter) count() counted {
	return counted{m.calls.Load(), m.transfers.Load(), m.lookups.Load(), m.queries.Load()}
}

// costLimits returns the named limits, of which there is one of each kind.
func costLimits(names ...string) []weir.Limit {
	var out []weir.Limit
	for _, name := range names {
		l := weir.Limit{Name: name, Capacity: 100}
		switch name {
		case "bucket":
			l.Kind, l.RefillAmount, l.RefillPeriod = weir.Bucket, 1, time.Second
		case "window":
			l.Kind, l.Window = weir.Window, time.Minute
		case "slots":
			l.Kind, l.Timeout = weir.Concurrency, time.Minute
		case "budget":
			l.Kind, l.Every, l.Zone = weir.Budget, "month", "UTC"
		}
		out = append(out, l)
	}
	return out
}

// costScene is a server whose calls are counted. Its entity child cascades to parent.
type costScene struct {
	*testing.T
	m *meter
	*limiter.Limiter
	store *Store
	names []string
	lease *weir.Lease
}

func newCostScene(t *testing.T, m *meter, names ...string) *costScene {
	t.Helper()
	d := &weir.Definitions{System: costLimits(names...), Entities: map[string]weir.EntityDefinition{
		"parent": {}, "child": {Parent: "parent", Cascade: true},
	}}
	store, err := OpenLedger(t.Context(), m, &Options{Definitions: d, Poll: -1, Now: m.clock.now})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	l, err := limiter.New(store, &limiter.Options{Now: m.clock.now})
	if err != nil {
		t.Fatalf("new: %v", err)
	}
	return &costScene{T: t, m: m, Limiter: l, store: store, names: names}
}

func (s *costScene) units(n int64) weir.Costs {
	c := weir.Costs{}
	for _, name := range s.names {
		c[name] = n
	}
	return c
}

func (s *costScene) take(entity string, n int64) error {
	lease, err := s.Reserve(s.Context(), &weir.Request{Entity: entity, Resource: "r", Costs: s.units(n)})
	if err == nil {
		s.lease = lease
	}
	return err
}

// leave reserves with a context that ends while the cluster has the chain.
func (s *costScene) leave() error {
	ctx, cancel := context.WithCancel(s.Context())
	defer cancel()
	left := make(chan struct{})
	leaves := func() {
		cancel()
		<-left
	}
	s.m.during.Store(&leaves)
	id := weir.NewLeaseID(s.m.clock.now())
	_, err := s.Reserve(ctx, &weir.Request{LeaseID: id, Entity: "solo", Resource: "r", Costs: s.units(10)})
	l := &s.store.abandoned
	l.mu.Lock()
	a := l.byLease[id]
	l.mu.Unlock()
	close(left)
	if a != nil {
		<-a.done
	}
	if !errors.Is(err, weir.Unavailable) {
		return fmt.Errorf("reserve: got %w, want unavailable", err)
	}
	return nil
}

// givenBack waits until what an abandoned reservation took is given back.
func (s *costScene) givenBack() error {
	s.store.abandoned.watchers.Wait()
	if n := s.store.counts.withdrawn.Load(); n != 1 {
		return fmt.Errorf("%d reservations were given back, want 1", n)
	}
	return nil
}

func (s *costScene) pass(d time.Duration) { s.m.clock.to(s.m.clock.now().Add(d)) }

// costLine is one line of the table.
type costLine struct {
	what        string
	names       []string
	want        counted
	prepare, do func(s *costScene) error
	cold        bool // on a new server
}

var errNotDenied = errors.New("was not denied")

func wasDenied(err error) error {
	if _, ok := errors.AsType[*weir.DeniedError](err); !ok {
		return errors.Join(errNotDenied, err)
	}
	return nil
}

// TestCallsAreCounted compares the calls of each operation with the table of docs/tigerbeetle.md.
func TestCallsAreCounted(t *testing.T) {
	t.Parallel()
	rows := []string{"| what | create_transfers | transfers | look-ups | queries | bytes |",
		"|---|---|---|---|---|---|"}
	for _, line := range costLines() {
		s := newCostScene(t, newMeter(), line.names...)
		if err := line.prepare(s); err != nil {
			t.Fatalf("%s: before: %v", line.what, err)
		}
		if line.cold {
			lease := s.lease
			s = newCostScene(t, s.m, line.names...)
			s.lease = lease
		}
		s.pass(5 * time.Millisecond)
		before, created := s.m.count(), s.m.created.Load()
		if err := line.do(s); err != nil {
			t.Errorf("%s: %v", line.what, err)
		}
		n := s.m.count()
		n = counted{n.calls - before.calls, n.transfers - before.transfers,
			n.lookups - before.lookups, n.queries - before.queries}
		if n != line.want {
			t.Errorf("%s: %+v, want %+v", line.what, n, line.want)
		}
		rows = append(rows, fmt.Sprintf("| %s | %d | %d | %d | %d | %d |",
			line.what, n.calls, n.transfers, n.lookups, n.queries, 128*(s.m.created.Load()-created)))
	}
	t.Logf("\n%s", strings.Join(rows, "\n"))
}

// costLines returns all lines of the table.
func costLines() []costLine {
	warm := func(s *costScene) error {
		if err := s.take("child", 10); err != nil {
			return err
		}
		err := s.take("solo", 10)
		s.pass(2 * time.Second)
		return err
	}
	reserve := func(entity string, n int64) func(*costScene) error {
		return func(s *costScene) error { return s.take(entity, n) }
	}
	deny := func(s *costScene) error { return wasDenied(s.take("solo", 95)) }
	all := []string{"bucket", "budget", "slots", "window"}
	nothing := func(*costScene) error { return nil }
	var out []costLine
	add := func(what string, names []string, want counted, before, do func(*costScene) error, cold bool) {
		out = append(out, costLine{what: what, names: names, want: want, prepare: before, do: do, cold: cold})
	}
	for i, name := range all {
		add("reserve, 1 "+name, all[i:i+1], counted{1, []int64{4, 3, 4, 4}[i], 0, 0}, warm, reserve("solo", 1), false)
		add("the same with a parent", all[i:i+1], counted{1, []int64{7, 5, 7, 7}[i], 0, 0}, warm, reserve("child", 1), false)
	}
	add("reserve, all four kinds", all, counted{1, 12, 0, 0}, warm, reserve("solo", 1), false)
	add("the same with a parent", all, counted{1, 23, 0, 0}, warm, reserve("child", 1), false)
	settle := func(what string, transfers int64, do func(s *costScene) error) {
		add(what+", all four kinds", all, counted{1, transfers, 0, 0}, warm, do, false)
	}
	settle("complete with fewer", 6, completeWith(5))
	settle("complete with as many", 2, completeWith(10))
	settle("complete with more", 6, completeWith(15))
	settle("adjust to more", 6, adjustTo(15))
	settle("adjust to less", 8, adjustTo(5))
	settle("cancel", 5, func(s *costScene) error { _, err := s.Cancel(s.Context(), s.lease.ID); return err })
	add("cancel of an unknown lease", all, counted{1, 1, 0, 1}, warm, func(s *costScene) error {
		_, err := s.Cancel(s.Context(), weir.NewLeaseID(s.m.clock.now()))
		if !errors.Is(err, weir.UnknownLease) {
			return fmt.Errorf("got %w, want an unknown lease", err)
		}
		return nil
	}, false)
	add("a reservation whose caller left", all, counted{1, 5, 0, 0}, func(s *costScene) error {
		return errors.Join(warm(s), s.leave())
	}, (*costScene).givenBack, false)
	settle("extend", 4, func(s *costScene) error { _, err := s.Extend(s.Context(), s.lease.ID); return err })
	add("denial by one limit", all[3:], counted{1, 4, 0, 0}, warm, deny, false)
	add("denial by all four", all, counted{1, 12, 1, 1}, warm, deny, false)
	add("the same denial within a second", all, counted{}, func(s *costScene) error {
		return errors.Join(warm(s), deny(s))
	}, deny, false)
	add("cold reserve, new accounts", all, counted{1, 16, 1, 1}, nothing, reserve("solo", 1), false)
	add("cold reserve, accounts that exist", all, counted{1, 12, 1, 2}, warm, reserve("solo", 1), true)
	add("the same with a parent", all, counted{1, 23, 1, 4}, warm, reserve("child", 1), true)
	replay := func(s *costScene) error {
		_, err := s.Reserve(s.Context(), &weir.Request{
			LeaseID: s.lease.ID, Entity: "solo", Resource: "r", Costs: s.units(10),
		})
		return err
	}
	add("replay, same process", all, counted{0, 0, 1, 1}, warm, replay, false)
	add("replay, another process", all, counted{2, 14, 3, 3}, warm, replay, true)
	add("status", all, counted{0, 0, 1, 2}, warm, func(s *costScene) error {
		_, err := s.Status(s.Context(), "solo", "r")
		return err
	}, false)
	return out
}

// named returns totals of n units of everything, but of no more slots than are held.
func (s *costScene) named(n int64) []weir.Costs {
	c := s.units(n)
	c["slots"] = min(n, 10)
	return []weir.Costs{c}
}

func completeWith(n int64) func(s *costScene) error {
	return func(s *costScene) error {
		_, err := s.Complete(s.Context(), s.lease.ID, s.named(n))
		return err
	}
}

func adjustTo(n int64) func(s *costScene) error {
	return func(s *costScene) error {
		_, err := s.Adjust(s.Context(), s.lease.ID, 1, s.named(n))
		return err
	}
}

// TestIdleCreatesNothing checks that an idle store only reads which definitions are in force.
func TestIdleCreatesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMeter()
		store, err := OpenLedger(t.Context(), m, &Options{Poll: time.Millisecond, Now: m.clock.now})
		if err != nil {
			t.Fatal(err)
		}
		before := m.count()
		time.Sleep(10 * time.Millisecond)
		if err := store.Close(); err != nil {
			t.Error(err)
		}
		after := m.count()
		if after.queries < before.queries+5 {
			t.Errorf("%d queries in ten polls, want 5 or more", after.queries-before.queries)
		}
		after.queries = before.queries
		if after != before {
			t.Errorf("an idle store: %+v, was %+v", after, before)
		}
	})
}
