//go:build cgo

package tigerbeetle

import (
	"context"
	"sync/atomic"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
)

// Ledger is the part of TigerBeetle's API that a [Store] uses, in TigerBeetle's own types. Its
// methods may be called concurrently.
//
// A call that returns an error has an unknown outcome: it may be carried out, even later. It is
// safe to repeat, because everything that it creates has an ID. Otherwise the calls that create
// return one result for each event, in order.
//
// A ledger may read the arguments of a call that failed at any later time. It must not read them
// after a call that returned results, because the store reuses them.
type Ledger interface {
	CreateAccounts(ctx context.Context, accounts []tb.Account) ([]tb.CreateAccountResult, error)
	CreateTransfers(ctx context.Context, transfers []tb.Transfer) ([]tb.CreateTransferResult, error)
	LookupAccounts(ctx context.Context, ids []tb.Uint128) ([]tb.Account, error)
	LookupTransfers(ctx context.Context, ids []tb.Uint128) ([]tb.Transfer, error)
	AccountTransfers(ctx context.Context, filter tb.AccountFilter) ([]tb.Transfer, error)
	QueryAccounts(ctx context.Context, filter tb.QueryFilter) ([]tb.Account, error)
	QueryTransfers(ctx context.Context, filter tb.QueryFilter) ([]tb.Transfer, error)
	// MaxEvents returns how many events fit one call, as far as is known.
	MaxEvents() int
	Close() error
}

// unexpected returns the error for an answer that the cluster should never give.
func unexpected(call, status string) error {
	return &weir.Error{Code: weir.Unavailable, Reason: "TigerBeetle answered " + call + " with " + status}
}

func readOnly() error {
	return &weir.Error{Code: weir.Unsupported, Reason: "the store was opened for reading only"}
}

// counts are the counters behind [Store.Stats].
type counts struct {
	transferCalls, transfers, lookups, queries, remembered, again, contended, abandoned, withdrawn, usageDropped atomic.Int64
}

// Stats counts what a store has done after it was opened.
type Stats struct {
	// TransferCalls is the number of create_transfers calls, Transfers the number of their events.
	TransferCalls, Transfers int64
	// Lookups and Queries are the numbers of calls that only read.
	Lookups, Queries int64
	// Remembered is the number of denials given without asking the cluster.
	Remembered int64
	// Again is the number of chains sent again because another server was first, or because units had
	// expired on the cluster.
	Again int64
	// Contended is the number of reservations denied because other servers won every try.
	Contended int64
	// Abandoned is the number of reservations whose callers left before the outcome was known,
	// Withdrawn the number of those that were carried out nevertheless and given back.
	Abandoned, Withdrawn int64
	// UsageDropped is the number of changes of limits that usage lacks, because too many waited to be
	// written.
	UsageDropped int64
}

// Stats returns the counts so far.
func (s *Store) Stats() Stats {
	c := &s.counts
	return Stats{
		TransferCalls: c.transferCalls.Load(), Transfers: c.transfers.Load(),
		Lookups: c.lookups.Load(), Queries: c.queries.Load(),
		Remembered: c.remembered.Load(), Again: c.again.Load(), Contended: c.contended.Load(),
		Abandoned: c.abandoned.Load(), Withdrawn: c.withdrawn.Load(), UsageDropped: c.usageDropped.Load(),
	}
}

// Counts yields the counts of [Stats] under the names of their metrics.
func (s *Store) Counts(yield func(name, help string, read func() int64) bool) {
	c := &s.counts
	for _, of := range []struct {
		name, help string
		count      *atomic.Int64
	}{
		{"contended", "Reservations denied because other servers won every retry.", &c.contended},
		{"transfer_calls", "Calls of create_transfers.", &c.transferCalls},
		{"transfers", "Events in calls of create_transfers.", &c.transfers},
		{"lookups", "Calls that looked up accounts or transfers by their IDs.", &c.lookups},
		{"queries", "Calls that searched for accounts or transfers by other fields.", &c.queries},
		{"remembered", "Denials given without asking the cluster.", &c.remembered},
		{"again", "Chains sent again because another server or the passing of time had made them invalid.", &c.again},
		{"abandoned", "Reservations whose callers left before the outcome was known.", &c.abandoned},
		{"withdrawn", "Abandoned reservations that were carried out after all, and then given back.", &c.withdrawn},
		{"usage_dropped", "Changes of limits that usage lacks, because too many waited to be written.", &c.usageDropped},
	} {
		if !yield(of.name, of.help, of.count.Load) {
			return
		}
	}
}

// countingLedger counts the calls of a ledger, including those that fail.
type countingLedger struct {
	Ledger
	*counts
}

func (t countingLedger) CreateTransfers(
	ctx context.Context, of []tb.Transfer,
) ([]tb.CreateTransferResult, error) {
	t.transferCalls.Add(1)
	t.transfers.Add(int64(len(of)))
	return t.Ledger.CreateTransfers(ctx, of)
}

func (t countingLedger) LookupAccounts(ctx context.Context, ids []tb.Uint128) ([]tb.Account, error) {
	t.lookups.Add(1)
	return t.Ledger.LookupAccounts(ctx, ids)
}

func (t countingLedger) LookupTransfers(ctx context.Context, ids []tb.Uint128) ([]tb.Transfer, error) {
	t.lookups.Add(1)
	return t.Ledger.LookupTransfers(ctx, ids)
}

func (t countingLedger) AccountTransfers(ctx context.Context, f tb.AccountFilter) ([]tb.Transfer, error) {
	t.queries.Add(1)
	return t.Ledger.AccountTransfers(ctx, f)
}

func (t countingLedger) QueryAccounts(ctx context.Context, f tb.QueryFilter) ([]tb.Account, error) {
	t.queries.Add(1)
	return t.Ledger.QueryAccounts(ctx, f)
}

func (t countingLedger) QueryTransfers(ctx context.Context, f tb.QueryFilter) ([]tb.Transfer, error) {
	t.queries.Add(1)
	return t.Ledger.QueryTransfers(ctx, f)
}
