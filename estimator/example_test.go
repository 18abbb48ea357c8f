package estimator_test

import (
	"fmt"

	"github.com/weir-limiter/weir/estimator"
)

// A gateway asks before each call how much to reserve, and reports afterwards what was used.
func Example() {
	e, err := estimator.New(&estimator.Options{Share: 900_000, First: 2_000})
	if err != nil {
		panic(err)
	}
	key := estimator.Key{Entity: "team-a", Model: "openai/gpt-4o"}
	for call := range 200 {
		reserve := e.Estimate(key)
		if call == 0 || call == 9 || call == 199 {
			fmt.Printf("call %d reserves %d by %s\n", call, reserve.Tokens, reserve.Basis)
		}
		used := int64(100 + call*7%50) // as the API reports it
		if call%20 == 19 {
			used = 1_500 // a long call now and then
		}
		e.Learn(key, reserve.Tokens, used)
	}
	score := e.Report().All
	fmt.Printf("%d of %d calls stayed within\n", score.Covered, score.Calls)
	// Output:
	// call 0 reserves 2000 by first
	// call 9 reserves 151 by key
	// call 199 reserves 151 by key
	// 190 of 200 calls stayed within
}
