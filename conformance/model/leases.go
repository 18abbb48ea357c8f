package model

import (
	"slices"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
)

// lease is a live or remembered lease.
type lease struct {
	id       weir.LeaseID
	state    driver.LeaseState
	content  *Content
	at       int64
	expires  int64
	holdings []*Holding
	limits   []weir.LimitStatus // in the reservation's answer
	seq      int64
	seqAt    int64
	endedAt  int64
	actuals  []weir.Costs // of the complete that ended it
}

func stateOf(e *lease) driver.LeaseState {
	if e == nil {
		return ""
	}
	return e.state
}

// idMS returns the time in a lease ID.
func idMS(id weir.LeaseID) int64 { return id.Time().UnixMilli() }

// leaseTable is the table of live and remembered leases.
type leaseTable struct {
	now      int64
	opened   int64
	lifetime int64
	memory   int64
	size     int
	horizon  int64    // one past the newest ID time that was forgotten early
	live     []*lease // in the order in which they were reserved or renewed
	ended    []*lease // in the order in which they ended
}

// newLeaseTable returns an empty table. By default leases live for an hour, and a million ended
// ones are remembered for ten minutes each (6.3, 6.4).
func newLeaseTable(s Settings) leaseTable {
	opened := unixMS(s.Start)
	return leaseTable{
		now: opened, opened: opened, horizon: opened,
		lifetime: orDefault(s.Options.LeaseLifetime, time.Hour).Milliseconds(),
		memory:   orDefault(s.Options.LeaseMemory, 10*time.Minute).Milliseconds(),
		size:     orDefault(s.Options.LeaseMemorySize, 1_000_000),
	}
}

// find returns a lease that is live or remembered, or nil.
func (m *Model) find(id weir.LeaseID) *lease {
	for _, list := range [][]*lease{m.table.live, m.table.ended} {
		for _, e := range list {
			if e.id == id && !m.forgotten(e, m.table.now) {
				return e
			}
		}
	}
	return nil
}

// call is find for a call about the lease. An ended lease that need no longer be remembered may
// still be behind one that must be; it is forgotten when it is asked for.
func (m *Model) call(id weir.LeaseID) *lease {
	t := &m.table
	t.ended = slices.DeleteFunc(t.ended, func(e *lease) bool {
		if e.id != id || !m.forgotten(e, t.now) {
			return false
		}
		t.forgotEarly(e)
		return true
	})
	return m.find(id)
}

// expire ends the leases whose time is over, in the order of their ends: at its expiry a lease has
// ended, and what it stood for stays charged (6.3). Then it forgets the leases that need no longer
// be remembered.
func (m *Model) expire() {
	t := &m.table
	var due []*lease
	for _, e := range t.live {
		if t.now >= e.expires {
			due = append(due, e)
		}
	}
	slices.SortStableFunc(due, func(a, b *lease) int { return num(a.expires).Cmp(num(b.expires)) })
	for _, e := range due {
		m.notes.seen.Expired++
		m.finish(e, driver.LeaseExpired, e.expires)
	}
	m.forget(t.now)
}

// expires returns when a lease that is reserved or extended at now ends: after its lifetime, but
// not before the longest timeout of its concurrency limits (6.3).
func (m *Model) expires(now int64, holdings []*Holding) int64 {
	var timeout int64
	for _, h := range holdings {
		if h.Limit.Kind == weir.Concurrency {
			timeout = max(timeout, h.Limit.Timeout.Milliseconds())
		}
	}
	lifetime := m.table.lifetime
	return m.points.Until.pass(Expiry{Cause: Leased, From: now, Length: lifetime, Timeout: timeout},
		now+max(lifetime, timeout))
}

// renew makes a lease live until a new instant. Of the leases that end in one millisecond, the one
// that was renewed last ends last.
func (m *Model) renew(e *lease, expires int64) {
	if expires == e.expires {
		return
	}
	t := &m.table
	t.live = slices.DeleteFunc(t.live, func(o *lease) bool { return o == e })
	t.live = append(t.live, e)
	e.expires = expires
}

// finish ends a lease. If the memory is full, it forgets the oldest ended lease and moves the
// horizon (6.4).
func (m *Model) finish(e *lease, as driver.LeaseState, at int64) {
	t := &m.table
	e.state, e.endedAt, e.holdings = as, at, nil
	t.live = slices.DeleteFunc(t.live, func(o *lease) bool { return o == e })
	m.forget(at)
	t.ended = append(t.ended, e)
	for len(t.ended) > t.size {
		t.drop()
		m.notes.seen.Early++
	}
}

// void ends an ID that was never reserved. It is remembered like an ended lease (6.7).
func (m *Model) void(id weir.LeaseID, now int64) {
	m.finish(&lease{id: id, content: &Content{}}, driver.LeaseVoided, now)
}

// forget drops the leases that need no longer be remembered (6.4), in the order in which they
// ended. A lease that must be remembered for longer, because the time in its ID is ahead, also
// keeps the leases behind it.
func (m *Model) forget(now int64) {
	t := &m.table
	for len(t.ended) > 0 && m.forgotten(t.ended[0], now) {
		t.drop()
	}
}

// forgotten reports whether a lease ended more than the lease memory ago. If the time in its ID is
// later than its end, that time counts (6.4).
func (m *Model) forgotten(e *lease, now int64) bool {
	if e.state == driver.LeaseLive {
		return false
	}
	memory := m.table.memory
	return now > m.points.Until.pass(
		Expiry{Cause: Remembered, From: e.endedAt, Length: memory, IDTime: idMS(e.id)},
		max(e.endedAt, idMS(e.id))+memory)
}

// drop forgets the lease that ended first. If the lease was remembered for its full time, the
// horizon has passed its ID anyway, unless the clock is set back.
func (t *leaseTable) drop() {
	t.forgotEarly(t.ended[0])
	t.ended = t.ended[1:]
}

func (t *leaseTable) forgotEarly(e *lease) { t.horizon = max(t.horizon, idMS(e.id)+1) }

// Horizon holds the instants that determine the oldest time that an unknown lease ID may have
// (6.2).
type Horizon struct {
	// Now is the lease table's time. Memory is the lease memory.
	Now, Memory int64
	// Early is one past the newest ID time that was forgotten early. Opened is when the table was
	// opened.
	Early, Opened int64
}

// Oldest returns the latest of three instants: now less the lease memory, one past the newest ID
// time that was forgotten early, and the opening of the lease table (6.2).
func (h Horizon) Oldest() int64 { return max(h.Now-h.Memory, h.Early, h.Opened) }

// checkID refuses an ID that is older than the horizon, or more than a minute ahead (6.1).
func (m *Model) checkID(id weir.LeaseID) error {
	t := &m.table
	h := Horizon{t.now, t.memory, t.horizon, t.opened}
	var err error
	if idMS(id) < m.points.Horizon.pass(h, h.Oldest()) {
		err = invalid("lease_id", "is too old")
	} else if idMS(id) > t.now+minuteMS {
		err = invalid("lease_id", "is too far ahead")
	}
	return m.refuse("6.1", err)
}
