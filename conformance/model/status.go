package model

import (
	"context"
	"math/big"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
)

// Status fulfils [weir.Service]. It moves no state.
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
	win, _, _ := m.resolve(s)
	for _, l := range win.Limits {
		t := &Take{Subject: s, Limit: l, Level: win.Level, Ceiling: l.Capacity}
		seen, _ := m.look(m.rules.KeyOf(s, &l), &l, now)
		out = append(out, m.status(t, m.rules.available(&l, seen)))
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
		return m.rules.occupied(s.pieces, m.rules.Now(now, s.seen)).Sign() != 0
	}
	own := s.bucket.Limit
	b, _ := m.look(k, &own, now)
	return b.bucket.Balance.Cmp(capacityMilli(&own)) < 0
}

// grown: an overrun counts in full (7.5).
func grown(_ *weir.Limit, more *big.Int) *big.Int { return more }

// Chain reports the limits that a charge on a subject would reach, as [Model.Status] would for each
// entity, and is no call: no clock moves. It is for whoever makes up calls.
func (m *Model) Chain(entity, resource string) []weir.LimitStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []weir.LimitStatus
	s := weir.Subject{Entity: entity, Resource: resource}
	for range m.depth + 1 {
		out = append(out, m.statuses(s, m.read())...)
		if _, _, s.Entity = m.resolve(s); s.Entity == "" {
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
		for _, p := range m.rules.present(s.pieces, m.read()) {
			out = append(out, at(p.Until))
		}
	}
	slices.SortFunc(out, time.Time.Compare)
	return out
}
