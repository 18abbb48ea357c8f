package memory

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/hash"
)

// The table finds the same as a map, even if all hashes name the same cell, after removals, and
// after shrinking.
func TestItemTableAgainstAMap(t *testing.T) {
	t.Parallel()
	for _, spread := range []uint64{0, 3, 1<<64 - 1} { // of the hashes: one value, four, all
		rng := rand.New(rand.NewPCG(spread, 2))
		table, plain := stateTable{}, map[weir.Subject]*subjectState{}
		hashOf := func(of weir.Subject) uint64 { return uint64(hash.Seed.String(of.Entity).String(of.Resource)) & spread }
		check := func() {
			t.Helper()
			if table.len != len(plain) {
				t.Fatalf("spread %x: got %d items, want %d", spread, table.len, len(plain))
			}
			for i := range 60 {
				of := weir.Subject{Entity: strconv.Itoa(i % 30), Resource: strconv.Itoa(i / 30)}
				if got, want := table.find(of, hashOf(of)), plain[of]; got != want {
					t.Fatalf("spread %x: %v: got %v, want %v", spread, of, got, want)
				}
			}
		}
		added, removed := 0, 0
		for range 20_000 {
			i := rng.IntN(60)
			of := weir.Subject{Entity: strconv.Itoa(i % 30), Resource: strconv.Itoa(i / 30)}
			if it := plain[of]; it == nil {
				it = &subjectState{subject: of}
				table.insert(it, hashOf(of))
				plain[of] = it
				added++
			} else {
				table.remove(it, hashOf(of))
				delete(plain, of)
				removed++
			}
			if rng.IntN(200) == 0 {
				table.shrink()
			}
			if rng.IntN(50) == 0 {
				check()
			}
		}
		check()
		if size := len(table.cells); size > 256 {
			t.Errorf("spread %x: got %d cells for at most 60 items", spread, size)
		}
		t.Logf("spread %x: %d added, %d removed", spread, added, removed)
	}
}

// Entities with consecutive names, which are common, are spread over the stripes.
func TestStripesAreEven(t *testing.T) {
	t.Parallel()
	const entities = 25_600
	s := &Store{seed: hash.Hash(rand.Uint64())}
	for _, form := range []string{"tenant-", "t", "organization-with-a-long-name/"} {
		var count [stripeCount]int
		for i := range entities {
			count[s.stripeOf(form+strconv.Itoa(i))]++
		}
		for stripe, n := range count {
			if n < 40 || n > 170 { // six standard deviations from 100
				t.Errorf("%s0 to %d: stripe %d has %d of them, want about 100", form, entities-1, stripe, n)
			}
		}
	}
}
