package model

import (
	"context"
	"errors"
	"maps"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
)

// update is one call of a verb on a lease.
type update struct {
	verb   weir.Verb
	id     weir.LeaseID
	seq    int64
	totals []weir.Costs
}

// Adjust implements [weir.Service].
func (m *Model) Adjust(
	_ context.Context, id weir.LeaseID, seq int64, totals []weir.Costs,
) (*weir.Receipt, error) {
	return m.update(&update{weir.VerbAdjust, id, seq, totals})
}

// Complete implements [weir.Service].
func (m *Model) Complete(
	_ context.Context, id weir.LeaseID, actuals []weir.Costs,
) (*weir.Receipt, error) {
	return m.update(&update{weir.VerbComplete, id, 0, actuals})
}

// Cancel implements [weir.Service].
func (m *Model) Cancel(_ context.Context, id weir.LeaseID) (*weir.Receipt, error) {
	return m.update(&update{verb: weir.VerbCancel, id: id})
}

// Extend implements [weir.Service].
func (m *Model) Extend(_ context.Context, id weir.LeaseID) (*weir.Receipt, error) {
	return m.update(&update{verb: weir.VerbExtend, id: id})
}

// update checks the call itself first, then looks its lease up, and only then checks the call
// against the lease (6).
func (m *Model) update(s *update) (*weir.Receipt, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, verb := m.readClock(), string(s.verb)
	if err := m.checkSettling(s); err != nil {
		return nil, m.notes.fail(verb, err)
	}
	m.advanceTable(now)
	m.expire()
	e := m.call(s.id)
	switch reaction := m.react(m.cell(e, s)); reaction {
	case Do:
		return m.carryOut(e, s, now)
	case Replay, Ignored:
		m.notes.set(verb, map[Reaction]string{Replay: "replay", Ignored: "lower"}[reaction])
		if s.verb == weir.VerbAdjust {
			return m.receipt(e, e.seqAt, now), nil
		}
		return m.receipt(e, e.endedAt, now), nil
	default:
		if reaction == Void {
			m.void(s.id, now)
		}
		return nil, m.notes.fail(verb, refusal(reaction, stateOf(e)))
	}
}

// cell returns the cell of a call in the table of section 6.
func (m *Model) cell(e *lease, s *update) TableCell {
	if e == nil {
		return TableCell{Verb: s.verb, Refused: m.checkID(s.id) != nil}
	}
	same := m.same(&Content{Totals: e.actuals}, &Content{Totals: s.totals})
	return TableCell{Verb: s.verb, State: e.state, Same: same, Seq: s.seq, Last: e.seq}
}

// carryOut carries out a verb. A call that is refused changes nothing (7.4, 7.10), and uses up no
// sequence number (7.1).
func (m *Model) carryOut(e *lease, s *update, now int64) (*weir.Receipt, error) {
	changes, err := m.prepare(e, s, now)
	if err != nil {
		return nil, m.notes.fail(string(s.verb), err)
	}
	if s.verb == weir.VerbComplete || s.verb == weir.VerbCancel {
		m.noteReturns(e, now)
	}
	m.apply(e, changes)
	switch s.verb {
	case weir.VerbAdjust:
		e.seq, e.seqAt = s.seq, now
	case weir.VerbExtend:
		m.renew(e, m.expires(now, e.holdings))
	case weir.VerbComplete:
		for _, c := range s.totals {
			e.actuals = append(e.actuals, maps.Clone(c))
		}
		m.finish(e, driver.LeaseCompleted, now)
	case weir.VerbCancel:
		m.finish(e, driver.LeaseCancelled, now)
	}
	m.notes.set(string(s.verb), "ok")
	return m.receipt(e, now, now), nil
}

// prepare returns what an update does to every holding, without changing anything, because nothing
// of a refused call may be applied (7.4, 7.10, 7.11).
func (m *Model) prepare(e *lease, s *update, now int64) ([]*Change, error) {
	var changes []*Change
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
		if err != nil {
			failed = err
		}
		changes = append(changes, c)
	}
	return changes, failed
}

// receipt returns the answer to a verb on a lease.
func (m *Model) receipt(e *lease, when, now int64) *weir.Receipt {
	r := &weir.Receipt{LeaseID: e.id, At: timeAt(when)}
	if e.state == driver.LeaseLive {
		r.Expires, r.HoldsUntil = timeAt(e.expires), m.holdsUntil(e, now)
	}
	return r
}

// checkSettling refuses a negative amount (7.4), a malformed name (6), also as part of a full name
// (7.12), and a sequence number below 1 (7.1).
func (m *Model) checkSettling(s *update) error {
	var seq error
	if s.verb == weir.VerbAdjust && s.seq < 1 {
		seq = invalid("seq", "is below 1")
	}
	return errors.Join(m.refuse("7.1", seq), m.refuse("7.4", checkTotals(s.totals)))
}
