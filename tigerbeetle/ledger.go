//go:build cgo

package tigerbeetle

import (
	"context"

	tb "github.com/tigerbeetle/tigerbeetle-go"
)

// Ledger is what a [Store] needs of TigerBeetle, in its own words. All calls may be made at once.
//
// A call that returns an error has an unknown outcome: it may be carried out, even later. Repeating
// it is safe, since whatever is created has an ID. Results are dense: one for each event, in order.
//
// What a call is given may be read after it has returned where it was given up with an error, and never
// where it has returned results: a store uses it again then.
type Ledger interface {
	CreateAccounts(ctx context.Context, accounts []tb.Account) ([]tb.CreateAccountResult, error)
	CreateTransfers(ctx context.Context, transfers []tb.Transfer) ([]tb.CreateTransferResult, error)
	LookupAccounts(ctx context.Context, ids []tb.Uint128) ([]tb.Account, error)
	LookupTransfers(ctx context.Context, ids []tb.Uint128) ([]tb.Transfer, error)
	AccountTransfers(ctx context.Context, filter tb.AccountFilter) ([]tb.Transfer, error)
	QueryAccounts(ctx context.Context, filter tb.QueryFilter) ([]tb.Account, error)
	QueryTransfers(ctx context.Context, filter tb.QueryFilter) ([]tb.Transfer, error)
	// MaxEvents is how many events fit one call, as far as is known.
	MaxEvents() int
	Close() error
}
