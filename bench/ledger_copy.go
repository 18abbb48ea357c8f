//go:build cgo

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir/tigerbeetle"
)

// ledgerCopy is what weir asks of a ledger.
type ledgerCopy struct {
	accounts []tb.Account
	// first are the calls until the first lease has ended, which also fund the accounts.
	first  [][]tb.Transfer
	shapes leaseShapes
}

// copiedLeases is how many leases are copied at most: in so many some fall into the same millisecond, and
// do not move the bucket's anchor.
const copiedLeases = 1000

// copyLeases has weir take leases on an emulator in the process, and copies what it asks for.
func copyLeases(ctx context.Context, namespace string) (_ *ledgerCopy, err error) {
	recorder := &recorder{Ledger: tigerbeetle.NewEmulator(nil)}
	store, err := tigerbeetle.OpenLedger(ctx, recorder, &tigerbeetle.Options{Namespace: namespace, Poll: -1})
	if err != nil {
		return nil, err
	}
	w, err := newWeirLedger(store)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := w.lease(ctx); err != nil {
		return nil, err
	}
	out := &ledgerCopy{accounts: recorder.accounts, first: recorder.take()}
	for i := range copiedLeases {
		if err := w.lease(ctx); err != nil {
			return nil, err
		}
		s, err := shapeOf(recorder.take())
		if err != nil {
			return nil, err
		}
		if i == 0 || s.events < out.shapes.least.events {
			out.shapes.least = s
		}
		if s.events > out.shapes.most.events {
			out.shapes.most = s
		}
	}
	if len(recorder.accounts) != len(out.accounts) {
		return nil, fmt.Errorf("weir made %d accounts for the first lease and %d in all; want the same",
			len(out.accounts), len(recorder.accounts))
	}
	return out, nil
}

// recorder is a ledger that notes what is created on it, by one caller.
type recorder struct {
	tigerbeetle.Ledger
	accounts []tb.Account
	calls    [][]tb.Transfer
}

// CreateAccounts notes the accounts.
func (r *recorder) CreateAccounts(
	ctx context.Context, accounts []tb.Account,
) ([]tb.CreateAccountResult, error) {
	for i := range accounts {
		if accounts[i].ID != (tb.Uint128{}) { // weir only asks for the time
			r.accounts = append(r.accounts, accounts[i])
		}
	}
	return r.Ledger.CreateAccounts(ctx, accounts)
}

// CreateTransfers notes the transfers.
func (r *recorder) CreateTransfers(
	ctx context.Context, transfers []tb.Transfer,
) ([]tb.CreateTransferResult, error) {
	r.calls = append(r.calls, slices.Clone(transfers))
	return r.Ledger.CreateTransfers(ctx, transfers)
}

// take returns what was noted of calls since it was called last.
func (r *recorder) take() [][]tb.Transfer {
	calls := r.calls
	r.calls = nil
	return calls
}
