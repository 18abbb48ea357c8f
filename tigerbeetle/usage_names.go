//go:build cgo

package tigerbeetle

import (
	"fmt"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/tigerbeetle/internal/uint128"
)

// maxNames bounds the names of resources, and those of limits, that a server remembers.
const maxNames = 10_000

// knownNames are names that a server has seen in calls. The ledger has only their hashes.
type knownNames struct{ resources, limits map[string]struct{} }

// add remembers the names of a limit, unless there are too many already.
func (k *knownNames) add(of limitKey) {
	if k.resources == nil {
		k.resources, k.limits = make(map[string]struct{}), make(map[string]struct{})
	}
	if len(k.resources) < maxNames {
		k.resources[of.Resource] = struct{}{}
	}
	if len(k.limits) < maxNames {
		k.limits[of.name] = struct{}{}
	}
}

// usageNames finds the names of an entity's resources and limits by the hashes in its records.
type usageNames struct{ resources, limits map[uint64]string }

// usageNames returns the names that this server knows: those of its definitions, those that it
// has seen, those of the query, and the resource of the record that a page begins after: the server
// of the page before may have known it, and pages go by name.
func (s *Store) usageNames(q *weir.UsageQuery, after *weir.Usage) *usageNames {
	names := &usageNames{resources: make(map[uint64]string), limits: make(map[uint64]string)}
	resource := func(name string) {
		subject := weir.Subject{Entity: q.Entity, Resource: name}
		names.resources[uint128.Of(s.namespace.subjectHash(subject)).Lo] = name
	}
	limit := func(name string) { names.limits[nameHash(name)] = name }
	d := s.config.Load()
	for name := range d.Resources {
		resource(name)
	}
	for _, e := range d.Entities {
		for name := range e.Limits {
			resource(name)
		}
	}
	for _, l := range d.All {
		limit(l.Name)
	}
	s.states.mu.Lock()
	defer s.states.mu.Unlock()
	for name := range s.states.names.resources {
		resource(name)
	}
	for name := range s.states.names.limits {
		limit(name)
	}
	resource(q.Resource)
	limit(q.Limit)
	if after != nil {
		resource(after.Resource)
	}
	return names
}

// of returns the names of a record's resource and limit.
func (n *usageNames) of(u usageName) (resource, limit string) {
	return nameBy(n.resources, u.resource), nameBy(n.limits, u.limit)
}

// nameBy returns the name with a hash, or one that begins with unknown- if it is not known.
func nameBy(names map[uint64]string, hash uint64) string {
	if name, ok := names[hash]; ok {
		return name
	}
	return unknownName(hash)
}

// unknownName returns what stands for a name of which only the hash is known.
func unknownName(hash uint64) string { return fmt.Sprintf("unknown-%016x", hash) }
