package server

import (
	"maps"
	"sync"
	"sync/atomic"
)

// series remembers what was found for a set of labels, since a vector's own search is dear next to a
// decision in memory. Labels are few and stay: reading takes no lock. All methods may be called at
// once.
type series[L comparable, M any] struct {
	find  func(L) M // asks the vectors; called once for each set of labels
	known atomic.Pointer[map[L]M]
	mu    sync.Mutex // for who replaces the map, which is never changed
}

func newSeries[L comparable, M any](find func(L) M) *series[L, M] {
	s := &series[L, M]{find: find}
	s.known.Store(&map[L]M{})
	return s
}

// of returns what belongs to a set of labels.
func (s *series[L, M]) of(labels L) M {
	if m, ok := (*s.known.Load())[labels]; ok {
		return m
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known := *s.known.Load()
	if m, ok := known[labels]; ok {
		return m
	}
	next := maps.Clone(known)
	m := s.find(labels)
	next[labels] = m
	s.known.Store(&next)
	return m
}
