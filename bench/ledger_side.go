//go:build cgo

package main

import (
	"context"
	"strings"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/tigerbeetle"
)

// openLedgerSide opens one of the sides on a namespace that nobody has used.
func openLedgerSide(ctx context.Context, i int, a *ledgerArena) (ledgerSide, error) {
	namespace := "bench" + strings.ToLower(weir.NewLeaseID(time.Now()).String())
	if i == ledgerRaw {
		return openRawLedger(ctx, a, namespace)
	}
	store, err := tigerbeetle.Open(ctx, a.addresses, &tigerbeetle.Options{Namespace: namespace})
	if err != nil {
		return nil, err
	}
	return newWeirLedger(store)
}

// weirLedger is weir on a ledger, with default options but for its patience.
type weirLedger struct {
	store   *tigerbeetle.Store
	limiter *weir.Limiter
	request weir.Request
	actuals weir.Costs
}

// newWeirLedger makes a limiter with a limit of each kind on the store, which it closes with itself.
func newWeirLedger(store *tigerbeetle.Store) (*weirLedger, error) {
	limiter, err := weir.New(store, &weir.Options{
		StoreTimeout: patience,
		Limits: []weir.Limit{
			{Name: "tokens", Kind: weir.Bucket, Capacity: plenty},
			{Name: "recent", Kind: weir.Window, Capacity: plenty, Window: time.Minute},
			{Name: "parallel", Kind: weir.Concurrency, Capacity: plenty, Timeout: time.Hour},
			{Name: "monthly", Kind: weir.Budget, Capacity: plenty, Every: "month"},
		},
	})
	if err != nil {
		_ = store.Close() // it would only say more of the same
		return nil, err
	}
	return &weirLedger{
		store: store, limiter: limiter,
		request: weir.Request{
			Entity: "hot", Resource: contestResource,
			Costs: weir.Costs{"tokens": 3, "recent": 3, "parallel": 1, "monthly": 3},
		},
		actuals: weir.Costs{"tokens": 2, "recent": 2, "monthly": 2},
	}, nil
}

func (w *weirLedger) lease(ctx context.Context) error {
	request := w.request
	lease, err := w.limiter.Reserve(ctx, &request)
	if err != nil {
		return err
	}
	_, err = lease.Complete(ctx, w.actuals)
	return err
}

func (w *weirLedger) sent() ledgerSent {
	s := w.store.Stats()
	return ledgerSent{s.TransferCalls, s.Transfers}
}

func (w *weirLedger) close() error { return w.limiter.Close() }
