// Package hash condenses content into 64 bits, quickly and the same in every process. It is not
// cryptographic: anyone can construct two contents with the same hash.
package hash

import "math/bits"

// Hash is the hash of what has been added so far. Any value may be the first: [Seed] if the result
// must be the same everywhere, and a random one if it need not be.
type Hash uint64

// Seed begins hashes that other processes compare.
const Seed Hash = 0x9e3779b97f4a7c15

// Word adds eight bytes: it folds a product of 128 bits, as wyhash does.
func (h Hash) Word(x uint64) Hash {
	high, low := bits.Mul64(uint64(h)^x, 0xd6e8feb86659fd93)
	return Hash(high^low) + Seed
}

// String adds a text and its length modulo 256, so that "ab","c" is not "a","bc".
func (h Hash) String(s string) Hash {
	n := uint64(len(s))
	for ; len(s) >= 8; s = s[8:] {
		h = h.Word(uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56)
	}
	last := n << 56 // at most seven bytes are left
	for i := range len(s) {
		last |= uint64(s[i]) << (8 * i)
	}
	return h.Word(last)
}
