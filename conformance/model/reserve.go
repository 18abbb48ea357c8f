package model

import (
	"context"
	"slices"

	"github.com/weir-limiter/weir"
)

// Reserve fulfils [weir.Service].
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
	e := m.table.call(id)
	state, same := stateOf(e), e != nil && m.rules.SameRequest(e.content, content)
	switch reaction := m.rules.React(weir.VerbReserve, state, same); reaction {
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

func (m *Model) checkID(id weir.LeaseID) error {
	t := &m.table
	oldest := m.rules.Horizon(t.now, t.memory, t.early, t.opened)
	return m.rules.CheckID(idMS(id), oldest, t.now)
}

// reserve judges every limit and takes everything or nothing (3.1).
func (m *Model) reserve(id weir.LeaseID, content *Content, now int64) (*weir.Lease, error) {
	takes, err := m.plan(content)
	if err != nil {
		return nil, m.notes.refuse("reserve", err)
	}
	verdicts, denied := m.judge(takes, now)
	m.stamp(verdicts, denied)
	if denied {
		return nil, m.deny(id, content, verdicts, now)
	}
	m.rules.Gap(&m.mu)
	holdings, err := m.takeAll(takes, now)
	if err != nil {
		return nil, m.notes.refuse("reserve", err)
	}
	m.notes.set("reserve", "admitted")
	return m.handle(m.bear(id, content, holdings, m.reported(verdicts, holdings), now), now), nil
}

// stamp moves the states that were judged to now (1.3).
func (m *Model) stamp(verdicts []*verdict, denied bool) {
	for _, v := range verdicts {
		if m.rules.Stamps(denied, v.known) {
			m.store(m.rules.KeyOf(v.take.Subject, &v.take.Limit), v.state)
		}
	}
}

// deny: a denial carries the status of every limit judged and the wait (4.1), and leaves no lease
// (6.5).
func (m *Model) deny(id weir.LeaseID, content *Content, verdicts []*verdict, now int64) error {
	d := &weir.DeniedError{LeaseID: id}
	var anyway []*Take
	for _, v := range verdicts {
		d.Limits = append(d.Limits, v.status)
		if m.rules.TakesAnyway(v.take, v.fits) {
			anyway = append(anyway, v.take)
		}
	}
	d.RetryAfter = m.rules.RetryAfter(d.Limits)
	holdings, err := m.takeAll(anyway, now)
	if err == nil && m.rules.KeepsDenied() {
		m.bear(id, content, holdings, d.Limits, now)
	}
	return m.notes.refuse("reserve", m.rules.Denial(d))
}

// reported: an admitted reservation reports what is available after it (3.8).
func (m *Model) reported(verdicts []*verdict, holdings []*Holding) []weir.LimitStatus {
	limits := make([]weir.LimitStatus, len(verdicts))
	for i, v := range verdicts {
		after := v.status
		after.Available = sub(num(after.Available), holdings[i].counted()).Int64()
		limits[i] = m.rules.Reported(v.status, after)
	}
	return limits
}

// bear makes a lease.
func (m *Model) bear(
	id weir.LeaseID, content *Content, holdings []*Holding, limits []weir.LimitStatus, now int64,
) *lease {
	e := &lease{
		id: id, state: weir.LeaseLive, content: content, at: now, expires: m.ends(now, holdings),
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

func stateOf(e *lease) weir.LeaseState {
	if e == nil {
		return ""
	}
	return e.state
}
