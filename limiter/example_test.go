package limiter_test

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

// A limiter over a store in memory: each entity may make 60 requests a minute and use 100,000 tokens
// a minute of a model, and make 5 calls at once.
func Example() {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	store, _ := memory.Open(nil)
	l, err := limiter.New(store, &limiter.Options{
		Limits: []weir.Limit{
			{Name: "rpm", Capacity: 60},
			{Name: "tpm", Capacity: 100_000},
			{Name: "parallel", Kind: weir.Concurrency, Capacity: 5, Timeout: 5 * time.Minute},
		},
		Now: func() time.Time { return now },
	})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()

	ctx := context.Background()
	request := &weir.Request{
		Entity: "acme", Resource: "gpt-4o", Costs: weir.Costs{"rpm": 1, "tpm": 60_000},
	}
	lease, err := l.Reserve(ctx, request)
	if err != nil {
		log.Fatal(err)
	}
	_, err = l.Reserve(ctx, request)
	if denied, ok := errors.AsType[*weir.DeniedError](err); ok {
		fmt.Println(err)
		now = now.Add(denied.RetryAfter)
	}
	second, err := l.Reserve(ctx, request) // 12 seconds have passed
	if err != nil {
		log.Fatal(err)
	}
	for _, lease := range []*weir.Lease{lease, second} {
		if _, err := lease.Complete(ctx, weir.Costs{"tpm": 900}); err != nil {
			log.Fatal(err)
		}
	}
	of, err := l.Status(ctx, "acme", "gpt-4o")
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range of {
		fmt.Println(s.Limit, s.Available, "of", s.Capacity)
	}
	// Output:
	// weir: denied by acme/gpt-4o tpm: retry after 12s
	// parallel 5 of 5
	// rpm 59 of 60
	// tpm 100000 of 100000
}

// Explain says which limits apply to an entity, of which level they are, and what they hide.
func ExampleLimiter_Explain() {
	store, _ := memory.Open(nil)
	l, err := limiter.New(store, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()

	ctx := context.Background()
	for _, at := range []weir.Subject{
		{}, // the system
		{Resource: "gpt-4o"},
		{Entity: "acme", Resource: weir.DefaultResource}, // acme on every resource
	} {
		if err := l.SetLimits(ctx, at, []weir.Limit{{Name: "rpm", Capacity: 60}}); err != nil {
			log.Fatal(err)
		}
	}
	e, err := l.Explain(ctx, "acme", "gpt-4o")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("applies:", e.Level)
	for _, hidden := range e.Hidden {
		fmt.Println("hidden:", hidden.Level)
	}
	// Output:
	// applies: entity_default
	// hidden: resource
	// hidden: system
}

// deniedLimits counts the limits that denied.
type deniedLimits map[string]int

// Observe is called at the end of each call. A program with several goroutines needs a lock here.
func (d deniedLimits) Observe(_ context.Context, e limiter.Event) {
	if _, ok := errors.AsType[*weir.DeniedError](e.Err); !ok {
		return
	}
	for _, s := range e.Limits {
		if s.Exceeded && !s.Shadow {
			d[s.Entity+" "+s.Limit]++
		}
	}
}

// An observer is told of every call, for metrics and logs: here, of who was denied.
func ExampleObserver() {
	store, _ := memory.Open(nil)
	denied := deniedLimits{}
	l, err := limiter.New(store, &limiter.Options{
		Limits:   []weir.Limit{{Name: "rpd", Kind: weir.Window, Capacity: 1, Window: 24 * time.Hour}},
		Observer: denied,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()

	for _, entity := range []string{"acme", "acme", "other", "acme"} {
		_, err := l.Reserve(context.Background(), &weir.Request{
			Entity: entity, Resource: "gpt-4o", Costs: weir.Costs{"rpd": 1},
		})
		if _, ok := errors.AsType[*weir.DeniedError](err); err != nil && !ok {
			log.Fatal(err)
		}
	}
	fmt.Println(denied)
	// Output: map[acme rpd:2]
}
