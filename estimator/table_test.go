package estimator

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"
)

// knows reports whether a key has an estimate of its own.
func knows(e *Estimator, entity string) bool {
	return e.Estimate(Key{Entity: entity, Model: "m"}).Basis == ByKey
}

func TestInventedKeysEvictOnlyEachOther(t *testing.T) {
	t.Parallel()
	e, err := New(&Options{Keys: 8, Models: 8})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 6 { // three quarters of the keys
		for range 19 {
			e.Learn(Key{Entity: fmt.Sprint("old", n), Model: "m"}, 0, int64(n))
		}
	}
	for n := range 10_000 {
		name := fmt.Sprint("invented", n)
		for range 18 {
			e.Learn(Key{Entity: name, Model: name}, 0, 1)
		}
	}
	for n := range 6 {
		if !knows(e, fmt.Sprint("old", n)) {
			t.Errorf("old%d is forgotten", n)
		}
	}
	r := e.Report()
	if r.KnownKeys != 8 || r.KnownModels != 8 || r.ForgottenKeys != 9_998 || len(r.Keys) != 8 {
		t.Errorf("got %+v", r)
	}

	// If new keys make enough calls for an estimate, the settled key that was not used for longest,
	// here old1, is forgotten.
	e.Learn(Key{Entity: "old0", Model: "m"}, 0, 0)
	for n := range 3 {
		for range 19 {
			e.Learn(Key{Entity: fmt.Sprint("busy", n), Model: "m"}, 0, 1)
		}
	}
	for n, want := range []bool{true, false, true, true, true, true} {
		if got := knows(e, fmt.Sprint("old", n)); got != want {
			t.Errorf("old%d is known: %t, want %t", n, got, want)
		}
	}
}

// TestEstimateChangesNothing checks that Estimate leaves nothing behind.
func TestEstimateChangesNothing(t *testing.T) {
	t.Parallel()
	e, err := New(nil)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 1_000 {
		e.Estimate(Key{Entity: fmt.Sprint(n), Model: fmt.Sprint(n)})
	}
	if r := e.Report(); r.KnownKeys != 0 || r.KnownModels != 0 {
		t.Errorf("got %+v", r)
	}
}

// TestForgottenKeyStartsEmpty uses the memory of one key for many, with sizes that would show in
// the estimate if something were left.
func TestForgottenKeyStartsEmpty(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 2, 3} {
		e, err := New(&Options{Keys: size, Models: size, Window: 19})
		if err != nil {
			t.Fatal(err)
		}
		for n := range 50 {
			k := Key{Entity: fmt.Sprint(n), Model: fmt.Sprint(n)}
			for i := range 19 {
				if basis := e.Estimate(k).Basis; basis == ByKey {
					t.Fatalf("size %d: %v has an estimate after %d calls", size, k, i)
				}
				e.Learn(k, 0, int64(1_000*n))
			}
			got := e.Estimate(k)
			want := Estimate{Tokens: upperOf(binOf(int64(1_000 * n))), Basis: ByKey, Seen: 19}
			if got != want {
				t.Fatalf("size %d: %v: got %+v, want %+v", size, k, got, want)
			}
		}
	}
}

// TestTableStaysConsistent uses keys at random and checks the links after each call.
func TestTableStaysConsistent(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 0))
		table := newTable(1+r.IntN(9), 5, 750_000)
		for range 3_000 {
			table.learn(Key{Entity: fmt.Sprint(r.IntN(1 + r.IntN(20)))}, 0, r.Int64N(50))
			checkTable(t, table)
		}
	}
}

func checkTable(t *testing.T, table *table) {
	t.Helper()
	seen := 0
	for _, c := range []*recordList{&table.newcomers, &table.settled} {
		length := 0
		var before *keyRecord
		for r := c.first; r != nil; before, r = r, r.after {
			length++
			ready := r.calls.spare(table.share) >= 0
			switch {
			case length > c.length:
				t.Fatalf("a chain of %d does not end", c.length)
			case r.before != before || table.known[r.key] != r:
				t.Fatalf("%v is linked wrongly", r.key)
			case r.settled != (c == &table.settled) || r.settled && !ready:
				t.Fatalf("%v is in the wrong part", r.key)
			}
		}
		if length != c.length || c.last != before {
			t.Fatalf("a chain of %d has %d", c.length, length)
		}
		seen += length
	}
	if seen != len(table.known) || seen > table.size || table.settled.length > table.size*3/4+1 {
		t.Fatalf("%d and %d of %d known, room for %d",
			table.newcomers.length, table.settled.length, len(table.known), table.size)
	}
}

// TestNamesAreCopied checks that a short name does not keep the large request that it is a part of
// in memory.
func TestNamesAreCopied(t *testing.T) {
	t.Parallel()
	e, err := New(nil)
	if err != nil {
		t.Fatal(err)
	}
	request := string(make([]byte, 1_000))
	e.Learn(Key{Entity: request[:5], Model: request[5:9]}, 0, 1)
	kept := e.Report().Keys[0].Key
	if unsafe.StringData(kept.Entity) == unsafe.StringData(request) ||
		unsafe.StringData(kept.Model) == unsafe.StringData(request[5:]) {
		t.Error("the request is kept")
	}
}
