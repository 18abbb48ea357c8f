package model

import (
	"cmp"
	"slices"

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
