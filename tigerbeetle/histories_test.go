//go:build cgo

package tigerbeetle

import (
	"context"
	"slices"
	"testing"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir/conformance"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/internal/soak"
	"github.com/weir-limiter/weir/tigerbeetle/internal/uint128"
)

// TestHistories checks that concurrent calls are linearizable: their answers fit some order of the
// calls. [yieldingEmulator] makes calls of the cluster overlap.
func TestHistories(t *testing.T) {
	t.Parallel()
	conformance.Linearizable(t, harness().Service(t), conformance.Load{
		Seed: 1, Histories: soak.Amount(10, 4000), Goroutines: 8, Calls: 100,
	})
}

// TestHistoriesEstimate checks that the leeway is needed: the available units in the answer to a
// reservation are not always those of its instant.
func TestHistoriesEstimate(t *testing.T) {
	t.Parallel()
	h := harness()
	h.EstimatedAvailable = false
	r := conformance.Record(t, func(t conformance.T) {
		conformance.Linearizable(t, h.Service(t),
			conformance.Load{Seed: 1, Histories: 60, Goroutines: 8, Calls: 100})
	})
	if !r.Failed {
		t.Error("histories make sense without the leeway")
	}
}

// separateLookups looks accounts up one after the other, so that they are of different instants.
type separateLookups struct{ yieldingEmulator }

func (a separateLookups) LookupAccounts(
	ctx context.Context, ids []tb.Uint128,
) ([]tb.Account, error) {
	var found []tb.Account
	for _, id := range ids {
		one, err := a.yieldingEmulator.LookupAccounts(ctx, []tb.Uint128{id})
		if err != nil {
			return nil, err
		}
		found = append(found, one...)
	}
	return found, nil
}

// uncheckedTakes judges by what it has looked up, and then takes without a check.
type uncheckedTakes struct{ yieldingEmulator }

func (h uncheckedTakes) CreateTransfers(
	ctx context.Context, transfers []tb.Transfer,
) ([]tb.CreateTransferResult, error) {
	all := slices.Clone(transfers)
	for i := range all {
		t := &all[i]
		if t.Code != codeCheck || t.Flags&flagPending == 0 || i+1 == len(all) {
			continue
		}
		found, err := h.LookupAccounts(ctx, []tb.Uint128{t.DebitAccountID})
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return h.yieldingEmulator.CreateTransfers(ctx, transfers)
		}
		a := &found[0]
		free := uint128.Of(a.CreditsPosted).Minus(uint128.Of(a.DebitsPosted)).Minus(uint128.Of(a.DebitsPending))
		if uint128.Of(t.Amount).GreaterThan(free) {
			return h.yieldingEmulator.CreateTransfers(ctx, transfers)
		}
		t.Amount = all[i+1].Amount // what is posted, or nothing
	}
	return h.yieldingEmulator.CreateTransfers(ctx, all)
}

// on returns a harness that opens stores on ledgers made by a function.
func on(ledger func(yieldingEmulator) Ledger) conformance.StoreHarness {
	h := harness()
	h.Open = func(t conformance.T, s conformance.Setup) driver.Store {
		t.Helper()
		return emulatedOn(t, s, ledger)
	}
	return h
}

// TestHistoriesCatchDefects checks that histories of stores on defective ledgers are not
// linearizable.
func TestHistoriesCatchDefects(t *testing.T) {
	t.Parallel()
	harnesses := map[string]conformance.StoreHarness{
		"accounts are looked up one by one": on(func(y yieldingEmulator) Ledger { return separateLookups{y} }),
		"checks and takes are two calls":    on(func(y yieldingEmulator) Ledger { return uncheckedTakes{y} }),
	}
	names := []string{
		"a window's or slots' check is left out", "a bucket's or budget's check has no rest",
		"a check asks for one unit less", "the chain is not linked",
		"what the second limit takes is not counted", "a cancel keeps the holds",
		"a complete keeps the slots", "a shrink does not replace the hold", "an overrun is dropped",
		"a refund is dropped", "a refund counts twice",
	}
	for _, x := range wrongs() {
		if slices.Contains(names, x.name) {
			harnesses[x.name] = wrongHarness(x)
		}
	}
	if len(harnesses) != len(names)+2 {
		t.Fatalf("%d harnesses, and %d names of wrongs", len(harnesses), len(names))
	}
	for name, h := range harnesses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := conformance.Record(t, func(t conformance.T) {
				conformance.Linearizable(t, h.Service(t),
					conformance.Load{Seed: 1, Histories: 60, Goroutines: 8, Calls: 100})
			})
			if !r.Failed {
				t.Errorf("histories in which %s make sense", name)
			} else if len(r.Messages) > 0 {
				t.Logf("%d messages, the last: %s", len(r.Messages), r.Messages[len(r.Messages)-1])
			}
		})
	}
}
