package kernel_test

import (
	"fmt"
	"time"

	"github.com/weir-limiter/weir/kernel"
)

// A store loads a counter, sets the definition in force, judges, and takes if all limits of the
// request have room. Here the counter is a variable.
func Example() {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC).UnixMilli()
	d := kernel.Definition{Capacity: 10, LengthMS: 60_000}
	c := kernel.NewWindow(now, d)

	// A reservation of 8 units while nothing is in use.
	available, _, fits := kernel.Judge(c, now, 8, d.Capacity, d.Capacity)
	fmt.Println(available, fits)
	piece, _ := c.Take(now, 8)

	// Ten seconds later 5 more units do not fit, until the first 8 have returned.
	now += 10_000
	available, retryAfter, fits := kernel.Judge(c, now, 5, d.Capacity, d.Capacity)
	fmt.Println(available, fits, retryAfter)

	// The lease completes with 3 units instead of 8. These 3 stay until their minute is over.
	c.Apply(now, kernel.Change{Pieces: []kernel.Piece{piece}, From: 8, To: 3, Ends: true})
	available, _, fits = kernel.Judge(c, now, 5, d.Capacity, d.Capacity)
	fmt.Println(available, fits)
	// Output:
	// 10 true
	// 2 false 50s
	// 7 true
}

// The gain depends only on the instants, so frequent reads lose nothing.
func ExampleBucket() {
	d := kernel.Definition{Capacity: 600, Refill: 600, LengthMS: 60_000} // ten a second
	b := kernel.NewBucket(0, d)
	b.Take(0, 600)
	fmt.Println(b.Available(99), b.Available(100), b.Available(1_050))
	fmt.Println(b.FitsAt(1_050, 100))
	b.Apply(1_050, kernel.Change{From: 600, To: 700}) // an overrun is debt
	fmt.Println(b.Available(1_050), b.BalanceMilli, b.SeenMS)
	// Output:
	// 0 1 10
	// 10000
	// -90 -89500 1050
}
