//go:build cgo

package tigerbeetle

import (
	"context"
	"math/rand/v2"
	"runtime"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir/tigerbeetle/emulator"
)

// yieldingEmulator is an emulator that lets other goroutines run before and after each call, so
// that concurrent calls overlap even on a machine with few processors.
type yieldingEmulator struct{ *emulator.Emulator }

// callYielding makes a call, and yields to other goroutines before and after it.
func callYielding[A, R any](
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

func (y yieldingEmulator) CreateAccounts(
	ctx context.Context, a []tb.Account,
) ([]tb.CreateAccountResult, error) {
	return callYielding(ctx, y.Emulator.CreateAccounts, a)
}

func (y yieldingEmulator) CreateTransfers(
	ctx context.Context, t []tb.Transfer,
) ([]tb.CreateTransferResult, error) {
	return callYielding(ctx, y.Emulator.CreateTransfers, t)
}

func (y yieldingEmulator) LookupAccounts(
	ctx context.Context, ids []tb.Uint128,
) ([]tb.Account, error) {
	return callYielding(ctx, y.Emulator.LookupAccounts, ids)
}

func (y yieldingEmulator) LookupTransfers(
	ctx context.Context, ids []tb.Uint128,
) ([]tb.Transfer, error) {
	return callYielding(ctx, y.Emulator.LookupTransfers, ids)
}

func (y yieldingEmulator) AccountTransfers(
	ctx context.Context, f tb.AccountFilter,
) ([]tb.Transfer, error) {
	return callYielding(ctx, y.Emulator.AccountTransfers, f)
}

func (y yieldingEmulator) QueryAccounts(
	ctx context.Context, f tb.QueryFilter,
) ([]tb.Account, error) {
	return callYielding(ctx, y.Emulator.QueryAccounts, f)
}

func (y yieldingEmulator) QueryTransfers(
	ctx context.Context, f tb.QueryFilter,
) ([]tb.Transfer, error) {
	return callYielding(ctx, y.Emulator.QueryTransfers, f)
}
