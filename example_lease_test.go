package weir_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// A streamed answer is charged while it arrives: after every part, Adjust says how many tokens the
// call has used so far.
func ExampleLease_Adjust() {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	store, _ := memory.Open(nil)
	l, err := limiter.New(store, &limiter.Options{
		Limits: []weir.Limit{{Name: "tpm", Capacity: 1_000}},
		Now:    func() time.Time { return now },
	})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()

	ctx := context.Background()
	lease, err := l.Reserve(ctx, &weir.Request{
		Entity: "acme", Resource: "gpt-4o", Costs: weir.Costs{"tpm": 400},
	})
	if err != nil {
		log.Fatal(err)
	}
	used := int64(0)
	for _, part := range []int64{300, 300, 600} { // the tokens of each part of the answer
		used += part
		if _, err := lease.Adjust(ctx, weir.Costs{"tpm": used}); err != nil {
			log.Fatal(err)
		}
		of, err := l.Status(ctx, "acme", "gpt-4o")
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(used, "used,", of[0].Available, "left")
	}
	if _, err := lease.Complete(ctx); err != nil { // what the last adjust said stays charged
		log.Fatal(err)
	}
	// Output:
	// 300 used, 700 left
	// 600 used, 400 left
	// 1200 used, -200 left
}

// If each part of a streamed answer says only how many tokens it has, Add counts them. The first
// delta takes back what was reserved.
func ExampleLease_Add() {
	store, _ := memory.Open(nil)
	l, err := limiter.New(store, &limiter.Options{Limits: []weir.Limit{
		{Name: "tpm", Kind: weir.Window, Capacity: 1_000, Window: time.Minute},
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()

	ctx := context.Background()
	lease, err := l.Reserve(ctx, &weir.Request{
		Entity: "acme", Resource: "gpt-4o", Costs: weir.Costs{"tpm": 400},
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, delta := range []int64{-400, 300, 12} {
		// If an Add is not answered, the lease keeps the delta and sends it with the next one.
		if _, err := lease.Add(ctx, weir.Costs{"tpm": delta}); err != nil {
			log.Print(err)
		}
	}
	if _, err := lease.Complete(ctx); err != nil {
		log.Fatal(err)
	}
	of, err := l.Status(ctx, "acme", "gpt-4o")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(of[0].Available, "left")
	// Output: 688 left
}

// A slot returns by itself after its timeout, so a long call extends its lease. [Do] does this
// for the function that it runs.
func ExampleLease_Extend() {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	store, _ := memory.Open(nil)
	l, err := limiter.New(store, &limiter.Options{
		Limits: []weir.Limit{
			{Name: "parallel", Kind: weir.Concurrency, Capacity: 1, Timeout: time.Minute},
		},
		Now: func() time.Time { return now },
	})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()

	ctx := context.Background()
	// A concurrency limit need not be named: each request takes one slot.
	request := &weir.Request{Entity: "acme", Resource: "gpt-4o"}
	lease, err := l.Reserve(ctx, request)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("held until", lease.HoldsUntil.Format(time.TimeOnly))

	now = now.Add(40 * time.Second)
	receipt, err := lease.Extend(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("held until", receipt.HoldsUntil.Format(time.TimeOnly))

	now = now.Add(40 * time.Second) // the first minute is over
	_, err = l.Reserve(ctx, request)
	fmt.Println(err)
	// Output:
	// held until 12:01:00
	// held until 12:01:40
	// weir: denied by acme/gpt-4o parallel: retry after 20s
}

// A call that was never sent is cancelled, which gives everything back.
func ExampleLease_Cancel() {
	store, _ := memory.Open(nil)
	l, err := limiter.New(store, &limiter.Options{Limits: []weir.Limit{{Name: "rpm", Capacity: 60}}})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()

	ctx := context.Background()
	lease, err := l.Reserve(ctx, &weir.Request{
		Entity: "acme", Resource: "gpt-4o", Costs: weir.Costs{"rpm": 60},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(lease.Limits[0].Available, "left")
	if _, err := lease.Cancel(ctx); err != nil {
		log.Fatal(err)
	}
	of, err := l.Status(ctx, "acme", "gpt-4o")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(of[0].Available, "left")
	// Output:
	// 0 left
	// 60 left
}

// With a lease ID of the caller's own, a call whose answer was lost can be repeated. It is charged
// once.
func ExampleLeaseID() {
	store, _ := memory.Open(nil)
	l, err := limiter.New(store, &limiter.Options{Limits: []weir.Limit{{Name: "rpm", Capacity: 60}}})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()

	request := &weir.Request{
		LeaseID: weir.NewLeaseID(time.Now()),
		Entity:  "acme", Resource: "gpt-4o", Costs: weir.Costs{"rpm": 60},
	}
	for range 2 {
		lease, err := l.Reserve(context.Background(), request)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(lease.Limits[0].Available, "left, repeated:", lease.Replay)
	}
	// Output:
	// 0 left, repeated: false
	// 0 left, repeated: true
}

// What acme's bot uses, acme uses too, because the bot cascades to its parent. The bot has a limit
// of its own, and the request is charged on both.
func ExampleEntityDefinition() {
	store, err := memory.Open(&memory.Options{Definitions: &weir.Definitions{
		System: []weir.Limit{{Name: "rpm", Capacity: 100}},
		Entities: map[string]weir.EntityDefinition{
			"acme": {},
			"acme-bot": {
				Parent: "acme", Cascade: true,
				Limits: map[string][]weir.Limit{"gpt-4o": {{Name: "rpm", Capacity: 10}}},
			},
		},
	}})
	if err != nil {
		log.Fatal(err)
	}
	l, err := limiter.New(store, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()

	lease, err := l.Reserve(context.Background(), &weir.Request{
		Entity: "acme-bot", Resource: "gpt-4o", Costs: weir.Costs{"rpm": 4},
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range lease.Limits {
		fmt.Printf("%s: %d of %d left\n", s.Entity, s.Available, s.Capacity)
	}
	// Output:
	// acme-bot: 6 of 10 left
	// acme: 96 of 100 left
}

// A budget of 50 USD for each calendar month. Units are whole numbers, so money is counted in
// micro-USD, of which a million are one USD.
func ExampleLimit_budget() {
	const usd = 1_000_000 // micro-USD
	now := time.Date(2026, 6, 30, 22, 30, 0, 0, time.UTC)
	store, _ := memory.Open(nil)
	l, err := limiter.New(store, &limiter.Options{
		Limits: []weir.Limit{
			{Name: "usd_micros", Kind: weir.Budget, Capacity: 50 * usd, Every: "month", Zone: "Europe/London"},
		},
		Now: func() time.Time { return now },
	})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()

	ctx := context.Background()
	reserve := func(cost int64) (*weir.Lease, error) {
		return l.Reserve(ctx, &weir.Request{
			Entity: "acme", Resource: "gpt-4o", Costs: weir.Costs{"usd_micros": cost},
		})
	}
	lease, err := reserve(49 * usd) // the most that the call may cost
	if err != nil {
		log.Fatal(err)
	}
	if _, err := lease.Complete(ctx, weir.Costs{"usd_micros": 48*usd + 750_000}); err != nil {
		log.Fatal(err)
	}
	_, err = reserve(2 * usd)
	if denied, ok := errors.AsType[*weir.DeniedError](err); ok {
		fmt.Println(denied.Limits[0].Available, "micro-USD left; the next month starts in", denied.RetryAfter)
	}
	// Output: 1250000 micro-USD left; the next month starts in 30m0s
}
