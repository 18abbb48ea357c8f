package model

import (
	"math/big"

	"github.com/weir-limiter/weir"
)

// Key identifies the state of a limit. A limit whose kind is changed starts over, and finds its old
// use if its kind is changed back (8.5).
type Key struct {
	weir.Subject
	Name string
	Kind weir.Kind
}

func (m *Model) key(s weir.Subject, l *weir.Limit) Key {
	return m.points.Key.pass(l, Key{s, l.Name, l.Kind})
}

// state holds the use of one limit. The kind decides which fields are used.
type state struct {
	seen   int64    // the latest instant (1.3)
	bucket Bucket   // its At equals seen
	pieces []*Piece // of the other kinds; shared with the leases
}

// newState returns the state of a limit that was never used: nothing is in use, so a bucket is full
// (2.5).
func (m *Model) newState(l *weir.Limit, now int64) *state {
	s := &state{seen: now}
	if l.Kind == weir.Bucket {
		s.bucket = m.points.Bucket.pass(BucketRead{Limit: l, Now: now}, Bucket{capacityMilli(l), now, *l})
	}
	return s
}

// stateAt returns a limit's state at now: a copy, brought up to date, or a new one. known is false
// if there is no state or it was forgotten. If the state has seen a later instant than now, that
// instant is used (1.3).
func (m *Model) stateAt(k Key, l *weir.Limit, now int64) (s *state, known bool) {
	stored := m.states[k]
	if stored == nil {
		return m.newState(l, now), false
	}
	now = m.seen(stored, now)
	if now >= m.keptUntil(l.Kind, stored) {
		return m.newState(l, now), false
	}
	c := &state{seen: now}
	if l.Kind == weir.Bucket {
		c.bucket = m.touch(stored.bucket, l, now)
	} else {
		c.pieces = m.present(stored.pieces, now)
	}
	return c, true
}

func (m *Model) seen(s *state, now int64) int64 {
	return m.points.Now.pass(ClockReading{now, s.seen, false}, max(now, s.seen))
}

// keptUntil returns when a state is forgotten: a minute after nothing of the limit was in use any
// more, or after it was last asked, if that is later (8.4).
func (m *Model) keptUntil(k weir.Kind, s *state) int64 {
	empty := num(s.seen)
	if k == weir.Bucket {
		empty.Add(empty, s.bucket.Wait(capacityMilli(&s.bucket.Limit), s.seen))
	}
	for _, p := range s.pieces {
		empty = most(empty, num(p.Until))
	}
	return m.points.Until.pass(Expiry{Cause: Kept, From: s.seen, Limit: &s.bucket.Limit},
		saturated(add(empty, num(minuteMS))))
}

// store stores a state that stateAt returned.
func (m *Model) store(k Key, s *state) {
	if was := m.states[k]; was != nil {
		m.notes.passed(k.Kind, was, s)
	}
	m.states[k] = s
}

// available returns what a limit has left at the state's instant, under its own capacity (2.1 to
// 2.4).
func (m *Model) available(l *weir.Limit, s *state) *big.Int {
	if l.Kind == weir.Bucket {
		return s.bucket.Balance
	}
	return sub(num(l.Capacity), m.occupied(s.pieces, s.seen))
}

// countError returns the error of a sum that does not fit its counter (7.11).
func (m *Model) countError(s *state, field string) error {
	inUse := m.occupied(s.pieces, s.seen)
	if s.bucket.Balance != nil {
		inUse = s.bucket.Balance
	}
	if !inUse.IsInt64() {
		return uncountable(field)
	}
	return nil
}
