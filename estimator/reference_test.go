package estimator_test

import (
	"encoding/binary"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weir-limiter/weir/estimator"
)

// reference is the definition written out: it keeps all calls and sorts them for each estimate.
type reference struct {
	share  int64
	window int
	first  int64
	calls  map[estimator.Key][]int64 // by key; by model without an entity; of all calls without either
}

var everything = estimator.Key{Model: "\x00all"}

func (r *reference) learn(k estimator.Key, used int64) {
	for _, of := range []estimator.Key{k, {Model: k.Model}, everything} {
		r.calls[of] = append(r.calls[of], used)
		r.calls[of] = r.calls[of][max(0, len(r.calls[of])-r.window):]
	}
}

func (r *reference) estimate(k estimator.Key) estimator.Estimate {
	bases := [...]struct {
		of    estimator.Key
		basis estimator.Basis
	}{
		{k, estimator.ByKey},
		{estimator.Key{Model: k.Model}, estimator.ByModel},
		{everything, estimator.ByAll},
	}
	for _, b := range bases {
		sorted := slices.Sorted(slices.Values(r.calls[b.of]))
		n := int64(len(sorted))
		rank := ((n+1)*r.share + 999_999) / 1_000_000
		if rank <= n {
			tokens := roundUp(sorted[rank-1])
			return estimator.Estimate{Tokens: tokens, Basis: b.basis, Seen: n}
		}
	}
	return estimator.Estimate{Tokens: r.first, Basis: estimator.ByFirst}
}

// roundUp returns the largest number with the same five leading bits as n.
func roundUp(n int64) int64 {
	if n < 32 {
		return n
	}
	return n | (1<<(bits.Len64(uint64(n))-5) - 1)
}

// checkAgainstReference plays calls of nine bytes each and compares every answer.
func checkAgainstReference(t *testing.T, share int64, window int, calls []byte) {
	t.Helper()
	e, err := estimator.New(&estimator.Options{Share: share, First: 77, Window: window})
	if err != nil || share == 0 || window == 0 {
		return // mistakes and defaults have tests of their own
	}
	r := &reference{share: share, window: window, first: 77, calls: map[estimator.Key][]int64{}}
	for i := 0; len(calls) >= 9 && i < 3_000; i++ {
		entity := string('a' + rune(calls[0]%3))
		k := estimator.Key{Entity: entity, Model: string('m' + rune(calls[0]/3%2))}
		used := int64(binary.LittleEndian.Uint64(calls[1:])) & math.MaxInt64
		calls = calls[9:]
		got, want := e.Estimate(k), r.estimate(k)
		if got != want {
			t.Fatalf("share %d, window %d, call %d of %v: got %+v, want %+v",
				share, window, i, k, got, want)
		}
		e.Learn(k, got.Tokens, used)
		r.learn(k, used)
	}
}

func FuzzEstimate(f *testing.F) {
	f.Add(int64(950_000), 20, []byte("a12345678b12345678"))
	f.Add(int64(500_000), 1, []byte("\x00\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Add(int64(1), 3, make([]byte, 90))
	f.Fuzz(func(t *testing.T, share int64, window int, calls []byte) {
		checkAgainstReference(t, share, min(window, 200), calls)
	})
}

// TestEstimateIsTheRankOfTheLatestCalls compares the estimator with the definition for calls of
// every size, from zero to the largest number. They come in runs, so that the answer has to move
// far.
func TestEstimateIsTheRankOfTheLatestCalls(t *testing.T) {
	t.Parallel()
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 0))
		share := []int64{1, 300_000, 900_000, 950_000, 990_000}[r.IntN(5)]
		need := int(share / (1_000_000 - share))
		window := need + 1 + r.IntN(100)
		var calls []byte
		size := 0
		for range 300 + 3*window {
			if r.IntN(20) == 0 {
				size = r.IntN(64)
			}
			calls = append(calls, byte(r.IntN(6)))
			calls = binary.LittleEndian.AppendUint64(calls, r.Uint64()&(1<<size-1))
		}
		checkAgainstReference(t, share, window, calls)
	}
}
