//go:build cgo

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/tigerbeetle"
	"github.com/weir-limiter/weir/tigerbeetle/emulator"
)

// newNamespace returns a namespace that was never used.
func newNamespace() string {
	return "bench" + strings.ToLower(weir.NewLeaseID(time.Now()).String())
}

// openLedger opens weir on a cluster.
func openLedger(ctx context.Context, s *spec) (*workload, error) {
	store, err := tigerbeetle.Open(ctx, s.Addresses, &tigerbeetle.Options{Namespace: newNamespace()})
	if err != nil {
		return nil, err
	}
	return newLedger(s, store)
}

// newLedger opens a limiter with a limit of each kind on a store, which it closes with itself. Its
// options are the defaults, except that it waits longer.
func newLedger(s *spec, store *tigerbeetle.Store) (*workload, error) {
	lim, err := limiter.New(store, &limiter.Options{
		StoreTimeout: patience,
		Limits: []weir.Limit{
			{Name: "tokens", Kind: weir.Bucket, Capacity: plenty},
			{Name: "recent", Kind: weir.Window, Capacity: plenty, Window: time.Minute},
			{Name: "parallel", Kind: weir.Concurrency, Capacity: plenty, Timeout: time.Hour},
			{Name: "monthly", Kind: weir.Budget, Capacity: plenty, Every: "month"},
		},
	})
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	costs := weir.Costs{"tokens": 3, "recent": 3, "parallel": 1, "monthly": 3}
	actuals := weir.Costs{"tokens": 2, "recent": 2, "monthly": 2}
	return &workload{
		works: leaseWorks(s, lim, costs, actuals),
		counts: func() map[string]int64 {
			n := store.Stats()
			return map[string]int64{countCalls: n.TransferCalls, countEvents: n.Transfers}
		},
		close: lim.Close,
	}, nil
}

// rawLedger makes the calls of weir with TigerBeetle's own client, and nothing else: it resolves no
// limits, remembers no lease, and only checks whether everything was created.
type rawLedger struct {
	client tb.Client
	shapes leaseShapes
	// share is the number of leases in a thousand that have the larger shape.
	share         int64
	begun         atomic.Int64 // leases
	calls, events atomic.Int64
}

// openRawLedger has weir take leases on the cluster for a while to see how many events they have,
// copies weir's calls from an emulator, and creates their accounts.
func openRawLedger(ctx context.Context, s *spec) (_ *workload, err error) {
	model, err := openLedger(ctx, s)
	if err != nil {
		return nil, err
	}
	_, err = model.obey(ctx, &command{Work: workBoth, Ops: s.Callers}) // this creates the accounts
	seen, failed := model.obey(ctx, &command{Work: workBoth, NS: s.WarmNS})
	if err := errors.Join(err, failed, model.close()); err != nil {
		return nil, err
	}
	copied, err := copyLeases(ctx, s)
	if err != nil {
		return nil, err
	}
	r := &rawLedger{shapes: copied.shapes}
	if r.share, err = copied.shapes.share(&seen); err != nil {
		return nil, err
	}
	if r.client, err = tb.NewClient(tb.ToUint128(0), s.Addresses); err != nil {
		return nil, err
	}
	if err := r.fund(copied); err != nil {
		r.client.Close()
		return nil, err
	}
	return &workload{
		works: map[string]*work{workBoth: {callers: slices.Repeat([]operation{r.lease}, s.Callers)}},
		counts: func() map[string]int64 {
			return map[string]int64{countCalls: r.calls.Load(), countEvents: r.events.Load()}
		},
		close: func() error {
			r.client.Close()
			return nil
		},
	}, nil
}

// fund creates the accounts and the transfers of the first lease.
func (r *rawLedger) fund(copied *ledgerCopy) error {
	accounts, err := r.client.CreateAccounts(copied.accounts)
	if err != nil {
		return err
	}
	for i := range accounts {
		if s := accounts[i].Status; s != tb.AccountCreated {
			return fmt.Errorf("create_accounts: %s", s)
		}
	}
	for _, call := range copied.first {
		if err := r.create(call); err != nil {
			return err
		}
	}
	return nil
}

// create fails unless all transfers of a call are created.
func (r *rawLedger) create(transfers []tb.Transfer) error {
	results, err := r.client.CreateTransfers(transfers)
	if err != nil {
		return err
	}
	for i := range results {
		if s := results[i].Status; s != tb.TransferCreated {
			return fmt.Errorf("create_transfers: event %d: %s", i, s)
		}
	}
	return nil
}

// lease makes the calls of one lease, one after the other, under IDs that grow with time.
func (r *rawLedger) lease(context.Context) (opResult, error) {
	n := r.begun.Add(1)
	s := &r.shapes.least
	if n*r.share/1000 != (n-1)*r.share/1000 {
		s = &r.shapes.most
	}
	number, ids := tb.ID(), make([]tb.Uint128, 0, s.events)
	for _, call := range s.calls {
		transfers := slices.Clone(call.transfers)
		for i := range transfers {
			t := &transfers[i]
			t.ID = tb.ID()
			ids = append(ids, t.ID)
			if call.pending[i] >= 0 {
				t.PendingID = ids[call.pending[i]]
			}
			if t.UserData128 == call.number {
				t.UserData128 = number
			}
		}
		r.calls.Add(1)
		r.events.Add(int64(len(transfers)))
		if err := r.create(transfers); err != nil {
			return done, err
		}
	}
	return admitted, nil
}

// leaseShape is the calls of a lease.
type leaseShape struct {
	calls  []callShape
	events int
}

// callShape is one call.
type callShape struct {
	transfers []tb.Transfer
	// pending has, for each transfer, the index of the lease's event that it ends; -1 for none.
	pending []int
	number  tb.Uint128 // the lease's
}

// shapeOf returns the shape of a lease's calls.
func shapeOf(calls [][]tb.Transfer) (leaseShape, error) {
	var s leaseShape
	place := make(map[tb.Uint128]int)
	for _, transfers := range calls {
		call := callShape{transfers: transfers, number: transfers[0].UserData128}
		for i := range transfers {
			place[transfers[i].ID] = s.events
			s.events++
			at := -1
			if pending := transfers[i].PendingID; pending != (tb.Uint128{}) {
				var ok bool
				if at, ok = place[pending]; !ok {
					return s, errors.New("weir ended a transfer of another lease")
				}
			}
			call.pending = append(call.pending, at)
		}
		s.calls = append(s.calls, call)
	}
	return s, nil
}

// leaseShapes are the two shapes that a lease may have: without and with the transfer that moves
// the bucket's anchor.
type leaseShapes struct{ least, most leaseShape }

// share returns how many leases of a thousand are of the larger shape, such that there are as many
// events as in weir's leases. It fails if no mixture of the two has as many calls and events.
func (s *leaseShapes) share(seen *reply) (int64, error) {
	calls, events := seen.perOp(seen.Counts[countCalls]), seen.perOp(seen.Counts[countEvents])
	least, most := float64(s.least.events), float64(s.most.events)
	within := min(max(events, least), most)
	if len(s.least.calls) != len(s.most.calls) || !near(calls, float64(len(s.least.calls))) ||
		!near(events, within) {
		return 0, fmt.Errorf("on the cluster weir made %.2f calls of %.2f events for a lease; "+
			"the copy has %d of %d to %d", calls, events, len(s.least.calls), s.least.events, s.most.events)
	}
	return int64(quotient((within-least)*1000, most-least)), nil
}

// ledgerCopy has the calls that weir makes for a lease.
type ledgerCopy struct {
	accounts []tb.Account
	// first are the calls until the first lease has ended, which also fund the accounts.
	first  [][]tb.Transfer
	shapes leaseShapes
}

// copyLeases has weir take leases on an emulator in the process, and copies its calls: for the
// first lease, for one in the same millisecond, whose bucket has nothing to refill, and for one a
// second later.
func copyLeases(ctx context.Context, s *spec) (_ *ledgerCopy, err error) {
	now := time.Now()
	clock := func() time.Time { return now }
	r := &ledgerRecorder{Ledger: emulator.New(&emulator.Options{Now: clock})}
	store, err := tigerbeetle.OpenLedger(ctx, r, &tigerbeetle.Options{
		Namespace: newNamespace(), Poll: -1, Now: clock,
	})
	if err != nil {
		return nil, err
	}
	w, err := newLedger(s, store)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	var leases [3][][]tb.Transfer
	for i := range leases {
		if _, err := w.works[workBoth].callers[0](ctx); err != nil {
			return nil, err
		}
		leases[i], r.calls = r.calls, nil
		if i == 1 {
			now = now.Add(time.Second)
		}
	}
	out := &ledgerCopy{accounts: r.accounts, first: leases[0]}
	if out.shapes.least, err = shapeOf(leases[1]); err != nil {
		return nil, err
	}
	out.shapes.most, err = shapeOf(leases[2])
	return out, err
}

// ledgerRecorder is a ledger that records what one caller creates on it.
type ledgerRecorder struct {
	tigerbeetle.Ledger

	accounts []tb.Account
	calls    [][]tb.Transfer
}

// CreateAccounts records the accounts.
func (r *ledgerRecorder) CreateAccounts(
	ctx context.Context, accounts []tb.Account,
) ([]tb.CreateAccountResult, error) {
	for i := range accounts {
		if accounts[i].ID != (tb.Uint128{}) { // without an ID, weir only asks for the time
			r.accounts = append(r.accounts, accounts[i])
		}
	}
	return r.Ledger.CreateAccounts(ctx, accounts)
}

// CreateTransfers records the transfers.
func (r *ledgerRecorder) CreateTransfers(
	ctx context.Context, transfers []tb.Transfer,
) ([]tb.CreateTransferResult, error) {
	r.calls = append(r.calls, slices.Clone(transfers))
	return r.Ledger.CreateTransfers(ctx, transfers)
}
