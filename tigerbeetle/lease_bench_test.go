//go:build cgo

package tigerbeetle

import (
	"context"
	"testing"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/tigerbeetle/emulator"
)

// acceptingLedger is an emulator that answers every create_transfers call with created, without
// carrying it out.
type acceptingLedger struct{ Ledger }

func (acceptingLedger) CreateTransfers(
	_ context.Context, transfers []tb.Transfer,
) ([]tb.CreateTransferResult, error) {
	results := make([]tb.CreateTransferResult, len(transfers))
	now := uint64(time.Now().UnixNano())
	for i := range results {
		results[i] = tb.CreateTransferResult{Timestamp: now + uint64(i), Status: tb.TransferCreated}
	}
	return results, nil
}

// BenchmarkLease measures what weir computes to reserve and complete a lease on a limit of each
// kind, on a cluster that takes no time.
func BenchmarkLease(b *testing.B) {
	const plenty = 1 << 50
	store, err := OpenLedger(b.Context(), acceptingLedger{emulator.New(nil)}, &Options{Poll: -1})
	if err != nil {
		b.Fatal(err)
	}
	lim, err := limiter.New(store, &limiter.Options{Limits: []weir.Limit{
		{Name: "tokens", Kind: weir.Bucket, Capacity: plenty},
		{Name: "recent", Kind: weir.Window, Capacity: plenty, Window: time.Minute},
		{Name: "parallel", Kind: weir.Concurrency, Capacity: plenty, Timeout: time.Hour},
		{Name: "monthly", Kind: weir.Budget, Capacity: plenty, Every: "month"},
	}})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = lim.Close() }()
	request := weir.Request{
		Entity: "hot", Resource: "r",
		Costs: weir.Costs{"tokens": 3, "recent": 3, "parallel": 1, "monthly": 3},
	}
	actuals := weir.Costs{"tokens": 2, "recent": 2, "monthly": 2}
	b.ReportAllocs()
	for b.Loop() {
		r := request
		lease, err := lim.Reserve(b.Context(), &r)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := lease.Complete(b.Context(), actuals); err != nil {
			b.Fatal(err)
		}
	}
}
