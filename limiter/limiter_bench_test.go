package limiter_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// BenchmarkReserveComplete measures a whole reserve and complete with default options: reading the
// clock, making the ID, keeping, settling and forgetting the lease. The number of live leases is
// constant: each iteration completes the oldest. bench/ has the same for other limiters.
func BenchmarkReserveComplete(b *testing.B) {
	for _, live := range []int{1_000, 1_000_000} {
		b.Run(fmt.Sprintf("live=%d", live), func(b *testing.B) {
			l := benchLimiter(b, weir.Limit{Name: "rpm", Capacity: 1_000_000_000})
			benchReserve(b, l, live, &weir.Request{
				Entity: "acme", Resource: "llm", Costs: weir.Costs{"rpm": 1},
			})
		})
	}
	b.Run("judgements=8", func(b *testing.B) {
		limits := []weir.Limit{
			{Name: "rpm", Capacity: 1_000_000_000},
			{Name: "tpm", Capacity: 1_000_000_000},
			{Name: "hourly", Kind: weir.Window, Capacity: 1_000_000_000, Window: time.Hour},
			{Name: "parallel", Kind: weir.Concurrency, Capacity: 1_000_000, Timeout: time.Hour},
		}
		l := benchLimiter(b, limits...)
		benchReserve(b, l, 1_000, &weir.Request{
			Entity: "bot", Resource: "llm", Costs: weir.Costs{"rpm": 1, "tpm": 100, "hourly": 1},
		})
	})
}

// BenchmarkReserveKeys measures reservations of one limit on each of 100,000 entities.
func BenchmarkReserveKeys(b *testing.B) {
	l := benchLimiter(b, weir.Limit{Name: "rpm", Capacity: 1_000_000_000})
	requests := make([]weir.Request, 100_000)
	for i := range requests {
		requests[i] = weir.Request{
			Entity: fmt.Sprintf("tenant-%d", i*7919%len(requests)), Resource: "llm",
			Costs: weir.Costs{"rpm": 1},
		}
	}
	ctx := context.Background()
	held := make([]*weir.Lease, 1_000)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		lease, err := l.Reserve(ctx, &requests[i%len(requests)])
		if err != nil {
			b.Fatal(err)
		}
		at := &held[i%len(held)]
		if *at != nil {
			if _, err := (*at).Complete(ctx); err != nil {
				b.Fatal(err)
			}
		}
		*at = lease
	}
}

func benchLimiter(b *testing.B, limits ...weir.Limit) *limiter.Limiter {
	b.Helper()
	store, err := memory.Open(&memory.Options{Definitions: &weir.Definitions{
		System:   limits,
		Entities: map[string]weir.EntityDefinition{"org": {}, "bot": {Parent: "org", Cascade: true}},
	}})
	if err != nil {
		b.Fatal(err)
	}
	l, err := limiter.New(store, nil)
	if err != nil {
		b.Fatal(err)
	}
	return l
}

func benchReserve(b *testing.B, l *limiter.Limiter, live int, r *weir.Request) {
	ctx := context.Background()
	held := make([]*weir.Lease, live)
	reserve := func() *weir.Lease {
		lease, err := l.Reserve(ctx, r)
		if err != nil {
			b.Fatal(err)
		}
		return lease
	}
	for i := range held {
		held[i] = reserve()
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		at := &held[i%live]
		if _, err := (*at).Complete(ctx); err != nil {
			b.Fatal(err)
		}
		*at = reserve()
	}
}
