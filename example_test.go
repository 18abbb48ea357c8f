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

// Reserve before the call of the model, and complete after it with what was used.
func Example() {
	store, err := memory.Open(&memory.Options{Definitions: &weir.Definitions{
		System: []weir.Limit{
			{Name: "rpm", Capacity: 60},
			{Name: "tpm", Capacity: 10_000},
			{Name: "parallel", Kind: weir.Concurrency, Capacity: 2, Timeout: 5 * time.Minute},
		},
	}})
	if err != nil {
		log.Fatal(err)
	}
	now := time.Now() // stands still, so that nothing refills on a slow machine
	l, err := limiter.New(store, &limiter.Options{Now: func() time.Time { return now }})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()

	ctx := context.Background()
	lease, err := l.Reserve(ctx, &weir.Request{
		Entity: "acme", Resource: "gpt-4o", Costs: weir.Costs{"rpm": 1, "tpm": 6_000},
	})
	if err != nil {
		log.Fatal(err)
	}
	// … call the model; it used 812 tokens …
	if _, err := lease.Complete(ctx, weir.Costs{"tpm": 812}); err != nil {
		log.Fatal(err)
	}

	_, err = l.Reserve(ctx, &weir.Request{
		Entity: "acme", Resource: "gpt-4o", Costs: weir.Costs{"rpm": 1, "tpm": 9_999},
	})
	if denied, ok := errors.AsType[*weir.DeniedError](err); ok {
		for _, s := range denied.Limits {
			if s.Exceeded {
				fmt.Printf("%s cannot hold %d more now\n", s.Limit, s.Requested)
			}
		}
	}
	// Output: tpm cannot hold 9999 more now
}

// Do settles the lease: with what was reported, with what was reserved if nothing was reported, or
// by giving everything back if the call failed.
func ExampleDo() {
	store, _ := memory.Open(nil)
	l, _ := limiter.New(store, &limiter.Options{
		Limits: []weir.Limit{{Name: "tpm", Capacity: 10_000, RefillPeriod: time.Hour}},
	})
	defer l.Close()

	request := &weir.Request{Entity: "acme", Resource: "gpt-4o", Costs: weir.Costs{"tpm": 10_000}}
	err := weir.Do(context.Background(), l, request,
		func(_ context.Context, lease *weir.Lease) error {
			lease.Report(weir.Costs{"tpm": 300})
			return nil
		})
	fmt.Println(err)

	err = weir.Do(context.Background(), l, request,
		func(context.Context, *weir.Lease) error { return nil })
	_, isDenied := errors.AsType[*weir.DeniedError](err)
	fmt.Println("denied:", isDenied)
	// Output:
	// <nil>
	// denied: true
}

// Wait tries until the request fits or the context ends.
func ExampleWait() {
	store, _ := memory.Open(nil)
	l, _ := limiter.New(store, &limiter.Options{
		Limits: []weir.Limit{{Name: "rps", Capacity: 1, RefillPeriod: 20 * time.Millisecond}},
	})
	defer l.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	request := &weir.Request{Entity: "acme", Resource: "gpt-4o", Costs: weir.Costs{"rps": 1}}
	for range 3 {
		if _, err := weir.Wait(ctx, l, request, nil); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println("three admitted")
	// Output: three admitted
}
