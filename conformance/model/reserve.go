package model

import (
	"context"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
)

// Reserve implements [weir.Service].
func (m *Model) Reserve(_ context.Context, r *weir.Request) (*weir.Lease, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.read()
	content, err := m.content(r)
	if err != nil {
		return nil, m.notes.refuse("reserve", err)
	}
	m.tick(now)
	id, brought := r.LeaseID, !r.LeaseID.IsZero()
	if !brought {
		id = m.newID(m.now())
	}
	// A lease that is known is answered first (6.1).
	m.expire()
	e := m.call(id)
	state, same := stateOf(e), e != nil && m.same(e.content, content)
	switch reaction := m.react(Cell{Verb: weir.VerbReserve, State: state, Same: same}); reaction {
	case Replay:
		m.notes.set("reserve", "replay")
		return m.handle(e, now), nil
	case Do:
	default:
		return nil, m.notes.refuse("reserve", refusal(reaction, state))
	}
	if brought {
		if err := m.checkID(id); err != nil {
			return nil, m.notes.refuse("reserve", err)
		}
	}
	return m.reserve(id, content, now)
}

// reserve judges every limit and takes everything or nothing (3.1).
func (m *Model) reserve(id weir.LeaseID, content *Content, now int64) (*weir.Lease, error) {
	takes, err := m.plan(content)
	if err != nil {
		return nil, m.notes.refuse("reserve", err)
	}
	verdicts, denied := m.judge(takes, now)
	m.stamp(verdicts, denied)
	holdings, err := m.takeAll(m.taking(takes, verdicts, denied), now)
	if denied {
		return nil, m.notes.refuse("reserve", denial(id, verdicts))
	}
	if err != nil {
		return nil, m.notes.refuse("reserve", err)
	}
	m.notes.set("reserve", "admitted")
	return m.handle(m.newLease(id, content, holdings, reported(verdicts, holdings), now), now), nil
}

// taking returns what is taken: all costs, or none (3.1).
func (m *Model) taking(takes []*Take, verdicts []*verdict, denied bool) []*Take {
	j := &Judgement{Takes: takes, Denied: denied, Lock: &m.mu}
	for _, v := range verdicts {
		j.Fits = append(j.Fits, v.fits)
	}
	if denied {
		takes = nil
	}
	return m.points.Taking.pass(j, takes)
}

// stamp moves the states that were judged to now: a state remembers the latest instant that it has
// seen, whatever the answer was (1.3). One that was forgotten stays so until something is taken (8.4).
func (m *Model) stamp(verdicts []*verdict, denied bool) {
	for _, v := range verdicts {
		if m.points.Stamps.pass(Stamp{denied, v.known}, v.known) {
			m.store(m.key(v.take.Subject, &v.take.Limit), v.state)
		}
	}
}

// denial carries the status of every limit judged, and the longest of the exceeded limits' waits.
// Shadow limits do not count in it (4.1). It leaves no lease (6.5).
func denial(id weir.LeaseID, verdicts []*verdict) *weir.DeniedError {
	d := &weir.DeniedError{LeaseID: id}
	for _, v := range verdicts {
		d.Limits = append(d.Limits, v.status)
		if v.status.Exceeded && !v.status.Shadow {
			d.RetryAfter = max(d.RetryAfter, v.status.RetryAfter)
		}
	}
	return d
}

// reported: an admitted reservation reports what is available after it (3.8).
func reported(verdicts []*verdict, holdings []*Holding) []weir.LimitStatus {
	limits := make([]weir.LimitStatus, len(verdicts))
	for i, v := range verdicts {
		limits[i] = v.status
		limits[i].Available = sub(num(v.status.Available), holdings[i].counted()).Int64()
	}
	return limits
}

// newLease adds a lease to the table.
func (m *Model) newLease(
	id weir.LeaseID, content *Content, holdings []*Holding, limits []weir.LimitStatus, now int64,
) *lease {
	e := &lease{
		id: id, state: weir.LeaseLive, content: content, at: now, expires: m.expires(now, holdings),
		holdings: holdings, limits: limits,
	}
	m.table.live = append(m.table.live, e)
	return e
}

// handle is the caller's side of a lease.
func (m *Model) handle(e *lease, now int64) *weir.Lease {
	return (&weir.Lease{
		ID: e.id, ReservedAt: at(e.at), Expires: at(e.expires), HoldsUntil: m.holdsUntil(e, now),
		Limits: slices.Clone(e.limits),
	}).Bind(m)
}

// holdsUntil is when the first of a lease's slots returns by itself; zero without slots.
func (m *Model) holdsUntil(e *lease, now int64) time.Time {
	var first time.Time
	for _, h := range e.holdings {
		if h.Limit.Kind != weir.Concurrency {
			continue
		}
		for _, p := range h.Pieces {
			if p.Units > 0 && !m.returned(p, now) && (first.IsZero() || at(p.Until).Before(first)) {
				first = at(p.Until)
			}
		}
	}
	return first
}
