package memory

import (
	"context"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance"
	"github.com/weir-limiter/weir/driver"
)

// Answer is an outcome and what the lease then stands for; nothing if it was denied or has ended.
type Answer struct {
	*driver.Outcome
	Holdings []driver.Holding
}

// Try plans a reservation and calls a store with the plan.
func Try(b driver.Store, now time.Time, r *conformance.Reservation) (*Answer, error) {
	p, err := r.Plan(context.Background())
	if err != nil {
		return nil, err
	}
	return Take(b, now, p)
}

// Take calls a store with a plan.
func Take(b driver.Store, now time.Time, p *driver.Plan) (*Answer, error) {
	a := &Answer{Outcome: p.Outcome()}
	if err := b.Reserve(context.Background(), now, p, a.Outcome); err != nil {
		return nil, err
	}
	if !a.Denied && !a.Replay {
		a.Holdings = p.Holdings(a.Outcome)
	}
	return a, nil
}

// Settlement is an update given by what the parts of each holding will stand for.
type Settlement struct {
	ID          weir.LeaseID
	Verb        weir.Verb
	Seq         int64
	Fingerprint uint64
	Holdings    []driver.Holding
	Totals      [][]driver.Part
	Limits      []*weir.Limit
	Lifetime    time.Duration
	Memory      time.Duration
	MemorySize  int
}

func (s *Settlement) update() *driver.Update {
	u := &driver.Update{
		ID: s.ID, Verb: s.Verb, Seq: s.Seq, Fingerprint: s.Fingerprint, Lifetime: s.Lifetime,
		Memory: s.Memory, MemorySize: s.MemorySize, Changes: make([]driver.Change, len(s.Holdings)),
	}
	for i := range s.Holdings {
		h, limit := &s.Holdings[i], s.Limits[i]
		c := driver.Change{Holding: h, Limit: limit, From: h.Cost(), To: h.Cost(), Parts: h.Parts}
		if s.Verb != weir.VerbExtend {
			c.Parts = s.Totals[i]
			c.To = (&driver.Take{Parts: c.Parts}).Cost()
		}
		if u.Ends() && limit.Kind == weir.Concurrency {
			c.To = 0
		}
		if c.Used = c.To; s.Verb == weir.VerbComplete && limit.Kind == weir.Concurrency {
			c.Used = c.From
		}
		u.Lifetime = max(u.Lifetime, limit.Timeout)
		u.Changes[i] = c
	}
	return u
}

// Settle calls a store with a settlement.
func Settle(b driver.Store, now time.Time, s *Settlement) (*Answer, error) {
	u := s.update()
	a := &Answer{Outcome: u.Outcome()}
	if err := b.Update(context.Background(), now, u, a.Outcome); err != nil {
		return nil, err
	}
	a.Holdings = u.Holdings(a.Outcome)
	return a, nil
}

// WriteSnapshot writes a snapshot now, as the store does from time to time.
func (s *SnapshotStore) WriteSnapshot() error { return s.writeSnapshot(false) }

// UsageEntries returns the number of entries of usage in memory, those included that are dropped but
// not swept yet.
func (s *Store) UsageEntries() (n int) {
	for i := range s.stripes {
		s.stripes[i].mu.Lock()
		for _, u := range s.stripes[i].usage.dense {
			n += len(u.entries)
		}
		s.stripes[i].mu.Unlock()
	}
	return n
}
