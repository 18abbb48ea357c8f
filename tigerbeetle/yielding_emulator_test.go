//go:build cgo

package tigerbeetle

import (
	"context"
	"math/rand/v2"
	"runtime"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir/tigerbeetle/emulator"
)

// yields is an emulator that lets other goroutines run before and after each call, so that calls
// made at once overlap even on a machine with few processors.
type yields struct{ *emulator.Emulator }

// yielding makes a call, and yields to other goroutines before and after it.
func yielding[A, R any](
	ctx context.Context, do func(context.Context, A) (R, error), of A,
) (R, error) {
	defer meet(rand.IntN(4))
	meet(rand.IntN(4))
	return do(ctx, of)
}

// meet yields to other goroutines a number of times.
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
