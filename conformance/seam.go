package conformance

import (
	"context"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
)

// seam drives a store as the limiter does, without one.
type seam struct {
	T
	store   weir.Backend
	faulty  *faulty // the store is made of it
	defs    *weir.Definitions
	now     time.Time
	resolve weir.Resolver
	holds   map[weir.LeaseID][]weir.Holding
	seq     int64
}

// onSeam opens a store and plays on it.
func onSeam(set Setup, play func(s *seam)) func(T, BackendHarness) {
	return func(t T, h BackendHarness) {
		t.Helper()
		set.Start = begin()
		if h.RealTime {
			set.Start = time.Now()
		}
		normal, err := set.Definitions.Normalize()
		if err != nil {
			t.Fatalf("definitions: %v", err)
		}
		faulty := newFaulty(t, h.Open(t, set))
		s := &seam{T: t, store: faulty.backend(), faulty: faulty, defs: normal, now: set.Start,
			holds: map[weir.LeaseID][]weir.Holding{}}
		s.resolve = s.resolved
		defer func() {
			if err := s.store.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		}()
		play(s)
	}
}

// resolved is what applies to a subject by the definitions.
func (s *seam) resolved(
	_ context.Context,
	of weir.Subject,
	_ weir.ResolveMode,
) (*weir.Resolved, error) {
	c := s.defs.Config(of)
	r := &weir.Resolved{Undeclared: !c.Known}
	if len(c.Levels) > 0 {
		r.Level, r.Limits, r.Hidden = c.Levels[0].Level, c.Levels[0].Limits, c.Levels[1:]
	}
	if c.Cascade {
		r.Parent = c.Parent
	}
	return r, nil
}

// judged says which limits apply to subjects.
func (s *seam) judged(of ...weir.Subject) []weir.Judged {
	judged := make([]weir.Judged, len(of))
	for i, subject := range of {
		judged[i].Subject = subject
		if c := s.defs.Config(subject); len(c.Levels) > 0 {
			judged[i].Level, judged[i].Limits = c.Levels[0].Level, c.Levels[0].Limits
		}
	}
	return judged
}

func (s *seam) reservation(charges ...weir.Charge) *weir.Reservation {
	traits := s.store.Traits()
	return &weir.Reservation{
		ID: weir.NewLeaseID(s.now), Fingerprint: 1, Charges: charges,
		Depth: min(8, traits.CascadeDepth), UndeclaredParents: traits.UndeclaredParents,
		Lifetime: time.Hour, Memory: 10 * time.Minute, Resolve: s.resolve,
	}
}

// reserve expects an answer, whatever it is.
func (s *seam) reserve(charges ...weir.Charge) (*weir.Reservation, *weir.Outcome) {
	s.Helper()
	r := s.reservation(charges...)
	out, err := s.try(r)
	if err != nil {
		s.Fatalf("reserve %v: %v", charges, err)
	}
	return r, out
}

// try plans a reservation and asks the store, or gives it the reservation to plan.
func (s *seam) try(r *weir.Reservation) (*weir.Outcome, error) {
	s.Helper()
	var p *weir.Plan
	var out *weir.Outcome
	var err error
	if lazy, ok := s.store.(weir.LazyReserver); ok {
		p, out, err = lazy.ReserveLazily(s.Context(), s.now, r)
	} else if p, err = r.Plan(s.Context()); err == nil {
		out = p.Outcome()
		err = s.store.Reserve(s.Context(), s.now, p, out)
	}
	if err != nil {
		return nil, err
	}
	if len(out.Limits) != len(p.Takes) || len(out.Taken) != len(p.Takes) {
		s.Fatalf("got %d statuses and %d takes, want %d of each", len(out.Limits), len(out.Taken), len(p.Takes))
	}
	if s.holds[r.ID] = nil; !out.Denied {
		s.holds[r.ID] = p.Holdings(out)
	}
	return out, nil
}

// settlement asks that every part of a lease stand for so many units; an extend changes none.
func (s *seam) settlement(id weir.LeaseID, verb weir.Verb, units int64) *weir.Update {
	if verb == weir.VerbAdjust {
		s.seq++
	}
	u := &weir.Update{ID: id, Verb: verb, Seq: s.seq, Fingerprint: 2, Lifetime: time.Hour, Memory: 10 * time.Minute}
	for i := range s.holds[id] {
		h := &s.holds[id][i]
		c := weir.Change{Holding: h, Limit: h.Limit, From: h.Cost(), Parts: slices.Clone(h.Parts)}
		for j := range c.Parts {
			if verb != weir.VerbExtend {
				c.Parts[j].Units = units
			}
		}
		c.To = sum(c.Parts)
		u.Changes = append(u.Changes, c)
	}
	return u
}

// settle expects an update to be applied, and keeps what the lease stands for from then on.
func (s *seam) settle(u *weir.Update) *weir.Outcome {
	s.Helper()
	out, err := s.update(u)
	if err != nil {
		s.Fatalf("%s: %v", u.Verb, err)
	}
	s.holds[u.ID] = u.Holdings(out)
	return out
}

func (s *seam) update(u *weir.Update) (*weir.Outcome, error) {
	out := u.Outcome()
	return out, s.store.Update(s.Context(), s.now, u, out)
}

// available is what a limit of an entity has left.
func (s *seam) available(entity, limit string) int64 {
	s.Helper()
	statuses := s.status(weir.Subject{Entity: entity, Resource: resource})
	i := slices.IndexFunc(statuses, func(st weir.LimitStatus) bool { return st.Limit == limit })
	if i < 0 {
		s.Fatalf("got statuses %v, want one of %s", statuses, limit)
	}
	return statuses[i].Available
}

func (s *seam) status(of ...weir.Subject) []weir.LimitStatus {
	s.Helper()
	statuses, err := s.store.Status(s.Context(), s.now, s.judged(of...))
	if err != nil {
		s.Fatalf("status: %v", err)
	}
	return statuses
}
