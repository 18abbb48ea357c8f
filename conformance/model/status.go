package model

import (
	"context"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
)

// Status implements [weir.Service]. It changes no state.
func (m *Model) Status(_ context.Context, entity, resource string) ([]weir.LimitStatus, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.readClock()
	some := resource
	if resource == "" {
		some = "any"
	}
	if err := checkSubject(entity, some); err != nil {
		return nil, m.notes.fail("status", err)
	}
	m.advanceTable(now)
	// A chain that is too long is the same error as in an explanation.
	if _, err := m.explain(weir.Subject{Entity: entity, Resource: some}, 0); err != nil {
		return nil, m.notes.fail("status", err)
	}
	resources := []string{resource}
	if resource == "" {
		resources = m.resources(entity, now)
	}
	var out []weir.LimitStatus
	for _, r := range resources {
		out = append(out, m.chainStatuses(weir.Subject{Entity: entity, Resource: r}, now)...)
	}
	if len(out) == 0 && resource != "" {
		err := fault(weir.NoLimits, "entity", "has no limits")
		return nil, m.notes.fail("status", err)
	}
	m.notes.set("status", "ok")
	return out, nil
}

// statuses returns the statuses of the limits that apply to a subject.
func (m *Model) statuses(s weir.Subject, now int64) []weir.LimitStatus {
	var out []weir.LimitStatus
	r := &ReachedSubject{Subject: s, LevelLimits: m.applying(s, nil)}
	for _, l := range r.Limits {
		seen, _ := m.stateAt(m.key(s, &l), &l, now)
		j := m.judged(&Take{ReachedSubject: r, Limit: l, Ceiling: l.Capacity}, seen, now)
		out = append(out, m.status(j, true))
	}
	return out
}

// resources returns the resources on which an entity or an ancestor that it charges has limits of
// its own or something in use.
func (m *Model) resources(entity string, now int64) []string {
	var names []string
	for range m.depth + 1 {
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
		if entity = parentOf(m.config, entity); entity == "" {
			break
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// inUse reports whether anything of a limit is in use.
func (m *Model) inUse(k Key, s *state, now int64) bool {
	if k.Kind != weir.Bucket {
		return m.occupied(s.pieces, m.seen(s, now)).Sign() != 0
	}
	own := s.bucket.Limit
	b, _ := m.stateAt(k, &own, now)
	return b.bucket.Balance.Cmp(capacityMilli(&own)) < 0
}

// StateOf returns the state of a lease, or "" if it is not known. It does not advance the clock.
func (m *Model) StateOf(id weir.LeaseID) driver.LeaseState {
	m.mu.Lock()
	defer m.mu.Unlock()
	return stateOf(m.find(id))
}

// Tied reports whether another live lease ends in the same millisecond. The contract does not say
// which of the two is forgotten first. It does not advance the clock.
func (m *Model) Tied(id weir.LeaseID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.find(id)
	return e != nil && slices.ContainsFunc(m.table.live, func(o *lease) bool {
		return o != e && o.expires == e.expires
	})
}

// Chain returns the statuses that [Model.Status] would return. It does not advance the clock.
// Generators of calls use it.
func (m *Model) Chain(entity, resource string) []weir.LimitStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.chainStatuses(weir.Subject{Entity: entity, Resource: resource}, m.readClock())
}

// chainStatuses returns the statuses of the limits of a subject and of each ancestor that it
// charges.
func (m *Model) chainStatuses(s weir.Subject, now int64) []weir.LimitStatus {
	var out []weir.LimitStatus
	for range m.depth + 1 {
		out = append(out, m.statuses(s, now)...)
		if s.Entity = parentOf(m.config, s.Entity); s.Entity == "" {
			break
		}
	}
	return out
}

// Returns returns the instants at which units of a subject return by themselves, in order. It does
// not advance the clock.
func (m *Model) Returns(entity, resource string) []time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []time.Time
	for k, s := range m.states {
		if k.Entity != entity || k.Resource != resource {
			continue
		}
		for _, p := range m.present(s.pieces, m.readClock()) {
			out = append(out, timeAt(p.Until))
		}
	}
	slices.SortFunc(out, time.Time.Compare)
	return out
}

// WindowsEnd returns when all units that a live lease has taken of windows have returned by
// themselves, or zero if it has taken none. It does not advance the clock.
func (m *Model) WindowsEnd(id weir.LeaseID) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	var last int64
	if e := m.find(id); stateOf(e) == driver.LeaseLive {
		for _, h := range e.holdings {
			if h.Limit.Kind != weir.Window {
				continue
			}
			for _, p := range h.Pieces {
				if p.Units > 0 {
					last = max(last, p.Until)
				}
			}
		}
	}
	if last == 0 {
		return time.Time{}
	}
	return timeAt(last)
}
