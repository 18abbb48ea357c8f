//go:build cgo

package tigerbeetle

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance"
	"github.com/weir-limiter/weir/internal/soak"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/tigerbeetle/emulator"
)

// twoServers is two limiters on one cluster, each with a store of its own. Each call goes to one of
// them.
type twoServers struct {
	*conformance.Clock

	both [2]*limiter.Limiter
}

func (s *twoServers) one() *limiter.Limiter { return s.both[rand.IntN(len(s.both))] }

func (s *twoServers) Reserve(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
	return s.one().Reserve(ctx, r)
}

func (s *twoServers) Adjust(
	ctx context.Context, id weir.LeaseID, seq int64, totals []weir.Costs,
) (*weir.Receipt, error) {
	return s.one().Adjust(ctx, id, seq, totals)
}

func (s *twoServers) Complete(
	ctx context.Context, id weir.LeaseID, actuals []weir.Costs,
) (*weir.Receipt, error) {
	return s.one().Complete(ctx, id, actuals)
}

func (s *twoServers) Cancel(ctx context.Context, id weir.LeaseID) (*weir.Receipt, error) {
	return s.one().Cancel(ctx, id)
}

func (s *twoServers) Extend(ctx context.Context, id weir.LeaseID) (*weir.Receipt, error) {
	return s.one().Extend(ctx, id)
}

func (s *twoServers) Status(
	ctx context.Context, entity, resource string,
) ([]weir.LimitStatus, error) {
	return s.one().Status(ctx, entity, resource)
}

func (s *twoServers) Explain(
	ctx context.Context, entity, resource string,
) (*weir.Explanation, error) {
	return s.one().Explain(ctx, entity, resource)
}

// Configure is part of [conformance.World]. Histories do not call it.
func (*twoServers) Configure(*weir.Definitions) error { return errors.ErrUnsupported }

// Close closes both limiters.
func (s *twoServers) Close() error { return errors.Join(s.both[0].Close(), s.both[1].Close()) }

// patient is longer than a cluster takes to answer on a busy machine, so that no call becomes
// unavailable.
const patient = time.Minute

// severalHarness opens two servers on one ledger. They remember denials for denials milliseconds.
// For sharing milliseconds after a sign of the other server they ask the cluster before they deny
// from memory.
func severalHarness(
	t conformance.T, ledger func(time.Time) Ledger, denials, sharing int64,
) conformance.Harness {
	t.Helper()
	h := harness().Service(t)
	h.SeveralServers = true
	h.Open = func(t conformance.T, s conformance.Setup) conformance.World {
		t.Helper()
		w := &twoServers{Clock: conformance.NewClock(s.Start)}
		cluster := sharedLedger{ledger(s.Start)}
		s.Options.Now, s.Options.StoreTimeout = w.Now, patient
		for i := range w.both {
			store, err := OpenLedger(t.Context(), cluster,
				&Options{Definitions: s.Definitions, Poll: -1, Now: w.Now})
			if err != nil {
				t.Fatalf("open a store: %v", err)
			}
			store.rememberFor, store.foreignFor = denials, sharing
			store.noteForeign() // before the first sign of another server a denial may be a second old
			if w.both[i], err = limiter.New(store, &s.Options); err != nil {
				t.Fatalf("open a limiter: %v", err)
			}
		}
		return w
	}
	return h
}

// yieldsAt returns a ledger whose clock stands still.
func yieldsAt(start time.Time) yieldingEmulator {
	now := func() time.Time { return start }
	return yieldingEmulator{emulator.New(&emulator.Options{Now: now, Tick: time.Millisecond})}
}

// TestHistoriesServers checks that concurrent calls on two servers are linearizable: their answers
// fit some order of the calls.
func TestHistoriesServers(t *testing.T) {
	t.Parallel()
	for _, denials := range []int64{0, rememberMS} {
		h := severalHarness(t, func(at time.Time) Ledger { return yieldsAt(at) }, denials, foreignMS)
		conformance.Linearizable(t, h, conformance.Load{
			Seed: 1, Histories: soak.Amount(5, 4000), Goroutines: 8, Calls: 100,
		})
	}
}

// keepsOldToken drops the event that ends the old token when an update makes a new one, so that a
// server that has not noticed the update can settle what the lease no longer stands for.
type keepsOldToken struct{ yieldingEmulator }

func (u keepsOldToken) CreateTransfers(
	ctx context.Context, transfers []tb.Transfer,
) ([]tb.CreateTransferResult, error) {
	at := -1
	for i := 1; i < len(transfers); i++ {
		code := transfers[i-1].Code
		if (code == codeAdjusted || code == codeExtended) && transfers[i].Flags&flagVoid != 0 {
			at = i
		}
	}
	if at < 0 {
		return u.yieldingEmulator.CreateTransfers(ctx, transfers)
	}
	fewer := slices.Delete(slices.Clone(transfers), at, at+1)
	if at == len(fewer) {
		fewer[at-1].Flags &^= flagLinked // now the last event of the chain
	}
	results, err := u.yieldingEmulator.CreateTransfers(ctx, fewer)
	if err != nil || len(results) != len(fewer) {
		return nil, errors.Join(err, errors.New("too few results"))
	}
	return slices.Insert(results, at, results[at-1]), nil
}

// TestHistoriesServersCatchDefects checks that histories are not linearizable if two servers do
// something wrong, if they deny from memory without asking, or if repeated reservations and adjusts
// have to be answered as by a single server. So each leeway is needed.
func TestHistoriesServersCatchDefects(t *testing.T) {
	t.Parallel()
	right := func(at time.Time) Ledger { return yieldsAt(at) }
	alone := severalHarness(t, right, 0, foreignMS)
	alone.SeveralServers = false
	harnesses := map[string]conformance.Harness{
		"checks and takes are two calls": severalHarness(t,
			func(at time.Time) Ledger { return uncheckedTakes{yieldsAt(at)} }, 0, foreignMS),
		"a settlement leaves the old token": severalHarness(t,
			func(at time.Time) Ledger { return keepsOldToken{yieldsAt(at)} }, 0, foreignMS),
		"denials are given without asking":   severalHarness(t, right, rememberMS, 0),
		"the answers are of a single server": alone,
	}
	names := []string{"a lease's header has an ID of its own each time", "a refund counts twice"}
	for _, x := range wrongs() {
		if slices.Contains(names, x.name) {
			harnesses[x.name] = severalHarness(t,
				func(at time.Time) Ledger { return newTampered(at, x) }, 0, foreignMS)
		}
	}
	if len(harnesses) != len(names)+4 {
		t.Fatalf("%d harnesses, and %d names of wrongs", len(harnesses), len(names))
	}
	for name, h := range harnesses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := conformance.Record(t, func(t conformance.T) {
				conformance.Linearizable(t, h,
					conformance.Load{Seed: 1, Histories: 60, Goroutines: 8, Calls: 100})
			})
			if !r.Failed {
				t.Errorf("histories in which %s make sense", name)
			} else if len(r.Messages) > 0 {
				t.Log(r.Messages[len(r.Messages)-1])
			}
		})
	}
}
