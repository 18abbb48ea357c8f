package kernel_test

import (
	"context"
	"encoding/json"
	"iter"
	"sync"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/kernel"
)

// rowStore keeps limits as a database would: in rows of text that each call reads and writes under
// one lock. It shows that such a store needs nothing but the kernel and the interface of package
// driver.
type rowStore struct {
	mu     sync.Mutex
	config *weir.Definitions
	rows   map[rowKey]string
}

type rowKey struct {
	weir.Subject
	name string
	kind weir.Kind
}

// row is the state of a limit as text.
type row struct {
	Rate    kernel.Rate
	Balance int64
	Seen    int64
	Lengths []int64
	Entries [][]kernel.Entry
	Periods []kernel.Period
}

// loadedCounter is a counter that a call has loaded.
type loadedCounter struct {
	kernel.Counter
	key   rowKey
	fresh bool
	cost  int64 // units to take
}

// load makes the counter of a limit from its row, or a new one if there is no row.
func (s *rowStore) load(now int64, of weir.Subject, l *weir.Limit) loadedCounter {
	key := rowKey{of, l.Name, l.Kind}
	text, ok := s.rows[key]
	if !ok {
		return loadedCounter{Counter: newCounter(now, l), key: key, fresh: true}
	}
	var r row
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		panic(err)
	}
	occupancy := kernel.Occupancy{SeenMS: r.Seen}
	for i := range r.Lengths {
		q := kernel.LengthQueue{LengthMS: r.Lengths[i], Queue: kernel.NewQueue(r.Entries[i])}
		occupancy.Queues = append(occupancy.Queues, q)
	}
	var c kernel.Counter
	switch l.Kind {
	case weir.Window:
		c = &kernel.Window{Occupancy: occupancy}
	case weir.Concurrency:
		c = &kernel.Concurrency{Occupancy: occupancy}
	case weir.Budget:
		c = &kernel.Budget{SeenMS: r.Seen, Periods: r.Periods}
	default:
		c = &kernel.Bucket{Rate: r.Rate, BalanceMilli: r.Balance, SeenMS: r.Seen}
	}
	return loadedCounter{Counter: c, key: key}
}

func (s *rowStore) save(l loadedCounter) {
	var r row
	occupancy := func(o *kernel.Occupancy) {
		r.Seen = o.SeenMS
		for i := range o.Queues {
			r.Lengths = append(r.Lengths, o.Queues[i].LengthMS)
			r.Entries = append(r.Entries, o.Queues[i].Entries())
		}
	}
	switch c := l.Counter.(type) {
	case *kernel.Bucket:
		r.Rate, r.Balance, r.Seen = c.Rate, c.BalanceMilli, c.SeenMS
	case *kernel.Window:
		occupancy(&c.Occupancy)
	case *kernel.Concurrency:
		occupancy(&c.Occupancy)
	case *kernel.Budget:
		r.Seen, r.Periods = c.SeenMS, c.Periods
	}
	text, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	s.rows[l.key] = string(text)
}

func (s *rowStore) Traits() driver.Traits {
	return driver.Traits{
		Kinds: []weir.Kind{weir.Bucket, weir.Window, weir.Concurrency, weir.Budget}, CascadeDepth: 8,
		Local: true,
	}
}

func (s *rowStore) Close() error { return nil }

func (s *rowStore) ReadConfig(_ context.Context, of weir.Subject, _ bool) (*weir.Config, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.config.Config(of), nil
}

func (s *rowStore) WriteConfig(_ context.Context, _ time.Time, d *weir.Definitions) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	normal, err := d.Normalize()
	if err == nil {
		s.config = normal
	}
	return err
}

func (s *rowStore) Resources(_ context.Context, now time.Time, entity string) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.config.ResourcesOf(entity, s.inUse(now.UnixMilli())), nil
}

func (s *rowStore) Entities(_ context.Context, now time.Time, resource string) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.config.EntitiesOn(resource, s.inUse(now.UnixMilli())), nil
}

func (s *rowStore) inUse(now int64) iter.Seq[weir.Subject] {
	return func(yield func(weir.Subject) bool) {
		for key := range s.rows {
			c := s.load(now, key.Subject, &weir.Limit{Name: key.name, Kind: key.kind})
			if c.InUse(now) && !yield(key.Subject) {
				return
			}
		}
	}
}

func (s *rowStore) Reserve(
	_ context.Context, now time.Time, p *driver.Plan, out *driver.Outcome,
) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	ms := now.UnixMilli()
	out.At = time.UnixMilli(ms)
	counters := make([]loadedCounter, len(p.Takes))
	for i := range p.Takes {
		t, cost := p.Takes[i], p.Takes[i].Cost()
		c := s.load(ms, t.Subject, t.Limit)
		c.Redefine(ms, t.Limit.Definition())
		available, retry, fits := kernel.Judge(c, ms, cost, t.Ceiling, t.Limit.Capacity)
		out.Limits[i] = weir.LimitStatus{
			Entity: t.Entity, Resource: t.Resource, Limit: t.Limit.Name, Kind: t.Limit.Kind, Level: t.Level,
			Capacity: t.Ceiling, Available: available, Requested: cost,
			Exceeded: !fits, Shadow: t.Limit.Shadow, RetryAfter: retry,
		}
		out.Denied = out.Denied || !fits && !t.Limit.Shadow
		if c.cost = cost; !fits && t.Limit.Shadow && !c.CanCount(ms, kernel.Change{To: cost}) {
			c.cost = 0
			if t.Limit.Kind != weir.Concurrency {
				out.Taken[i].Units = 0
			}
		}
		counters[i] = c
	}
	for i := range counters {
		c := counters[i]
		if out.Denied {
			if !c.fresh {
				s.save(c)
			}
			continue
		}
		out.Limits[i].Available -= c.cost
		if piece, ok := c.Take(ms, c.cost); ok {
			out.Taken[i].Pieces = append(out.Taken[i].Pieces, piece)
		}
		s.save(c)
	}
	return nil
}

func (s *rowStore) Update(
	_ context.Context, now time.Time, u *driver.Update, out *driver.Outcome,
) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	ms := now.UnixMilli()
	out.At = time.UnixMilli(ms)
	for i := range u.Changes {
		c := &u.Changes[i]
		claim := kernel.Change{Pieces: c.Holding.Pieces, From: c.From, To: c.To}
		if c.To <= c.From || s.load(ms, c.Holding.Subject, c.Limit).CanCount(ms, claim) {
			continue
		}
		if !c.Limit.Shadow {
			return &weir.Error{Code: weir.Invalid, Field: "totals." + c.Limit.Name, Reason: "is too much"}
		}
		out.Taken[i].Units = c.From
	}
	for i := range u.Changes {
		c, taken := &u.Changes[i], &out.Taken[i]
		counter := s.load(ms, c.Holding.Subject, c.Limit)
		taken.Pieces = c.Holding.Pieces
		slots, held := counter.Counter.(*kernel.Concurrency)
		switch {
		case u.Verb != weir.VerbExtend:
			counter.Redefine(ms, c.Limit.Definition())
			taken.Pieces = counter.Apply(ms, kernel.Change{
				Pieces: c.Holding.Pieces, From: c.From, To: taken.Units, Ends: u.Ends(),
			})
			s.save(counter)
		case held && !counter.fresh:
			counter.Redefine(ms, c.Limit.Definition())
			taken.Pieces = slots.Extend(ms, c.Holding.Pieces)
			s.save(counter)
		}
	}
	return nil
}

func (s *rowStore) Status(
	_ context.Context, now time.Time, of []driver.Judged,
) (out []weir.LimitStatus, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range of {
		for k := range of[i].Limits {
			subject, l := of[i].Subject, &of[i].Limits[k]
			out = append(out, weir.LimitStatus{
				Entity: subject.Entity, Resource: subject.Resource, Limit: l.Name, Kind: l.Kind,
				Level: of[i].Level, Capacity: l.Capacity, Shadow: l.Shadow,
				Available: s.load(now.UnixMilli(), subject, l).AvailableAt(now.UnixMilli(), l.Definition()),
			})
		}
	}
	return out, nil
}

func TestCountersKeptInRows(t *testing.T) {
	t.Parallel()
	conformance.TestStore(t, conformance.StoreHarness{
		Open: func(t conformance.T, setup conformance.Setup) driver.Store {
			s := &rowStore{rows: make(map[rowKey]string)}
			if err := s.WriteConfig(context.Background(), time.Time{}, setup.Definitions); err != nil {
				t.Fatalf("definitions: %v", err)
			}
			return s
		},
	})
}
