package server

import (
	"sync"
	"testing"
)

// Each set of labels is looked for once, whoever asks at once, and every caller gets what was found.
func TestSeries(t *testing.T) {
	t.Parallel()
	const callers, sets = 8, 50
	type labels struct {
		name   string
		number int
	}
	looked := map[labels]int{} // the series calls one at a time
	s := newSeriesCache(func(l labels) *labels {
		looked[l]++
		return &l
	})
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for i := range 4 * sets {
				want := labels{"a", i % sets}
				if i%2 == 1 {
					want.name = "b"
				}
				if got := s.of(want); *got != want || got != s.of(want) {
					t.Errorf("got %v, want %v", *got, want)
				}
			}
		})
	}
	all.Wait()
	if len(looked) != sets {
		t.Errorf("looked for %d sets, want %d", len(looked), sets)
	}
	for l, n := range looked {
		if n != 1 {
			t.Errorf("looked for %v %d times", l, n)
		}
	}
}
