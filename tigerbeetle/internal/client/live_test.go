//go:build cgo

package client

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/testkit"
)

// TestLiveClient checks that the largest calls that the client says fit do, and that larger ones
// are refused or split.
func TestLiveClient(t *testing.T) {
	t.Parallel()
	address, cluster := testkit.TigerBeetle(t)
	o := optionsFor([]string{address}, cluster, func(error) {})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := newClient(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	most := c.MaxEvents()
	t.Logf("a call holds %d events, %d look-ups", most, c.lookups.Load())
	// Transfers without IDs are refused one by one, and nothing is stored.
	results, err := c.CreateTransfers(ctx, make([]tb.Transfer, most))
	if err != nil || len(results) != most || results[most-1].Status != tb.TransferIDMustNotBeZero {
		t.Errorf("%d events: got %d results, %v", most, len(results), err)
	}
	if _, err := c.CreateTransfers(ctx, make([]tb.Transfer, most+1)); !errors.Is(err, weir.Invalid) {
		t.Errorf("%d events: got %v, want %v", most+1, err, weir.Invalid)
	}
	if found, err := c.LookupAccounts(ctx, make([]tb.Uint128, 2*maxEvents)); err != nil || len(found) != 0 {
		t.Errorf("look-ups: got %d, %v", len(found), err)
	}
	if accounts, err := c.CreateAccounts(ctx, make([]tb.Account, 2*most+1)); err != nil || len(accounts) != 2*most+1 {
		t.Errorf("accounts: got %d results, %v", len(accounts), err)
	}
	if _, err := c.QueryTransfers(ctx, tb.QueryFilter{Ledger: 1 << 30, Limit: 1 << 30}); err != nil {
		t.Errorf("query: %v", err)
	}
	var calls sync.WaitGroup
	for range 200 {
		calls.Go(func() {
			if _, err := c.LookupAccounts(ctx, make([]tb.Uint128, 100)); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
}
