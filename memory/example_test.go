package memory_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// One limit in memory takes two lines. Open without definitions cannot fail.
func Example() {
	store, _ := memory.Open(nil)
	l, err := limiter.New(store, &limiter.Options{Limits: []weir.Limit{{Name: "rpm", Capacity: 2}}})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()

	for range 3 {
		_, err := l.Reserve(context.Background(), &weir.Request{
			Entity: "acme", Resource: "gpt-4o", Costs: weir.Costs{"rpm": 1},
		})
		fmt.Println("admitted:", err == nil)
	}
	// Output:
	// admitted: true
	// admitted: true
	// admitted: false
}

// Definitions are limits for the system, for resources, and for entities. A change through the
// limiter holds from the next call on.
func ExampleOpen() {
	store, err := memory.Open(&memory.Options{Definitions: &weir.Definitions{
		System:    []weir.Limit{{Name: "rpm", Capacity: 60}},
		Resources: map[string][]weir.Limit{"gpt-4o": {{Name: "rpm", Capacity: 20}}},
	}})
	if err != nil {
		log.Fatal(err)
	}
	l, err := limiter.New(store, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()

	ctx := context.Background()
	acme := weir.Subject{Entity: "acme", Resource: "gpt-4o"}
	if err := l.SetLimits(ctx, acme, []weir.Limit{{Name: "rpm", Capacity: 500}}); err != nil {
		log.Fatal(err)
	}
	for _, entity := range []string{"acme", "other"} {
		of, err := l.Status(ctx, entity, "gpt-4o")
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(entity, of[0].Limit, of[0].Capacity, "from level", of[0].Level)
	}
	// Output:
	// acme rpm 500 from level entity
	// other rpm 20 from level resource
}

// A store with a snapshot goes on after a restart with the state of the last snapshot. Close writes
// one, so nothing is lost if the process ends in order.
func ExampleOpenSnapshot() {
	dir, err := os.MkdirTemp("", "weir")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	options := &limiter.Options{
		Limits: []weir.Limit{{Name: "daily", Kind: weir.Budget, Capacity: 1_000, Every: "day"}},
		Now:    func() time.Time { return now },
	}
	for range 2 { // two processes, one after the other
		store, err := memory.OpenSnapshot(filepath.Join(dir, "weir.snapshot"), nil)
		if err != nil {
			log.Fatal(err)
		}
		l, err := limiter.New(store, options)
		if err != nil {
			log.Fatal(err)
		}
		lease, err := l.Reserve(context.Background(), &weir.Request{
			Entity: "acme", Resource: "gpt-4o", Costs: weir.Costs{"daily": 300},
		})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(lease.Limits[0].Available, "left")
		if err := l.Close(); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// 700 left
	// 400 left
}
