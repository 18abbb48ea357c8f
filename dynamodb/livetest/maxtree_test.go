package livetest

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestMaxTree(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for n := 1; n < 40; n++ {
		tree, plain := newMaxTree(n), make([]int64, n)
		for range 200 {
			from, to, by := rng.IntN(n), rng.IntN(n+1)-1, rng.Int64N(21)-10
			tree.add(from, to, by)
			for i := from; i <= to; i++ {
				plain[i] += by
			}
			upTo := rng.IntN(n)
			value, place := tree.prefixMax(upTo)
			if want := slices.Max(plain[:upTo+1]); value != want || plain[place] != want || place > upTo {
				t.Fatalf("n %d: largest of the first %d is %d at %d, want %d", n, upTo+1, value, place, want)
			}
		}
	}
}
