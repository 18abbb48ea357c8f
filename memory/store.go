// Package memory keeps limits in the process: every kind, exact to the millisecond, all or nothing
// across limits and entities.
//
// A [Store] forgets everything with its process. A [SnapshotStore] also writes its state, leases
// included, to a file from time to time, so that a restart admits at most what was admitted since
// the last snapshot on top of what the limits allow.
//
// How it works: the states of one (entity, resource) make an item, and the items of one entity lie
// in one of 256 stripes, each with a lock. A call locks the stripes it needs in ascending order,
// judges every limit, and only then changes any. Nothing waits under a lock, and no call reads a
// clock. What is no longer in use goes by the way: every call sweeps a few items.
package memory

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/internal/hash"
)

// Options tune a [Store]. Nil means all defaults.
type Options struct {
	// Definitions are the limits and entities configured at first. Default: none.
	Definitions *weir.Definitions
}

// Store is a [driver.Store] in process memory, with a configuration of its own that can be replaced
// at once. Its methods may be called at once; it starts no goroutine.
type Store struct {
	seed    hash.Hash
	config  atomic.Pointer[weir.Definitions]
	editing sync.Mutex // held while the configuration is changed
	stripes [stripeCount]stripe
	sweeper sweeper
}

// Open returns an empty store, or the mistakes in the definitions, joined; each is a [*weir.Error]
// with code [weir.Invalid].
func Open(o *Options) (*Store, error) {
	d := &weir.Definitions{}
	if o != nil && o.Definitions != nil {
		d = o.Definitions
	}
	s := &Store{seed: hash.Hash(rand.Uint64())}
	if err := s.configure(d); err != nil {
		return nil, err
	}
	return s, nil
}

// Traits says that the store enforces every kind, eight ancestors deep, exactly and without
// waiting.
func (s *Store) Traits() driver.Traits {
	return driver.Traits{
		Kinds:        []weir.Kind{weir.Bucket, weir.Window, weir.Concurrency, weir.Budget},
		CascadeDepth: 8,
		Local:        true,
		EntitySlash:  true,
	}
}

// Close does nothing: the state goes with the store.
func (s *Store) Close() error { return nil }

// ReadConfig returns what is configured for a subject. It never fails.
func (s *Store) ReadConfig(_ context.Context, of weir.Subject, _ bool) (*weir.Config, error) {
	return s.config.Load().Config(of), nil
}

// Declared reports whether an entity is declared.
func (s *Store) Declared(entity string) bool {
	_, ok := s.config.Load().Entities[entity]
	return ok
}

// WriteConfig replaces the configuration with the next call. Mistakes in it are [*weir.Error]s with
// code [weir.Invalid], joined, and leave the old one in force.
func (s *Store) WriteConfig(_ context.Context, _ time.Time, d *weir.Definitions) error {
	s.editing.Lock()
	defer s.editing.Unlock()
	return s.configure(d)
}

// configure takes over a normalized copy: the states rely on sound definitions.
func (s *Store) configure(d *weir.Definitions) error {
	normal, err := d.Normalize()
	if err != nil {
		return err
	}
	s.config.Store(normal)
	return nil
}

// Resources returns, in order, the resources on which the entity has something in use at now or
// limits of its own. It never fails.
func (s *Store) Resources(_ context.Context, now time.Time, entity string) ([]string, error) {
	d := s.config.Load()
	return d.ResourcesOf(entity, func(yield func(weir.Subject) bool) {
		of := func(s weir.Subject) bool { return s.Entity == entity }
		s.stripes[s.stripeOf(entity)].inUse(now.UnixMilli(), of, yield)
	}), nil
}

// Status reports limits without changing anything. It never fails.
func (s *Store) Status(
	_ context.Context, now time.Time, of []driver.Judged,
) ([]weir.LimitStatus, error) {
	var out []weir.LimitStatus
	for i := range of {
		out = s.report(out, now.UnixMilli(), &of[i])
	}
	return out, nil
}

// report appends the status of a subject's limits, all of one instant.
func (s *Store) report(
	out []weir.LimitStatus, now int64, of *driver.Judged,
) []weir.LimitStatus {
	at := &s.stripes[s.stripeOf(of.Entity)]
	at.mu.Lock()
	defer at.mu.Unlock()
	it := at.items.find(of.Subject, s.hashOf(of.Subject))
	for i := range of.Limits {
		l := &of.Limits[i]
		available := l.Capacity
		if st := it.stateOf(l); st != nil {
			available = st.counter.AvailableAt(now, l.Definition())
		}
		out = append(out, weir.LimitStatus{
			Entity: of.Entity, Resource: of.Resource, Limit: l.Name, Kind: l.Kind,
			Level: of.Level, Capacity: l.Capacity, Available: available, Shadow: l.Shadow,
		})
	}
	return out
}
