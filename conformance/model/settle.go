package model

import (
	"context"
	"errors"
	"maps"

	"github.com/weir-limiter/weir"
)

// settling is one call of a verb on a lease.
type settling struct {
	verb   weir.Verb
	id     weir.LeaseID
	seq    int64
	totals []weir.Costs
}

// Adjust fulfils [weir.Service].
func (m *Model) Adjust(
	_ context.Context, id weir.LeaseID, seq int64, totals []weir.Costs,
) (*weir.Receipt, error) {
	return m.settle(&settling{weir.VerbAdjust, id, seq, totals})
}

// Complete fulfils [weir.Service].
func (m *Model) Complete(
	_ context.Context, id weir.LeaseID, actuals []weir.Costs,
) (*weir.Receipt, error) {
	return m.settle(&settling{weir.VerbComplete, id, 0, actuals})
}

// Cancel fulfils [weir.Service].
func (m *Model) Cancel(_ context.Context, id weir.LeaseID) (*weir.Receipt, error) {
	return m.settle(&settling{verb: weir.VerbCancel, id: id})
}

// Extend fulfils [weir.Service].
func (m *Model) Extend(_ context.Context, id weir.LeaseID) (*weir.Receipt, error) {
	return m.settle(&settling{verb: weir.VerbExtend, id: id})
}

// settle finds a request's own mistakes, then the lease, then what is wrong with the one for the
// other (6).
func (m *Model) settle(s *settling) (*weir.Receipt, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, verb := m.read(), string(s.verb)
	err := m.rules.CheckTotals(s.totals)
	if s.verb == weir.VerbAdjust {
		err = errors.Join(m.rules.CheckSeq(s.seq), err)
	}
	if err != nil {
		return nil, m.notes.refuse(verb, err)
	}
	m.tick(now)
	m.expire()
	e := m.table.call(s.id)
	same := e != nil && m.rules.SameTotals(e.actuals, s.totals)
	switch reaction := m.rules.React(s.verb, stateOf(e), same); {
	case reaction == Replay:
		m.notes.set(verb, "replay")
		return m.receipt(e, e.endedAt, now), nil
	case reaction != Do:
		if e == nil && m.rules.Voids(s.verb, m.checkID(s.id)) {
			m.void(s.id, now)
		}
		return nil, m.notes.refuse(verb, refusal(reaction, stateOf(e)))
	case s.verb == weir.VerbAdjust && !m.rules.Applies(e.seq, s.seq):
		m.notes.set(verb, map[bool]string{true: "replay", false: "lower"}[s.seq == e.seq])
		return m.receipt(e, e.seqAt, now), nil
	}
	changes, err := m.prepare(e, s, now)
	if err != nil {
		e.seq = m.rules.RefusedSeq(e.seq, s.seq)
		return nil, m.notes.refuse(verb, err)
	}
	m.apply(e, changes)
	m.settled(e, s, now)
	m.notes.set(verb, "ok")
	return m.receipt(e, now, now), nil
}

// settled notes on the lease what was done to it.
func (m *Model) settled(e *lease, s *settling, now int64) {
	switch s.verb {
	case weir.VerbAdjust:
		e.seq, e.seqAt = s.seq, now
	case weir.VerbExtend:
		m.renew(e, m.ends(now, e.holdings))
	case weir.VerbComplete:
		for _, c := range s.totals {
			e.actuals = append(e.actuals, maps.Clone(c))
		}
		m.end(e, weir.LeaseCompleted, now)
	case weir.VerbCancel:
		m.end(e, weir.LeaseCancelled, now)
	}
}

// receipt answers a verb on a lease.
func (m *Model) receipt(e *lease, when, now int64) *weir.Receipt {
	r := &weir.Receipt{LeaseID: e.id, At: at(when)}
	if e.state == weir.LeaseLive {
		r.Expires, r.HoldsUntil = at(e.expires), m.holdsUntil(e, now)
	}
	return r
}

// prepare works out what a settlement does to every holding, and changes nothing yet: nothing of a
// refused call is applied (7.4, 7.10, 7.11).
func (m *Model) prepare(e *lease, s *settling, now int64) ([]*change, error) {
	var changes []*change
	if s.verb == weir.VerbExtend {
		for _, h := range e.holdings {
			changes = append(changes, m.renewed(h, now))
		}
		return changes, nil
	}
	to, err := m.standFor(e, s)
	if err != nil {
		return nil, err
	}
	var failed error
	for i, h := range e.holdings {
		c, err := m.changed(h, to[i], now)
		if err != nil && !m.rules.Failing(err) {
			failed = err
		}
		changes = append(changes, c)
	}
	return changes, failed
}
