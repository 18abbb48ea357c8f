// Command dynamodb limits calls with a DynamoDB table: it creates one, sets limits, and reserves
// until it is denied. Run `weir local up` first, or use a table of Amazon's with an empty
// -endpoint.
package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"os"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb"
	"github.com/weir-limiter/weir/limiter"
)

func main() {
	endpoint := flag.String("endpoint", "http://127.0.0.1:8000", "the table's address; empty for Amazon's own")
	table := flag.String("table", "weir-example", "the table's name")
	flag.Parse()
	log.SetFlags(0)
	log.SetOutput(os.Stdout)
	if err := run(*table, &dynamodb.Options{Endpoint: *endpoint}); err != nil {
		log.Fatal(err)
	}
}

func run(table string, o *dynamodb.Options) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	// A table is created once. `weir table create` creates the same, and a table that the Python
	// library zae-limiter has created works too.
	if _, err := (&dynamodb.Table{Name: table, Options: o}).Create(ctx); err != nil {
		return err
	}
	store, err := dynamodb.Open(ctx, table, o)
	if err != nil {
		return err
	}
	l, err := limiter.New(store, nil)
	if err != nil {
		return errors.Join(err, store.Close())
	}
	defer func() { err = errors.Join(err, l.Close()) }()

	// The configuration is in the table too. A change reaches every process within a minute.
	limits := []weir.Limit{
		{Name: "rpm", Capacity: 60},
		{Name: "tpm", Capacity: 10_000},
	}
	if err := l.SetLimits(ctx, weir.Subject{Resource: "gpt-4o"}, limits); err != nil {
		return err
	}
	entity := "acme-" + time.Now().UTC().Format("150405") // a new one each time
	for {
		lease, err := l.Reserve(ctx, &weir.Request{
			Entity: entity, Resource: "gpt-4o", Costs: weir.Costs{"rpm": 1, "tpm": 3_000},
		})
		if denied, ok := errors.AsType[*weir.DeniedError](err); ok {
			log.Print(denied)
			break
		}
		if err != nil {
			return err
		}
		log.Printf("admitted: %d of %d tokens left", lease.Limits[1].Available, lease.Limits[1].Capacity)
		// … call the model; it used a little less.
		if _, err := lease.Complete(ctx, weir.Costs{"tpm": 2_812}); err != nil {
			return err
		}
	}
	statuses, err := l.Status(ctx, entity, "gpt-4o")
	for _, s := range statuses {
		log.Printf("%s %s: %d of %d left", s.Entity, s.Limit, s.Available, s.Capacity)
	}
	return err
}
