//go:build cgo

package tigerbeetle

import (
	"context"
	"errors"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/testkit"
)

// TestLiveClient: the largest calls that the client says fit do, and larger ones are refused or
// split.
func TestLiveClient(t *testing.T) {
	t.Parallel()
	address, cluster := testkit.TigerBeetle(t)
	o := new(Options).client(cluster, []string{address})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := newClient(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	most := c.MaxEvents()
	t.Logf("a call holds %d events, %d look-ups", most, c.lookups.Load())
	// Transfers without IDs are refused one by one, and leave nothing.
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

// TestLiveOpen: a name is as good as an address, and a wrong cluster or port is told in time.
func TestLiveOpen(t *testing.T) {
	t.Parallel()
	address, cluster := testkit.TigerBeetle(t)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	open := func(address string, cluster *big.Int, within time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		s, err := Open(ctx, []string{address}, &Options{Cluster: cluster, Namespace: t.Name(), Poll: -1})
		if err == nil {
			if err := s.Ready(ctx); err != nil {
				t.Errorf("ready: %v", err)
			}
			err = s.Close()
		}
		return err
	}
	for _, at := range []string{address, net.JoinHostPort("localhost", port)} {
		if err := open(at, cluster, patient); err != nil {
			t.Errorf("%s: %v", at, err)
		}
	}
	for _, tc := range []struct {
		address string
		cluster *big.Int
	}{{address, new(big.Int).Add(cluster, big.NewInt(1))}, {"127.0.0.1:1", cluster}} {
		err := open(tc.address, tc.cluster, 2*time.Second)
		want := "nobody answered at " + tc.address + " as TigerBeetle cluster " + tc.cluster.String()
		if !errors.Is(err, weir.Unavailable) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s as cluster %s: got %v, want %q", tc.address, tc.cluster, err, want)
		}
	}
}
