package model

import (
	"bytes"
	"maps"
	"slices"

	"github.com/weir-limiter/weir"
)

// CloneFor returns a copy of m for one call about a lease. The call is answered as m would answer
// it, and does not change m. Another call needs another copy.
//
// A search over orders of calls makes a copy for each call of each order that it tries. So the copy
// shares with m what the call cannot change: all other leases, except those that have expired by
// its time, and everything that is immutable once stored, such as states, holdings, pieces and
// contents.
func (m *Model) CloneFor(id weir.LeaseID) *Model {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := &Model{
		points: m.points, calendar: m.calendar, now: m.now, newID: m.newID, depth: m.depth,
		config: m.config, levels: m.levels, states: maps.Clone(m.states), held: maps.Clone(m.held),
		table: m.table, notes: m.notes,
	}
	now := m.clock(m.readClock())
	c.table.live, c.table.ended = slices.Clone(m.table.live), slices.Clone(m.table.ended)
	for i, e := range c.table.live {
		if e.id == id || now >= e.expires {
			own := *e
			own.holdings = slices.Clone(e.holdings)
			c.table.live[i] = &own
		}
	}
	return c // an ended lease does not change
}

// SameNow reports whether m and o give the same answers to all later calls, as long as these carry
// the same instant as the calls before. So the order in which leases would end or be forgotten does
// not count, nor the pieces that a limit's units are in. Both must have the same definitions.
// SameNow does not compare the answers that repeated reservations would get.
func (m *Model) SameNow(o *Model) bool {
	if m == o {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(m.states) == len(o.states) && m.sameStates(o) && m.table.same(&o.table)
}

func (m *Model) sameStates(o *Model) bool {
	for k, a := range m.states {
		b := o.states[k]
		if a == b {
			continue
		}
		if b == nil || a.seen != b.seen || k.Kind == weir.Bucket && a.bucket.Balance.Cmp(b.bucket.Balance) != 0 ||
			m.occupied(a.pieces, a.seen).Cmp(o.occupied(b.pieces, b.seen)) != 0 {
			return false
		}
	}
	return true
}

func (t *leaseTable) same(o *leaseTable) bool {
	if len(t.live) != len(o.live) || len(t.ended) != len(o.ended) {
		return false
	}
	byID := func(lists ...[]*lease) []*lease {
		all := slices.Concat(lists...)
		slices.SortFunc(all, func(a, b *lease) int { return bytes.Compare(a.id[:], b.id[:]) })
		return all
	}
	return slices.EqualFunc(byID(t.live, t.ended), byID(o.live, o.ended), (*lease).same)
}

func (e *lease) same(o *lease) bool {
	return e.id == o.id && e.state == o.state && e.seq == o.seq &&
		(e.content == o.content || e.content.Same(o.content)) &&
		slices.EqualFunc(e.actuals, o.actuals, sameCosts) &&
		slices.EqualFunc(e.holdings, o.holdings, func(a, b *Holding) bool {
			return a == b || a.Subject == b.Subject && a.Limit.Name == b.Limit.Name &&
				slices.Equal(a.Parts, b.Parts)
		})
}

// Seq returns the sequence number of the last adjust that was applied to a lease, or 0. It does not
// advance the clock.
func (m *Model) Seq(id weir.LeaseID) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.find(id); e != nil {
		return e.seq
	}
	return 0
}
