package hash_test

import (
	"testing"

	"github.com/weir-limiter/weir/internal/hash"
)

// Stores keep hashes, so they never change.
func TestHashNeverChanges(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]hash.Hash{
		"":                              0x680fee83d7245c6a,
		"tpm":                           0xe5abe2cba6d0bb1d,
		"12345678":                      0xed88cf8d673822ae,
		"organization-with-a-long-name": 0xb34983c020b0195a,
	} {
		if got := hash.Seed.String(text); got != want {
			t.Errorf("%q: got %#x, want %#x", text, uint64(got), uint64(want))
		}
	}
	if hash.Seed.String("ab").String("c") == hash.Seed.String("a").String("bc") {
		t.Error("ab, c: got the hash of a, bc")
	}
}
