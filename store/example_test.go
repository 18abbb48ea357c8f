package store_test

import (
	"context"
	"fmt"
	"log"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/store"
)

// A program that gets the URL of its store from its configuration runs on every store. With
// "memory:" it needs nothing else.
func ExampleOpen() {
	ctx := context.Background()
	s, err := store.Open(ctx, "memory:", &store.Options{Definitions: &weir.Definitions{
		System: []weir.Limit{{Name: "rpm", Capacity: 60}},
	}})
	if err != nil {
		log.Fatal(err)
	}
	l, err := limiter.New(s, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()

	lease, err := l.Reserve(ctx, &weir.Request{
		Entity: "acme", Resource: "gpt-4o", Costs: weir.Costs{"rpm": 1},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(lease.Limits[0].Available, "left")

	_, err = store.Open(ctx, "redis://127.0.0.1", nil)
	fmt.Println(err)
	// Output:
	// 59 left
	// weir: invalid: store "redis:": is not a store: use memory:, dynamodb: or tigerbeetle:
}
