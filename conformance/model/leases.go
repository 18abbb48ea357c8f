package model

import (
	"slices"
	"time"

	"github.com/weir-limiter/weir"
)

// lease is what is remembered of one.
type lease struct {
	id       weir.LeaseID
	state    weir.LeaseState
	content  *Content
	at       int64
	expires  int64
	holdings []*Holding
	limits   []weir.LimitStatus // of the reservation's answer
	seq      int64
	seqAt    int64
	endedAt  int64
	actuals  []weir.Costs // of the complete
}

// idMS is the time that the lease's ID carries.
func idMS(id weir.LeaseID) int64 { return id.Time().UnixMilli() }

// leaseTable remembers leases.
type leaseTable struct {
	rules    *Rules
	now      int64
	opened   int64
	lifetime int64
	memory   int64
	size     int
	early    int64    // the newest ID time that was forgotten early, and one more
	live     []*lease // in the order in which they were reserved or renewed
	ended    []*lease // in the order in which they ended
}

func newLeaseTable(s Settings, r *Rules) leaseTable {
	ms := func(d, byDefault time.Duration) int64 {
		return int64(orDefault(d, byDefault) / time.Millisecond)
	}
	opened := r.Instant(s.Start)
	return leaseTable{
		rules: r, now: opened, opened: opened, early: opened,
		lifetime: ms(s.Options.LeaseLifetime, time.Hour),
		memory:   ms(s.Options.LeaseMemory, 10*time.Minute),
		size:     orDefault(s.Options.LeaseMemorySize, 1_000_000),
	}
}

// tableClock: an earlier now is taken as the latest one (1.3). A now more than a minute behind
// means that the clock had been wrong and was put right.
func tableClock(table, now int64) int64 {
	if now < table-60_000 {
		return now
	}
	return max(table, now)
}

// tick moves the table's clock.
func (m *Model) tick(now int64) { m.table.now = m.rules.Clock(m.table.now, now) }

// find returns a lease that is live or remembered, or nil.
func (t *leaseTable) find(id weir.LeaseID) *lease {
	for _, list := range [][]*lease{t.live, t.ended} {
		for _, e := range list {
			if e.id == id && !t.forgotten(e, t.now) {
				return e
			}
		}
	}
	return nil
}

// call returns what find does, for a call about the lease. An ended lease that need not be
// remembered any more may still stand behind one that must be: it goes when it is asked for.
func (t *leaseTable) call(id weir.LeaseID) *lease {
	t.ended = slices.DeleteFunc(t.ended, func(e *lease) bool {
		if e.id != id || !t.forgotten(e, t.now) {
			return false
		}
		t.early = t.rules.ForgottenEarly(t.early, idMS(id))
		return true
	})
	return t.find(id)
}

// StateOf says what is known of a lease, and is no call: no clock moves. It is empty where nothing
// is.
func (m *Model) StateOf(id weir.LeaseID) weir.LeaseState {
	m.mu.Lock()
	defer m.mu.Unlock()
	return stateOf(m.table.find(id))
}

// Tied is true where another live lease ends in the same millisecond. Which of the two is then the
// older is nowhere said. It is no call either.
func (m *Model) Tied(id weir.LeaseID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.table.find(id)
	return e != nil && slices.ContainsFunc(m.table.live, func(o *lease) bool {
		return o != e && o.expires == e.expires
	})
}

// expire ends the leases whose time is over (6.3), in the order in which it was, and forgets.
func (m *Model) expire() {
	t := &m.table
	var due []*lease
	for _, e := range t.live {
		if t.rules.Expired(e.expires, t.now) {
			due = append(due, e)
		}
	}
	slices.SortStableFunc(due, func(a, b *lease) int { return num(a.expires).Cmp(num(b.expires)) })
	for _, e := range due {
		m.notes.seen.Expired++
		m.end(e, weir.LeaseExpired, e.expires)
	}
	t.forget(t.now)
}

// leaseExpired: at its expiry a lease has ended (6.3).
func leaseExpired(ends, now int64) bool { return now >= ends }

// end makes a lease an ended one. A full memory forgets the oldest and moves the horizon (6.4).
func (m *Model) end(e *lease, as weir.LeaseState, at int64) {
	t := &m.table
	e.state, e.endedAt, e.holdings = as, at, nil
	t.live = slices.DeleteFunc(t.live, func(o *lease) bool { return o == e })
	t.forget(at)
	t.ended = append(t.ended, e)
	for t.rules.Overfull(len(t.ended), t.size) {
		t.drop()
		m.notes.seen.Early++
	}
}

// void ends an ID that was never reserved (6.7).
func (m *Model) void(id weir.LeaseID, now int64) {
	m.end(&lease{id: id, content: &Content{}}, weir.LeaseVoided, now)
}

// voids: a cancel of an unknown lease ends its ID, unless a reserve with it is refused anyway
// (6.7).
func voids(v weir.Verb, refused error) bool { return v == weir.VerbCancel && refused == nil }

// renew makes a lease live until a new instant. Of those that end in one millisecond, the one that
// was renewed last ends last.
func (m *Model) renew(e *lease, ends int64) {
	if ends == e.expires {
		return
	}
	t := &m.table
	t.live = slices.DeleteFunc(t.live, func(o *lease) bool { return o == e })
	t.live = append(t.live, e)
	e.expires = ends
}

// overfull: a full memory forgets the oldest (6.4).
func overfull(ended, size int) bool { return ended > size }

// forgottenEarly: one past the newest ID time that was forgotten early (6.2).
func forgottenEarly(newest, idMS int64) int64 { return max(newest, idMS+1) }

// forget drops what need not be remembered any more (6.4). Leases go in the order in which they
// ended: one that is to be remembered for longer, since its ID is ahead, takes those behind it
// along.
func (t *leaseTable) forget(now int64) {
	for len(t.ended) > 0 && t.forgotten(t.ended[0], now) {
		t.drop()
	}
}

func (t *leaseTable) forgotten(e *lease, now int64) bool {
	return e.state != weir.LeaseLive && t.rules.Forgets(e.endedAt, idMS(e.id), t.memory, now)
}

// drop forgets the lease that ended first. Had it been remembered for as long as it should, the
// horizon would be past it anyhow, unless the clock is put back.
func (t *leaseTable) drop() {
	t.early = t.rules.ForgottenEarly(t.early, idMS(t.ended[0].id))
	t.ended = t.ended[1:]
}

// forgets: an ended lease is remembered for so long after it ended, or after the time in its ID if
// that is later (6.4).
func forgets(ended, idMS, memory, now int64) bool { return now > max(ended, idMS)+memory }

// horizon: now less the lease memory; one past the newest ID time that was forgotten early; the
// opening of the lease table (6.2).
func horizon(now, memory, early, opened int64) int64 { return max(now-memory, early, opened) }

// checkID: an ID older than the horizon, or more than a minute ahead, is refused (6.1).
func checkID(idMS, horizon, now int64) error {
	const minute = 60_000
	if idMS < horizon {
		return invalid("lease_id", "is too old")
	}
	if idMS > now+minute {
		return invalid("lease_id", "is too far ahead")
	}
	return nil
}

// leaseEnds: a lease lives for its lifetime, never less than the longest timeout of its concurrency
// limits (6.3).
func leaseEnds(now, lifetime int64, timeouts []int64) int64 {
	return now + slices.Max(append(timeouts, lifetime))
}

// ends is when a lease ends that has these holdings and is reserved or extended at now.
func (m *Model) ends(now int64, holdings []*Holding) int64 {
	var timeouts []int64
	for _, h := range holdings {
		if h.Limit.Kind == weir.Concurrency {
			timeouts = append(timeouts, int64(h.Limit.Timeout/time.Millisecond))
		}
	}
	return m.rules.Ends(now, m.table.lifetime, timeouts)
}

// holdsUntil is when the first of a lease's slots returns by itself; zero without slots.
func (m *Model) holdsUntil(e *lease, now int64) time.Time {
	var first time.Time
	for _, h := range e.holdings {
		if h.Limit.Kind != weir.Concurrency {
			continue
		}
		for _, p := range h.Pieces {
			if p.Units > 0 && !m.rules.Returned(p, now) && (first.IsZero() || at(p.Until).Before(first)) {
				first = at(p.Until)
			}
		}
	}
	return first
}
