// Package soak tells tests how many repetitions to run, and from which seed. A plain run does a
// part that still covers every outcome. If WEIR_SOAK is set, as in `make test-long`, tests run all
// repetitions.
package soak

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// On reports whether WEIR_SOAK asks for all repetitions.
func On() bool { return os.Getenv("WEIR_SOAK") != "" }

// Only skips a test that is too long for a plain run.
func Only(t testing.TB) {
	t.Helper()
	if !On() {
		t.Skip("takes minutes; WEIR_SOAK=1 runs it")
	}
}

// Amount returns the number of repetitions: some in a plain run, all in a long one.
func Amount(some, all int) int {
	if On() {
		return all
	}
	return some
}

// Seed returns the seed of a test's random choices, and prints it. It is the value of
// WEIR_TEST_SEED, which repeats a run, or a new one each time.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if asked := os.Getenv("WEIR_TEST_SEED"); asked != "" {
		var err error
		if seed, err = strconv.ParseUint(asked, 10, 64); err != nil {
			t.Fatalf("WEIR_TEST_SEED: %v", err)
		}
	}
	t.Attr("seed", strconv.FormatUint(seed, 10))
	t.Logf("WEIR_TEST_SEED=%d", seed)
	return seed
}
