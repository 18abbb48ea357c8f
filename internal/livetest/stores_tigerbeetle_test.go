//go:build cgo

package livetest

import (
	"context"
	"strings"
	"testing"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/tigerbeetle"
	"github.com/weir-limiter/weir/tigerbeetle/emulator"
)

// tigerBeetles returns the emulator and a real server.
func tigerBeetles() []*store {
	return []*store{
		{name: "emulator", virtual: true, late: true, shares: true, open: openEmulator},
		{name: "tigerbeetle", late: true, shares: true, open: openTigerBeetle},
	}
}

// openEmulator opens the servers' stores on one emulator.
func openEmulator(t *testing.T, o *opening) []driver.Store {
	t.Helper()
	cluster := emulator.New(nil)
	o.closing = append(o.closing, func() {
		// A store that is closed waits a second for its withdrawals; transfers that are held back
		// continue.
		for o.late != nil && o.late.underway.Load() > 0 {
			<-time.After(poll)
		}
		_ = cluster.Close()
	})
	var stores []driver.Store
	for range o.servers {
		s, err := tigerbeetle.OpenLedger(t.Context(), &lateLedger{cluster, o.late},
			&tigerbeetle.Options{Definitions: &weir.Definitions{System: o.limits}})
		if err != nil {
			t.Fatal(err)
		}
		stores = append(stores, s)
	}
	return stores
}

// lateLedger is a cluster behind a network that may hold back transfers, or the answer to them. A
// call continues if its caller gives up.
type lateLedger struct {
	tigerbeetle.Ledger

	late *delays
}

// Close does nothing, because the other servers use the cluster too.
func (*lateLedger) Close() error { return nil }

func (l *lateLedger) CreateTransfers(
	ctx context.Context, transfers []tb.Transfer,
) ([]tb.CreateTransferResult, error) {
	if l.late == nil {
		return l.Ledger.CreateTransfers(ctx, transfers)
	}
	type results struct {
		all []tb.CreateTransferResult
		err error
	}
	done := make(chan results, 1)
	l.late.underway.Add(1)
	go func() {
		defer l.late.underway.Add(-1)
		<-time.After(l.late.next(true))
		all, err := l.Ledger.CreateTransfers(context.WithoutCancel(ctx), transfers)
		<-time.After(l.late.next(true))
		done <- results{all, err}
	}()
	select {
	case r := <-done:
		return r.all, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// openTigerBeetle opens the servers' stores on the TigerBeetle server of the environment, each with
// its own client.
func openTigerBeetle(t *testing.T, o *opening) []driver.Store {
	t.Helper()
	address, cluster := testkit.TigerBeetle(t)
	options := &tigerbeetle.Options{
		Cluster:     cluster,
		Namespace:   "l" + strings.ToLower(weir.NewLeaseID(time.Now()).String()),
		Definitions: &weir.Definitions{System: o.limits},
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // the machine may be busy
	defer cancel()
	var stores []driver.Store
	for range o.servers {
		at := address
		if o.late != nil {
			// All calls of a server share one connection, so they wait for a message that is held
			// back on it.
			o.late.oneOf = 50
			w := &wire{
				network: loopback{}, target: address, delays: o.late,
				marks: func([]byte) bool { return true }, requests: true, answers: true,
			}
			w.start(t)
			o.closing = append(o.closing, w.close)
			at = w.address()
		}
		s, err := tigerbeetle.Open(ctx, []string{at}, options)
		if err != nil {
			t.Fatal(err)
		}
		stores = append(stores, s)
	}
	return stores
}
