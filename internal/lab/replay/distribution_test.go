package replay

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestDistributionIsBounded: with too many different numbers it counts in coarser steps, and a
// quantile is never too small, nor larger by more than a step.
func TestDistributionIsBounded(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	exact, coarse := &distribution{}, &distribution{limit: 100}
	for range 10_000 {
		n := random.Int64N(86_400_000)
		exact.add(n)
		coarse.add(n)
	}
	if len(coarse.counts) > 100 || coarse.total != 10_000 {
		t.Errorf("got %d different numbers of %d, want at most 100", len(coarse.counts), coarse.total)
	}
	step := int64(1) << coarse.drop
	if step < 86_400_000/100/2 || step > 86_400_000/100*4 {
		t.Errorf("got steps of %d, want about a hundred of them", step)
	}
	for _, p := range []int64{1, 50, 95, 99, 100} {
		got, want := coarse.quantile(p), exact.quantile(p)
		if got < want || got >= want+step {
			t.Errorf("%d %%: got %d, want %d to %d", p, got, want, want+step-1)
		}
	}
	if got, want := coarse.quantiles().Max, exact.most; got != want {
		t.Errorf("got %d at most, want %d", got, want)
	}
}

type number int

func (n number) before(other number) bool { return n < other }

func TestHeap(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	var h eventHeap[number]
	var in, out []number
	for range 1000 {
		n := number(random.IntN(300))
		in = append(in, n)
		h.push(n)
		if random.IntN(3) == 0 { // in between, the first is always the least
			if got, want := h.pop(), slices.Min(in); got != want {
				t.Fatalf("got %d, want %d", got, want)
			} else {
				in = slices.Delete(in, slices.Index(in, got), slices.Index(in, got)+1)
			}
		}
	}
	for len(h) > 0 {
		out = append(out, h.pop())
	}
	slices.Sort(in)
	if !slices.Equal(in, out) {
		t.Errorf("got %v, want %v", out, in)
	}
}
