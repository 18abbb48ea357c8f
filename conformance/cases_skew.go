package conformance

import (
	"time"

	"github.com/weir-limiter/weir"
)

// skewCases returns the cases of line 1.3: clocks that step back.
func skewCases() []Case {
	needs := Needs{Kinds: []weir.Kind{weir.Bucket}, Skew: true, Exact: true}
	return append(scriptedCases("skew"), Case{
		"C1: clock skew of two callers", "1.3", needs,
		onWorld(system(bucketOf("n", 60, 60, time.Minute)), twoClocks),
	})
}

// twoClocks has two callers, whose clocks are five seconds apart, ask in turn for twenty seconds.
func twoClocks(s *caseWorld) {
	const apart = 5 * time.Second
	milli, seen, ideal, got := int64(60_000), s.Now().UnixMilli(), 0, 0
	once := func() {
		now := max(seen, s.Now().UnixMilli())
		milli, seen = min(60_000, milli+now-seen), now // it regains a milli-unit each millisecond
		if milli >= 1000 {
			milli -= 1000
			ideal++
		}
		if s.try(ask("a", cost(1))) {
			got++
		}
	}
	for range 200 {
		once()
		s.Advance(apart)
		once()
		s.Advance(100*time.Millisecond - apart)
	}
	s.admitted(got, ideal)
}
