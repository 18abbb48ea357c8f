package replay

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestDistributionIsBounded checks that a distribution of too many different numbers counts in
// coarser steps. A quantile must then be at least the exact one, and larger by at most a step.
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

// TestEventQueue checks that events come by time, then by kind, then in the order of the trace.
func TestEventQueue(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	compare := func(a, b event) int {
		return cmp.Or(int(a.atMS-b.atMS), int(a.kind)-int(b.kind), int(a.seq-b.seq))
	}
	var q eventQueue
	var in, out []event
	for range 1000 {
		n := event{atMS: random.Int64N(20), kind: eventKind(random.IntN(3)), seq: int32(random.IntN(5))}
		in = append(in, n)
		q.push(n)
		if random.IntN(3) == 0 { // between the pushes, the first event is always the least
			got, want := q.pop(), slices.MinFunc(in, compare)
			if got != want {
				t.Fatalf("got %+v, want %+v", got, want)
			}
			i := slices.Index(in, got)
			in = slices.Delete(in, i, i+1)
		}
	}
	for len(q) > 0 {
		out = append(out, q.pop())
	}
	slices.SortFunc(in, compare)
	if !slices.Equal(in, out) {
		t.Errorf("got %v, want %v", out, in)
	}
}
