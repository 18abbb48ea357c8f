//go:build cgo

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	tb "github.com/tigerbeetle/tigerbeetle-go"
)

// rawLedger makes the calls that weir makes by TigerBeetle's own client, and nothing else: no limits are
// resolved, no lease is remembered, no answer is looked at but for whether everything was created.
type rawLedger struct {
	client tb.Client
	shapes leaseShapes
	// share is how many leases of a thousand are of the larger shape, begun how many there were.
	share         int64
	begun         atomic.Int64
	calls, events atomic.Int64
}

// openRawLedger copies weir's calls from an emulator, makes the accounts that they deal with, and takes the
// shapes of a lease as often as weir did on the server.
func openRawLedger(ctx context.Context, a *ledgerArena, namespace string) (_ *rawLedger, err error) {
	copied, err := copyLeases(ctx, namespace)
	if err != nil {
		return nil, err
	}
	share, err := copied.shapes.share(&a.model)
	if err != nil {
		return nil, err
	}
	client, err := tb.NewClient(tb.ToUint128(0), a.addresses)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			client.Close()
		}
	}()
	accounts, err := client.CreateAccounts(copied.accounts)
	if err != nil {
		return nil, err
	}
	for i := range accounts {
		if s := accounts[i].Status; s != tb.AccountCreated {
			return nil, fmt.Errorf("create_accounts: %s", s)
		}
	}
	for _, call := range copied.first {
		if err := created(client.CreateTransfers(call)); err != nil {
			return nil, err
		}
	}
	return &rawLedger{client: client, shapes: copied.shapes, share: share}, nil
}

// created fails unless all transfers of a call were created.
func created(results []tb.CreateTransferResult, err error) error {
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
func (r *rawLedger) lease(context.Context) error {
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
		if err := created(r.client.CreateTransfers(transfers)); err != nil {
			return err
		}
	}
	return nil
}

func (r *rawLedger) sent() ledgerSent { return ledgerSent{r.calls.Load(), r.events.Load()} }

func (r *rawLedger) close() error {
	r.client.Close()
	return nil
}

// leaseShape are the calls of a lease.
type leaseShape struct {
	calls  []callShape
	events int
}

// callShape is one call.
type callShape struct {
	transfers []tb.Transfer
	// pending says for each transfer which event of the lease it ends; -1 for none.
	pending []int
	number  tb.Uint128 // the lease's
}

// shapeOf is the shape of a lease's calls.
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

// leaseShapes are the smallest and the largest shape that a lease had: with and without what moves the
// bucket's anchor, which one call at a time carries.
type leaseShapes struct{ least, most leaseShape }

// share is how many leases of a thousand are of the larger shape where there are so many events on average.
// It fails where no mixture of the two has as many calls and events.
func (s *leaseShapes) share(model *ledgerFigure) (int64, error) {
	calls, events := model.per(model.sent.calls), model.per(model.sent.events)
	least, most := int64(s.least.events)*1000, int64(s.most.events)*1000
	within := min(max(events, least), most)
	if !near(calls, int64(len(s.least.calls))*1000) || len(s.least.calls) != len(s.most.calls) ||
		!near(events, within) {
		return 0, fmt.Errorf("on the server weir made %s calls of %s events for a lease; the copy has %d of %d to %d",
			decimal(calls, 2), decimal(events, 2), len(s.least.calls), s.least.events, s.most.events)
	}
	if most == least {
		return 0, nil
	}
	return (within - least) * 1000 / (most - least), nil
}
