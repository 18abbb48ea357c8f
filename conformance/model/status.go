package model

import (
	"context"
	"slices"

	"github.com/weir-limiter/weir"
)

// Status implements [weir.Service]. It moves no state.
func (m *Model) Status(_ context.Context, entity, resource string) ([]weir.LimitStatus, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.read()
	some := resource
	if resource == "" {
		some = "any"
	}
	if err := checkSubject(entity, some, m.slash); err != nil {
		return nil, m.notes.refuse("status", err)
	}
	m.tick(now)
	resources := []string{resource}
	if resource == "" {
		resources = m.resources(entity, now)
	}
	var out []weir.LimitStatus
	for _, r := range resources {
		out = append(out, m.statuses(weir.Subject{Entity: entity, Resource: r}, now)...)
	}
	if len(out) == 0 && resource != "" {
		err := fault(weir.NoLimits, "entity", "has no limits")
		return nil, m.notes.refuse("status", err)
	}
	m.notes.set("status", "ok")
	return out, nil
}

// statuses are those of the limits that apply to a subject.
func (m *Model) statuses(s weir.Subject, now int64) []weir.LimitStatus {
	var out []weir.LimitStatus
	r := &Reach{Subject: s, LevelLimits: m.applying(s, nil)}
	for _, l := range r.Limits {
		seen, _ := m.look(m.key(s, &l), &l, now)
		j := m.judged(&Take{Reach: r, Limit: l, Ceiling: l.Capacity}, seen, now)
		out = append(out, m.status(j, true))
	}
	return out
}

// resources lists where an entity has limits of its own or something in use.
func (m *Model) resources(entity string, now int64) []string {
	var names []string
	for resource, limits := range m.config.Entities[entity].Limits {
		if resource != weir.DefaultResource && len(limits) > 0 {
			names = append(names, resource)
		}
	}
	for k, s := range m.states {
		if k.Entity == entity && m.inUse(k, s, now) {
			names = append(names, k.Resource)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// inUse is true where a limit is not as good as new.
func (m *Model) inUse(k Key, s *state, now int64) bool {
	if k.Kind != weir.Bucket {
		return m.occupied(s.pieces, m.seen(s, now)).Sign() != 0
	}
	own := s.bucket.Limit
	b, _ := m.look(k, &own, now)
	return b.bucket.Balance.Cmp(capacityMilli(&own)) < 0
}
