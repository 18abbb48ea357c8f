//go:build cgo

package tigerbeetle

import (
	"context"
	"errors"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/internal/soak"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/tigerbeetle/internal/client"
)

// sharedLedger is a ledger that many stores use, because a cluster has no more than 64 sessions.
// Its Close does nothing.
type sharedLedger struct{ Ledger }

func (sharedLedger) Close() error { return nil }

// connected returns a client of the server.
func connected(t testing.TB) Ledger {
	t.Helper()
	address, cluster := testkit.TigerBeetle(t)
	c, err := client.Open(t.Context(), []string{address}, cluster, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// liveNamespace returns the name of a namespace that was never used.
func liveNamespace() string {
	return "w" + strings.ToLower(weir.NewLeaseID(time.Now()).String())
}

// liveHarness opens each world in a namespace of its own, on a server that uses its own clock.
func liveHarness(t testing.TB) conformance.StoreHarness {
	t.Helper()
	ledger := connected(t)
	return conformance.StoreHarness{
		RealTime: true, NoSkew: true, Inexact: true, StoreTimeout: 30 * time.Second,
		Leeway: conformance.Leeway{
			WholeSecondRest: true, NeverForgetsEarly: true, OwnClock: true, EstimatedAvailable: true, NoBubble: true,
		},
		Open: func(t conformance.T, s conformance.Setup) driver.Store {
			t.Helper()
			store, err := OpenLedger(t.Context(), sharedLedger{ledger}, &Options{
				Definitions: s.Definitions, Namespace: liveNamespace(), Poll: -1,
			})
			if err != nil {
				t.Fatalf("open: %v", err)
			}
			return store
		},
	}
}

// TestConformanceLive runs both suites on a real server, except for the cases that need a clock of
// the test's.
func TestConformanceLive(t *testing.T) {
	t.Parallel()
	conformance.TestStore(t, liveHarness(t))
}

// TestHistoriesLive checks that concurrent calls are linearizable on a real server.
func TestHistoriesLive(t *testing.T) {
	t.Parallel()
	conformance.Linearizable(t, liveHarness(t).Service(t), conformance.Load{
		Seed: 1, Histories: soak.Amount(3, 100), Goroutines: 8, Calls: 60,
	})
}

// TestLiveOpen checks that an address may be a name, and that a wrong cluster or port is reported
// in time.
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
		want := "no replica answered at " + tc.address + " as TigerBeetle cluster " + tc.cluster.String()
		if !errors.Is(err, weir.Unavailable) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s as cluster %s: got %v, want %q", tc.address, tc.cluster, err, want)
		}
	}
}
