package estimator_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/weir-limiter/weir/estimator"
)

func TestConcurrentCalls(t *testing.T) {
	t.Parallel()
	const callers, calls = 8, 5_000
	e := open(t, &estimator.Options{Keys: 20, Models: 4})
	var group sync.WaitGroup
	for c := range callers {
		group.Go(func() {
			for i := range calls {
				k := estimator.Key{Entity: fmt.Sprint((c + i) % 50), Model: fmt.Sprint(i % 6)}
				got := e.Estimate(k)
				e.Learn(k, got.Tokens, int64(i%100))
				if i%500 == 0 {
					if r := e.Report(); r.KnownKeys > 20 || r.KnownModels > 4 {
						t.Errorf("%d keys and %d models are known", r.KnownKeys, r.KnownModels)
					}
				}
			}
		})
	}
	group.Wait()
	r := e.Report()
	const used = callers * calls / 100 * (99 * 100 / 2)
	if r.All.Calls != callers*calls || r.All.Used != used {
		t.Errorf("got %+v, want %d calls that used %d", r.All, callers*calls, used)
	}
	if s := r.All; s.Covered == 0 || s.Covered == s.Calls || s.Over == 0 || s.Under == 0 {
		t.Errorf("got %+v, want some on both sides", s)
	}
}

// TestNoAllocations is not parallel, because it counts the allocations of the whole process.
func TestNoAllocations(t *testing.T) {
	const keys = 50
	e := open(t, &estimator.Options{Keys: keys, Models: keys})
	names := make([]estimator.Key, 2*keys)
	for i := range names {
		names[i] = estimator.Key{Entity: fmt.Sprint(i), Model: "m"}
	}
	n := 0
	turn := func(of []estimator.Key) {
		k := of[n%len(of)]
		e.Learn(k, e.Estimate(k).Tokens, int64(n*7919%5_000))
		n++
	}
	for range 30 * keys {
		turn(names[:keys]) // until all are remembered, and change places
	}
	if got := testing.AllocsPerRun(2_000, func() { turn(names[:keys]) }); got != 0 {
		t.Errorf("%v allocations for a known key", got)
	}
	if got := testing.AllocsPerRun(2_000, func() { turn(names) }); got > 2 {
		t.Errorf("%v allocations for one that takes another's room, want its names alone", got)
	}
}
