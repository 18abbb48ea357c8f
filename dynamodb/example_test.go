package dynamodb_test

import (
	"context"
	"fmt"
	"log"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb"
	"github.com/weir-limiter/weir/limiter"
)

// A table is created once, and limits are written to it once; after that, any number of processes
// open it. The program in examples/dynamodb does the same on DynamoDB Local.
func ExampleOpen() {
	ctx := context.Background()
	options := &dynamodb.Options{Region: "eu-central-1"}
	if _, err := (&dynamodb.Table{Name: "limits", Options: options}).Create(ctx); err != nil {
		log.Fatal(err)
	}
	store, err := dynamodb.Open(ctx, "limits", options)
	if err != nil {
		log.Fatal(err)
	}
	l, err := limiter.New(store, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()

	limits := []weir.Limit{{Name: "rpm", Capacity: 60}, {Name: "tpm", Capacity: 100_000}}
	if err := l.SetLimits(ctx, weir.Subject{Resource: "gpt-4o"}, limits); err != nil {
		log.Fatal(err)
	}
	lease, err := l.Reserve(ctx, &weir.Request{
		Entity: "acme", Resource: "gpt-4o", Costs: weir.Costs{"rpm": 1, "tpm": 6_000},
	})
	if err != nil {
		log.Fatal(err) // a *weir.DeniedError if a limit has too little left
	}
	fmt.Println(lease.Limits[1].Available, "tokens left")
	if _, err := lease.Complete(ctx, weir.Costs{"tpm": 812}); err != nil {
		log.Fatal(err)
	}
}
