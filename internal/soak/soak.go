// Package soak tells tests how much to do. A plain run, for which somebody waits, does a part that
// meets every outcome; with WEIR_SOAK set, as `make test-long` has it, everything is done in full.
package soak

import (
	"os"
	"testing"
)

// On reports whether WEIR_SOAK asks for all of it.
func On() bool { return os.Getenv("WEIR_SOAK") != "" }

// Only skips a test that is too long for a plain run.
func Only(t testing.TB) {
	t.Helper()
	if !On() {
		t.Skip("takes minutes; WEIR_SOAK=1 runs it")
	}
}

// Amount is how many to do: some in a plain run, all in a long one.
func Amount(some, all int) int {
	if On() {
		return all
	}
	return some
}
