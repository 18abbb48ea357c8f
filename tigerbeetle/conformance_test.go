//go:build cgo

package tigerbeetle

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/internal/soak"
	"github.com/weir-limiter/weir/tigerbeetle/emulator"
)

// worldClock is a cluster's clock that is set by the calls' own time: a world has no other time.
type worldClock struct{ ns atomic.Int64 }

func (c *worldClock) now() time.Time { return time.Unix(0, c.ns.Load()) }

// to sets the clock to an instant, unless it is later already.
func (c *worldClock) to(t time.Time) {
	for {
		old := c.ns.Load()
		if t.UnixNano() <= old || c.ns.CompareAndSwap(old, t.UnixNano()) {
			return
		}
	}
}

// timedStore is a store on an emulator whose clock each call sets to its now.
type timedStore struct {
	*Store
	clock *worldClock
}

func (t *timedStore) Reserve(
	ctx context.Context, now time.Time, p *driver.Plan, out *driver.Outcome,
) error {
	t.clock.to(now)
	return t.Store.Reserve(ctx, now, p, out)
}

func (t *timedStore) Update(
	ctx context.Context, now time.Time, u *driver.Update, out *driver.Outcome,
) error {
	t.clock.to(now)
	return t.Store.Update(ctx, now, u, out)
}

func (t *timedStore) Status(
	ctx context.Context, now time.Time, of []driver.Judged,
) ([]weir.LimitStatus, error) {
	t.clock.to(now)
	return t.Store.Status(ctx, now, of)
}

func (t *timedStore) RecoverLease(
	ctx context.Context, now time.Time, id weir.LeaseID,
) (*driver.LeaseRecord, error) {
	t.clock.to(now)
	return t.Store.RecoverLease(ctx, now, id)
}

func (t *timedStore) Resources(
	ctx context.Context, now time.Time, entity string,
) ([]string, error) {
	t.clock.to(now)
	return t.Store.Resources(ctx, now, entity)
}

func (t *timedStore) Entities(
	ctx context.Context, now time.Time, resource string,
) ([]string, error) {
	t.clock.to(now)
	return t.Store.Entities(ctx, now, resource)
}

// emulatedOn opens a store on an emulator of its own, whose clock begins with the setup. If front
// is not nil, it wraps the emulator.
func emulatedOn(
	t conformance.T, s conformance.Setup, front func(yieldingEmulator) Ledger,
) *timedStore {
	t.Helper()
	clock := &worldClock{}
	clock.to(s.Start)
	ledger := front(yieldingEmulator{emulator.New(&emulator.Options{Now: clock.now, Tick: time.Millisecond})})
	store, err := OpenLedger(t.Context(), ledger,
		&Options{Definitions: s.Definitions, Poll: -1, Now: clock.now})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return &timedStore{store, clock}
}

func harness() conformance.StoreHarness {
	return conformance.StoreHarness{
		Leeway: conformance.Leeway{
			WholeSecondRest: true, NeverForgetsEarly: true, OwnClock: true, EstimatedAvailable: true,
		},
		Open: func(t conformance.T, s conformance.Setup) driver.Store {
			t.Helper()
			return emulatedOn(t, s, func(y yieldingEmulator) Ledger { return y })
		},
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.TestStore(t, harness())
}

// TestConformanceOfUsage runs the suite's cases of usage. What was used is written before it is read.
func TestConformanceOfUsage(t *testing.T) {
	t.Parallel()
	conformance.TestUsage(t, conformance.UsageHarness{
		StoreHarness: harness(), EntityOnly: true,
		Flush: func(t conformance.T, b driver.Store, now time.Time) {
			t.Helper()
			s := b.(*timedStore)
			s.clock.to(now)
			if err := s.writeUsage(t.Context()); err != nil {
				t.Fatalf("write usage: %v", err)
			}
		},
	})
}

// TestScripts plays the scripts in testdata, which random operations have found and reduced.
func TestScripts(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(names) == 0 {
		t.Fatalf("got %q, %v, want scripts", names, err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			t.Parallel()
			script, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			conformance.Replay(t, harness().Service(t), string(script))
		})
	}
}

// TestRandomOperations plays more of the suite's random operations, each compared with the model's
// answer.
func TestRandomOperations(t *testing.T) {
	t.Parallel()
	h := harness()
	for seed := range uint64(soak.Amount(1, 8)) {
		seed++ // seeds begin at 1
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			conformance.RandomOperations(t, h.Service(t), seed, 2000)
		})
	}
}

// TestSoakRandomOperations plays random operations from seeds beyond those of the plain run.
func TestSoakRandomOperations(t *testing.T) {
	soak.Only(t)
	t.Parallel()
	conformance.RandomOperations(t, harness().Service(t), 7, 200_000)
}
