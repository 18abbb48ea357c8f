package schema_test

import (
	"math/rand/v2"
	"testing"

	"github.com/weir-limiter/weir/internal/soak"
)

const (
	letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits  = "0123456789"
)

// newRand returns a random source with a seed that it prints, or with the seed in WEIR_TEST_SEED.
func newRand(t testing.TB) *rand.Rand {
	t.Helper()
	return rand.New(rand.NewPCG(soak.Seed(t), 0))
}

// randomName returns a short name. Its first character is from first, the others are from rest.
func randomName(rng *rand.Rand, first, rest string) string {
	name := []byte{first[rng.IntN(len(first))]}
	for range rng.IntN(9) {
		name = append(name, rest[rng.IntN(len(rest))])
	}
	return string(name)
}

// randomAmount returns a number of at least 1. Each number of digits is equally likely.
func randomAmount(rng *rand.Rand, maxDigits int) int64 {
	most := int64(1)
	for range 1 + rng.IntN(maxDigits) {
		most *= 10
	}
	return 1 + rng.Int64N(most)
}
