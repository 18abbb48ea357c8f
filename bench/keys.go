package main

import (
	"fmt"
	"math/rand/v2"
)

// keys returns n names in an order that has nothing to do with how they are stored, the same in
// every process.
func keys(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("tenant-%06d", i)
	}
	random := rand.New(rand.NewPCG(1, 2))
	random.Shuffle(n, func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}
