//go:build cgo

package tigerbeetle_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/tigerbeetle"
	"github.com/weir-limiter/weir/tigerbeetle/emulator"
)

// Two servers with the same limits share a cluster, and one can settle a lease of the other. Here
// the cluster is an emulator in the process; with [tigerbeetle.Open] it is a real one.
func ExampleOpenLedger() {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	cluster := emulator.New(&emulator.Options{Now: clock})
	ctx := context.Background()
	serve := func() *limiter.Limiter {
		store, err := tigerbeetle.OpenLedger(ctx, cluster, &tigerbeetle.Options{
			Definitions: &weir.Definitions{System: []weir.Limit{{Name: "tpm", Capacity: 10_000}}},
			Now:         clock,
		})
		if err != nil {
			log.Fatal(err)
		}
		l, err := limiter.New(store, &limiter.Options{Now: clock})
		if err != nil {
			log.Fatal(err)
		}
		return l
	}
	first, second := serve(), serve()
	defer first.Close()
	defer second.Close()

	lease, err := first.Reserve(ctx, &weir.Request{
		Entity: "acme", Resource: "gpt-4o", Costs: weir.Costs{"tpm": 6_000},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(lease.Limits[0].Available, "left")

	if _, err := second.Complete(ctx, lease.ID, []weir.Costs{{"tpm": 812}}); err != nil {
		log.Fatal(err)
	}
	of, err := second.Status(ctx, "acme", "gpt-4o")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(of[0].Available, "left")
	// Output:
	// 4000 left
	// 9188 left
}
