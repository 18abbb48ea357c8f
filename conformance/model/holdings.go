package model

import (
	"math/big"
	"slices"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
)

// Holding holds the units that a lease stands for on one limit. Its Limit is the definition last
// used.
type Holding struct {
	Take
	// Pieces are the units; empty for a bucket.
	Pieces []*Piece
}

// counted returns the units that the limit counts for the holding. Slots that did not fit the
// counter are not counted.
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
		m.store(m.key(t.Subject, &t.Limit), states[i])
	}
	return holdings, nil
}

// taken returns a take's holding, and its limit's state with the units taken. A forgotten state
// starts over (8.4).
func (m *Model) taken(t *Take, now int64) (*Holding, *state, error) {
	s, _ := m.stateAt(m.key(t.Subject, &t.Limit), &t.Limit, now)
	h := &Holding{Take: *t}
	n := cost(t.Parts)
	if t.Limit.Kind == weir.Bucket {
		s.bucket.Balance = sub(s.bucket.Balance, mul(n, num(milliPerUnit)))
	} else if n.Sign() != 0 || t.Limit.Kind != weir.Concurrency {
		p := &Piece{n.Int64(), m.takenUntil(&t.Limit, s.seen)}
		h.Pieces = []*Piece{p}
		s.pieces = append(s.pieces, p)
	}
	if err := m.refuseTake("3.6", t, m.countError(s, "costs."+t.Limit.Name)); err != nil {
		return m.uncounted(t, now, err)
	}
	return h, s, nil
}

// uncounted is taken for a sum that does not fit the limit's counter. A shadow limit does not count
// such a sum at all (3.6). A limit that is enforced never gets here, because a take that fits the
// limit fits its counter.
func (m *Model) uncounted(t *Take, now int64, err error) (*Holding, *state, error) {
	if t.Limit.Shadow {
		err = nil
	}
	if err := m.refuseTake("3.6 shadow", t, err); err != nil {
		return nil, nil, err
	}
	if t.Limit.Kind == weir.Concurrency { // as if its slots had timed out (7.9)
		s, _ := m.stateAt(m.key(t.Subject, &t.Limit), &t.Limit, now)
		return &Holding{Take: *t}, s, nil
	}
	nothing := *t
	nothing.Parts = none(t.Parts)
	return m.taken(&nothing, now)
}

// Change is a computed change of one holding that an update has yet to apply.
type Change struct {
	key     Key
	state   *state
	holding *Holding // after the update
}

// changed returns what an update does to one holding if it is to stand for the parts in to.
func (m *Model) changed(h *Holding, to []driver.Part, now int64) (*Change, error) {
	l := m.settledUnder(h)
	c := &Change{key: m.key(h.Subject, &h.Limit), holding: h.clone(*l, to)}
	c.state, _ = m.stateAt(c.key, l, now)
	more := sub(cost(to), cost(h.Parts))
	if l.Kind == weir.Bucket {
		m.rebalance(c.state, l, more)
	} else {
		m.resize(c, l, more)
		c.state.swap(h.Pieces, m.present(c.holding.Pieces, c.state.seen))
	}
	if more.Sign() <= 0 {
		return c, nil
	}
	err := m.refuseTake("7.11", &h.Take, m.countError(c.state, "totals."+h.Limit.Name))
	if err == nil {
		return c, nil
	}
	if l.Shadow { // the lease keeps what it stood for, and the update goes on (7.11)
		err = nil
	}
	if err := m.refuseTake("7.11 shadow", &h.Take, err); err != nil {
		return nil, err
	}
	return m.changed(h, h.Parts, now)
}

// rebalance adds to or subtracts from what was taken of a bucket. Growth may take the bucket into
// debt (7.5), a refund fills it up to its capacity (7.7).
func (m *Model) rebalance(s *state, l *weir.Limit, more *big.Int) {
	milli := mul(more, num(milliPerUnit))
	if more.Sign() < 0 {
		s.bucket.Balance = m.refund(l, s.bucket.Balance, milli.Neg(milli))
		return
	}
	s.bucket.Balance = sub(s.bucket.Balance, milli)
}

// resize grows (7.5) or shrinks (7.6) the pieces of a holding. Those of a budget stay in the period
// of the reservation (7.7).
func (m *Model) resize(c *Change, l *weir.Limit, more *big.Int) {
	h, n, now := c.holding, more.Int64(), c.state.seen
	switch {
	case l.Kind == weir.Budget && len(h.Pieces) > 0:
		until := m.bookedUntil(l, h.Pieces, now)
		if until != h.Pieces[0].Until {
			h.Pieces = append(h.Pieces, &Piece{0, until})
		}
		h.Pieces[len(h.Pieces)-1].Units += n
	case n < 0:
		h.Pieces = m.points.Shrink.pass(ShrunkHolding{h.Pieces, -n, now}, shrink(h.Pieces, -n))
	case n > 0 && l.Kind == weir.Window:
		h.Pieces = append(h.Pieces, &Piece{n, m.grownUntil(l, h.Pieces, now)})
	case n > 0:
		h.Pieces = append(h.Pieces, &Piece{n, m.takenUntil(l, now)})
	}
}

// clone returns a copy of h that can be changed.
func (h *Holding) clone(l weir.Limit, to []driver.Part) *Holding {
	c := &Holding{Take: h.Take, Pieces: copies(h.Pieces)}
	c.Limit, c.Parts = l, to
	return c
}

// swap replaces pieces of a lease with others.
func (s *state) swap(old, with []*Piece) {
	s.pieces = slices.DeleteFunc(s.pieces, func(p *Piece) bool { return slices.Contains(old, p) })
	s.pieces = append(s.pieces, with...)
}

// renewed returns what an extend does to one holding. It renews slots only (7.8), and does not
// restore a forgotten state (8.4).
func (m *Model) renewed(h *Holding, now int64) *Change {
	l := m.settledUnder(h)
	c := &Change{key: m.key(h.Subject, &h.Limit), holding: h.clone(*l, h.Parts)}
	s, known := m.stateAt(c.key, l, now)
	switch {
	case l.Kind != weir.Concurrency:
		c.holding.Pieces = h.Pieces
	case known:
		for _, p := range c.holding.Pieces {
			p.Until = m.extendedUntil(l, p, s.seen)
		}
		s.swap(h.Pieces, m.present(c.holding.Pieces, s.seen))
		c.state = s
	}
	return c
}

// apply carries out prepared changes.
func (m *Model) apply(e *lease, changes []*Change) {
	for i, c := range changes {
		e.holdings[i] = c.holding
		if c.state != nil {
			m.store(c.key, c.state)
		}
	}
}
