package conformance

import (
	"context"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
)

// storeDriver calls a store as the limiter does, without a limiter.
type storeDriver struct {
	T
	opens  StoreHarness
	store  driver.Store
	faulty *faultyStore // wraps the store
	now    time.Time
	holds  map[weir.LeaseID][]driver.Holding
	leases map[weir.LeaseID]*driver.LeaseRecord
	seq    int64
}

// onSeam returns a function that opens a store and plays a case on it.
func onSeam(set Setup, play func(s *storeDriver)) func(T, StoreHarness) {
	return func(t T, h StoreHarness) {
		t.Helper()
		set.Start = begin()
		if h.RealTime {
			set.Start = time.Now()
		}
		faulty := newFaulty(t, h.Open(t, set))
		s := &storeDriver{T: t, opens: h, store: faulty.forLimiter(), faulty: faulty, now: set.Start,
			holds: map[weir.LeaseID][]driver.Holding{}, leases: map[weir.LeaseID]*driver.LeaseRecord{}}
		defer func() {
			if err := s.store.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		}()
		play(s)
	}
}

// configured returns the configuration of a subject as the store has it now.
func (s *storeDriver) configured(ctx context.Context, of weir.Subject) (*weir.Config, error) {
	return s.faulty.ReadConfig(ctx, of, true)
}

// judged returns the limits that apply to subjects.
func (s *storeDriver) judged(of ...weir.Subject) []driver.Judged {
	s.Helper()
	judged := make([]driver.Judged, len(of))
	for i, subject := range of {
		var err error
		if judged[i], err = judge(s.Context(), subject, s.configured); err != nil {
			s.Fatalf("read configuration of %v: %v", subject, err)
		}
	}
	return judged
}

func (s *storeDriver) reservation(charges ...weir.Charge) *Reservation {
	return &Reservation{
		ID: weir.NewLeaseID(s.now), Fingerprint: 1, Charges: charges,
		Lifetime: time.Hour, Memory: 10 * time.Minute, Config: s.configured,
	}
}

// plan returns the plan of a reservation, which must succeed.
func (s *storeDriver) plan(r *Reservation) *driver.Plan {
	s.Helper()
	p, err := r.Plan(s.Context())
	if err != nil {
		s.Fatalf("plan %v: %v", r.Charges, err)
	}
	return p
}

// reserve makes a reservation and expects an answer, whatever it is.
func (s *storeDriver) reserve(charges ...weir.Charge) (*Reservation, *driver.Outcome) {
	s.Helper()
	r := s.reservation(charges...)
	out, err := s.try(s.plan(r))
	if err != nil {
		s.Fatalf("reserve %v: %v", charges, err)
	}
	return r, out
}

// try passes a plan to the store.
func (s *storeDriver) try(p *driver.Plan) (*driver.Outcome, error) {
	s.Helper()
	out := p.Outcome()
	if err := s.store.Reserve(s.Context(), s.now, p, out); err != nil {
		return nil, err
	}
	if len(out.Limits) != len(p.Takes) || len(out.Taken) != len(p.Takes) {
		s.Fatalf("got %d statuses and %d takes, want %d of each", len(out.Limits), len(out.Taken), len(p.Takes))
	}
	if s.holds[p.ID] = nil; !out.Denied {
		s.holds[p.ID] = p.Holdings(out)
		record := p.Record(out)
		s.leases[p.ID] = &record
	}
	return out, nil
}

// settlement returns an update by which every part of a lease stands for a number of units; an
// extend changes none.
func (s *storeDriver) settlement(id weir.LeaseID, verb weir.Verb, units int64) *driver.Update {
	if verb == weir.VerbAdjust {
		s.seq++
	}
	u := &driver.Update{
		ID: id, Verb: verb, Lease: s.leases[id], Seq: s.seq, Fingerprint: 2,
		Lifetime: time.Hour, Memory: 10 * time.Minute,
	}
	for i := range s.holds[id] {
		h := &s.holds[id][i]
		c := driver.Change{Holding: h, Limit: h.Limit, From: h.Cost(), Parts: slices.Clone(h.Parts)}
		for j := range c.Parts {
			if verb != weir.VerbExtend {
				c.Parts[j].Units = units
			}
		}
		c.To = sum(c.Parts)
		c.Used = c.To
		u.Changes = append(u.Changes, c)
	}
	return u
}

// settle expects an update to be applied, and records what the lease stands for afterwards.
func (s *storeDriver) settle(u *driver.Update) *driver.Outcome {
	s.Helper()
	out, err := s.update(u)
	if err != nil {
		s.Fatalf("%s: %v", u.Verb, err)
	}
	s.holds[u.ID] = u.Holdings(out)
	s.leases[u.ID].Version = out.Version
	return out
}

func (s *storeDriver) update(u *driver.Update) (*driver.Outcome, error) {
	out := u.Outcome()
	return out, s.store.Update(s.Context(), s.now, u, out)
}

// available returns what a limit of an entity has available.
func (s *storeDriver) available(entity, limit string) int64 {
	s.Helper()
	statuses := s.status(weir.Subject{Entity: entity, Resource: resource})
	i := slices.IndexFunc(statuses, func(st weir.LimitStatus) bool { return st.Limit == limit })
	if i < 0 {
		s.Fatalf("got statuses %v, want one of %s", statuses, limit)
	}
	return statuses[i].Available
}

func (s *storeDriver) status(of ...weir.Subject) []weir.LimitStatus {
	s.Helper()
	statuses, err := s.store.Status(s.Context(), s.now, s.judged(of...))
	if err != nil {
		s.Fatalf("status: %v", err)
	}
	return statuses
}
