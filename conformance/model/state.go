package model

import (
	"math/big"

	"github.com/weir-limiter/weir"
)

// Key is what a limit's state is found by. A limit that changes its kind begins anew, and finds its
// old use if it changes back (8.5).
type Key struct {
	weir.Subject
	Name string
	Kind weir.Kind
}

func keyOf(s weir.Subject, l *weir.Limit) Key { return Key{s, l.Name, l.Kind} }

// state is what is in use of one limit. Which fields count depends on its kind.
type state struct {
	seen   int64    // the latest instant (1.3)
	bucket Bucket   // At is seen
	pieces []*Piece // of the other kinds; the leases have them too
}

// newState is an empty limit (2.5).
func (r *Rules) newState(l *weir.Limit, now int64) *state {
	s := &state{seen: now}
	if l.Kind == weir.Bucket {
		s.bucket = Bucket{r.Fresh(l), now, *l}
	}
	return s
}

// look returns a limit's state as it is at now: a copy, brought up to date, or a new one. known is
// false where the state is absent or was forgotten.
func (m *Model) look(k Key, l *weir.Limit, now int64) (s *state, known bool) {
	stored := m.states[k]
	if stored == nil {
		return m.rules.newState(l, now), false
	}
	now = m.rules.Now(now, stored.seen)
	if m.rules.idle(l.Kind, stored, now) {
		return m.rules.newState(l, now), false
	}
	c := &state{seen: now}
	if l.Kind == weir.Bucket {
		c.bucket = m.rules.Touch(stored.bucket, l, now)
	} else {
		c.pieces = m.rules.present(stored.pieces, now)
	}
	return c, true
}

// idle is true where a state was forgotten: a minute after the last of it was in use (8.4).
func (r *Rules) idle(k weir.Kind, s *state, now int64) bool {
	if k == weir.Bucket {
		return r.Forgotten(s.bucket, now)
	}
	empty := s.seen
	for _, p := range s.pieces {
		empty = max(empty, p.Until)
	}
	return now >= empty+forgetMS
}

// forgetMS is how long nothing has to be in use.
const forgetMS = 60_000

// store puts back a state that look returned.
func (m *Model) store(k Key, s *state) {
	if was := m.states[k]; was != nil {
		m.notes.passed(k.Kind, was, s)
	}
	m.states[k] = s
}

// present are the pieces that have not returned.
func (r *Rules) present(pieces []*Piece, now int64) []*Piece {
	var out []*Piece
	for _, p := range pieces {
		if !r.Returned(p, now) && p.Units != 0 {
			out = append(out, p)
		}
	}
	return out
}

// available is what a limit has left at the state's instant, under its own capacity, in its counts.
func (r *Rules) available(l *weir.Limit, s *state) *big.Int {
	if l.Kind == weir.Bucket {
		return s.bucket.Balance
	}
	return r.Room(l, r.occupied(s.pieces, s.seen))
}

// passed counts what time has done between two looks at a state.
func (n *notes) passed(k weir.Kind, was, is *state) {
	gone := 0
	for _, p := range was.pieces {
		if p.Units > 0 && p.Until <= is.seen {
			gone++
		}
	}
	switch k {
	case weir.Bucket:
		if is.seen > was.seen && is.bucket.Balance.Cmp(was.bucket.Balance) > 0 {
			n.seen.Refills++
		}
	case weir.Window:
		n.seen.WindowEnds += gone
	case weir.Concurrency:
		n.seen.HoldTimeouts += gone
	case weir.Budget:
		n.seen.Rollovers += gone
	}
}
