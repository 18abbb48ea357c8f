//go:build cgo

package tigerbeetle

import (
	"context"
	"math/rand/v2"
	"runtime"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir/tigerbeetle/emulator"
)

// yields is an emulator that lets other goroutines run before and after each call, as a cluster
// would: so calls at once meet on a machine with few processors too.
type yields struct{ *emulator.Emulator }

// yielding does a call between two moments in which others may do theirs.
func yielding[A, R any](
	ctx context.Context, do func(context.Context, A) (R, error), of A,
) (R, error) {
	defer meet(rand.IntN(4))
	meet(rand.IntN(4))
	return do(ctx, of)
}

// meet lets others run so many times.
func meet(times int) {
	for range times {
		runtime.Gosched()
	}
}

func (y yields) CreateAccounts(
	ctx context.Context, a []tb.Account,
) ([]tb.CreateAccountResult, error) {
	return yielding(ctx, y.Emulator.CreateAccounts, a)
}

func (y yields) CreateTransfers(
	ctx context.Context, t []tb.Transfer,
) ([]tb.CreateTransferResult, error) {
	return yielding(ctx, y.Emulator.CreateTransfers, t)
}

func (y yields) LookupAccounts(ctx context.Context, ids []tb.Uint128) ([]tb.Account, error) {
	return yielding(ctx, y.Emulator.LookupAccounts, ids)
}

func (y yields) LookupTransfers(ctx context.Context, ids []tb.Uint128) ([]tb.Transfer, error) {
	return yielding(ctx, y.Emulator.LookupTransfers, ids)
}

func (y yields) AccountTransfers(ctx context.Context, f tb.AccountFilter) ([]tb.Transfer, error) {
	return yielding(ctx, y.Emulator.AccountTransfers, f)
}

func (y yields) QueryAccounts(ctx context.Context, f tb.QueryFilter) ([]tb.Account, error) {
	return yielding(ctx, y.Emulator.QueryAccounts, f)
}

func (y yields) QueryTransfers(ctx context.Context, f tb.QueryFilter) ([]tb.Transfer, error) {
	return yielding(ctx, y.Emulator.QueryTransfers, f)
}
