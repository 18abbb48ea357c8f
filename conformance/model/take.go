package model

import (
	"math/big"
	"slices"

	"github.com/weir-limiter/weir"
)

// Holding is what a lease stands for on one limit. Its Limit is the definition last used.
type Holding struct {
	Take
	// Pieces say where the units are; empty for a bucket.
	Pieces []*Piece
}

// counted is what was counted on the limit: slots that it could not hold are none.
func (h *Holding) counted() *big.Int {
	if h.Limit.Kind != weir.Concurrency {
		return cost(h.Parts)
	}
	total := num(0)
	for _, p := range h.Pieces {
		total.Add(total, num(p.Units))
	}
	return total
}

// takeAll takes every cost or none (3.1).
func (m *Model) takeAll(takes []*Take, now int64) ([]*Holding, error) {
	holdings := make([]*Holding, len(takes))
	states := make([]*state, len(takes))
	for i, t := range takes {
		var err error
		if holdings[i], states[i], err = m.taken(t, now); err != nil {
			return nil, err
		}
	}
	for i, t := range takes {
		m.store(m.rules.KeyOf(t.Subject, &t.Limit), states[i])
	}
	return holdings, nil
}

// taken is a limit's state after a take. A state that was forgotten begins anew.
func (m *Model) taken(t *Take, now int64) (*Holding, *state, error) {
	s, _ := m.look(m.rules.KeyOf(t.Subject, &t.Limit), &t.Limit, now)
	h := &Holding{Take: *t}
	n := m.rules.slotted(&t.Limit, m.rules.TakenCost(t.Parts))
	if t.Limit.Kind == weir.Bucket {
		s.bucket.Balance = sub(s.bucket.Balance, mul(n, num(milliPerUnit)))
	} else if n.Sign() != 0 || t.Limit.Kind != weir.Concurrency {
		p := &Piece{n.Int64(), m.until(&t.Limit, s.seen)}
		h.Pieces = []*Piece{p}
		s.pieces = append(s.pieces, p)
	}
	if !m.counts(s) {
		return m.uncounted(t, now)
	}
	return h, s, nil
}

// uncounted: what the counter of a shadow limit cannot hold it does not count (3.6). Nothing else takes
// more than fits.
func (m *Model) uncounted(t *Take, now int64) (*Holding, *state, error) {
	if !m.rules.SparesUncounted(&t.Limit) {
		return nil, nil, invalid("costs."+t.Limit.Name, "is more than can be counted")
	}
	if t.Limit.Kind == weir.Concurrency { // as if its slots had timed out (7.9)
		s, _ := m.look(m.rules.KeyOf(t.Subject, &t.Limit), &t.Limit, now)
		return &Holding{Take: *t}, s, nil
	}
	nothing := *t
	nothing.Parts = slices.Clone(t.Parts)
	for i := range nothing.Parts {
		nothing.Parts[i].Units = 0
	}
	return m.taken(&nothing, now)
}

// until is when units return by themselves that were taken at now.
func (m *Model) until(l *weir.Limit, now int64) int64 {
	switch l.Kind {
	case weir.Window:
		return m.rules.WindowUntil(l, now)
	case weir.Concurrency:
		return m.rules.HoldUntil(l, now)
	default:
		return m.rules.budgetUntil(l, now)
	}
}

// counts: a sum that no longer fits its counter is invalid (7.11).
func (m *Model) counts(s *state) bool {
	if s.bucket.Balance != nil && !s.bucket.Balance.IsInt64() {
		return false
	}
	var amounts []int64
	for _, p := range s.pieces {
		if !m.rules.Returned(p, s.seen) {
			amounts = append(amounts, p.Units)
		}
	}
	_, ok := m.rules.Sum(amounts...)
	return ok
}

// change is what a settlement does to one holding, not yet done.
type change struct {
	key     Key
	state   *state
	holding *Holding // as it will be
}

// changed is a holding and its limit's state after a settlement. It works under the definition in
// force, and where there is none, under the last one (8.6).
func (m *Model) changed(h *Holding, to []weir.Part, now int64) (*change, error) {
	l := m.rules.SettledUnder(&h.Limit, m.inForce(h.Subject, &h.Limit))
	c := &change{key: m.rules.KeyOf(h.Subject, &h.Limit), holding: h.copy(*l, to)}
	c.state, _ = m.look(c.key, l, now)
	more := sub(cost(to), cost(h.Parts))
	grows := more.Sign() > 0
	if grows {
		more = m.rules.Grown(l, more)
	}
	if l.Kind == weir.Bucket {
		m.rebalance(c.state, l, more)
	} else {
		m.resize(c, l, more)
		c.state.swap(h.Pieces, m.rules.present(c.holding.Pieces, c.state.seen))
	}
	if grows && !m.counts(c.state) {
		if m.rules.SparesUncounted(l) {
			return m.changed(h, h.Parts, now) // it keeps what it stood for (7.11)
		}
		return c, invalid("totals."+h.Limit.Name, "is more than can be counted")
	}
	return c, nil
}

// rebalance: growth takes a bucket into debt (7.5); a refund goes up to its capacity (7.7).
func (m *Model) rebalance(s *state, l *weir.Limit, more *big.Int) {
	milli := mul(more, num(milliPerUnit))
	if more.Sign() < 0 {
		s.bucket.Balance = m.rules.Refund(l, s.bucket.Balance, milli.Neg(milli))
		return
	}
	s.bucket.Balance = sub(s.bucket.Balance, milli)
}

// resize grows (7.5) or shrinks (7.6) the pieces of a holding; those of a budget stay in the period
// of the reservation (7.7).
func (m *Model) resize(c *change, l *weir.Limit, more *big.Int) {
	h, n, now := c.holding, more.Int64(), c.state.seen
	switch {
	case l.Kind == weir.Budget && len(h.Pieces) > 0:
		until := m.rules.Book(l, h.Pieces[0], now)
		if until != h.Pieces[0].Until {
			h.Pieces = append(h.Pieces, &Piece{0, until})
		}
		h.Pieces[len(h.Pieces)-1].Units += n
	case n < 0:
		m.rules.Shrink(h.Pieces, -n, now)
	case n > 0 && l.Kind == weir.Window:
		h.Pieces = append(h.Pieces, &Piece{n, m.rules.GrownUntil(l, h.Pieces, now)})
	case n > 0:
		h.Pieces = append(h.Pieces, &Piece{n, m.until(l, now)})
	}
}

// copy is a holding that can be changed without changing h.
func (h *Holding) copy(l weir.Limit, to []weir.Part) *Holding {
	c := &Holding{Take: h.Take}
	c.Limit, c.Parts = l, to
	for _, p := range h.Pieces {
		c.Pieces = append(c.Pieces, new(*p))
	}
	return c
}

// swap puts pieces of a lease in the place of those that it had.
func (s *state) swap(old, with []*Piece) {
	s.pieces = slices.DeleteFunc(s.pieces, func(p *Piece) bool { return slices.Contains(old, p) })
	s.pieces = append(s.pieces, with...)
}

// renewed is a holding and its limit's state after an extend (7.8). Only slots are renewed.
func (m *Model) renewed(h *Holding, now int64) *change {
	l := m.rules.SettledUnder(&h.Limit, m.inForce(h.Subject, &h.Limit))
	c := &change{key: m.rules.KeyOf(h.Subject, &h.Limit), holding: h.copy(*l, h.Parts)}
	if l.Kind != weir.Concurrency {
		c.holding.Pieces = h.Pieces
		return c
	}
	var known bool
	if c.state, known = m.look(c.key, l, now); !known {
		c.state = nil // only an admission or a change of totals makes it anew
		return c
	}
	for _, p := range c.holding.Pieces {
		p.Until = m.rules.Extended(p, l, c.state.seen)
	}
	c.state.swap(h.Pieces, m.rules.present(c.holding.Pieces, c.state.seen))
	return c
}

// apply does what was prepared.
func (m *Model) apply(e *lease, changes []*change) {
	for i, c := range changes {
		e.holdings[i] = c.holding
		if c.state != nil {
			m.store(c.key, c.state)
		}
	}
}
