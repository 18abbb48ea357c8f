package model

import (
	"cmp"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
)

// BucketState is what is known of a bucket that somebody has used.
type BucketState struct {
	Key
	// Limit is the definition that it was last used under, At when, in Unix milliseconds.
	Limit weir.Limit
	At    int64
	// Full is true where it is full by now, under that definition.
	Full bool
	// Forgotten is true where it is as one that nobody has used (8.4). It is full, too.
	Forgotten bool
}

// Buckets lists the buckets that somebody has used, in the order of their keys. It is no call: no
// clock moves.
func (m *Model) Buckets() []BucketState {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.read()
	var out []BucketState
	for k, s := range m.states {
		if k.Kind != weir.Bucket {
			continue
		}
		own := s.bucket.Limit
		seen, known := m.look(k, &own, now)
		full := seen.bucket.Balance.Cmp(capacityMilli(&own)) >= 0
		out = append(out, BucketState{k, own, s.bucket.At, full, !known})
	}
	slices.SortFunc(out, func(a, b BucketState) int {
		return cmp.Or(cmp.Compare(a.Entity, b.Entity), cmp.Compare(a.Resource, b.Resource),
			cmp.Compare(a.Name, b.Name))
	})
	return out
}

// StateOf says what is known of a lease, and is no call: no clock moves. It is empty where nothing
// is.
func (m *Model) StateOf(id weir.LeaseID) weir.LeaseState {
	m.mu.Lock()
	defer m.mu.Unlock()
	return stateOf(m.find(id))
}

// Tied is true where another live lease ends in the same millisecond. Which of the two is then the
// older is nowhere said. It is no call either.
func (m *Model) Tied(id weir.LeaseID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.find(id)
	return e != nil && slices.ContainsFunc(m.table.live, func(o *lease) bool {
		return o != e && o.expires == e.expires
	})
}

// Chain reports the limits that a charge on a subject would reach, as [Model.Status] would for each
// entity, and is no call: no clock moves. It is for whoever makes up calls.
func (m *Model) Chain(entity, resource string) []weir.LimitStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []weir.LimitStatus
	s := weir.Subject{Entity: entity, Resource: resource}
	for range m.depth + 1 {
		out = append(out, m.statuses(s, m.read())...)
		if s.Entity = parentOf(m.config, s.Entity); s.Entity == "" {
			break
		}
	}
	return out
}

// Returns lists when units of a subject return by themselves, in order. It is no call either.
func (m *Model) Returns(entity, resource string) []time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []time.Time
	for k, s := range m.states {
		if k.Entity != entity || k.Resource != resource {
			continue
		}
		for _, p := range m.present(s.pieces, m.read()) {
			out = append(out, at(p.Until))
		}
	}
	slices.SortFunc(out, time.Time.Compare)
	return out
}
