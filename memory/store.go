// Package memory is a store that keeps limits in the process. It enforces every kind, exactly to
// the millisecond, and takes all or nothing across limits and entities.
//
// A [Store] loses everything when its process ends. A [SnapshotStore] also writes its state,
// including leases, to a file from time to time. After a restart it continues from the last
// snapshot, and may admit as much again as was admitted after that snapshot.
//
// # State
//
// A subjectState has the counters of all limits of one subject, which are those of package kernel.
// The subject states of an entity are in one of 256 stripes, chosen by the hash of the entity; each
// stripe has a mutex and a hash table. A reserve or an update locks the stripes of all its subjects
// in ascending order, so that no two calls wait for each other in a cycle. It then checks every
// limit, and only after that changes any. No call waits, does I/O or reads a clock while it has a
// stripe locked.
//
// The store starts no goroutine to remove what is idle: each reserve and each update sweeps a
// bounded number of subject states, one stripe after another.
//
// The configuration is immutable, behind an atomic pointer. A change replaces it with a copy that
// shares what has not changed (configuration.go), and is recorded in the audit.
//
// The usage of the current hour is in the states of the limits, and that of earlier hours in a
// table of each stripe: usage.go explains how.
//
// # Snapshots
//
// A SnapshotStore is a Store with records of its leases and a goroutine that writes the file. A
// snapshot shows one instant without stopping calls while it is copied: freeze.go explains how.
// body.go and codec.go define what is in the file, envelope.go its header and checksum. The file is
// replaced by a rename, and a lock file beside it keeps other stores from using it at the same
// time.
//
// Locks are taken in this order: SnapshotStore.callLock, then either stripes or the lease records,
// never both.
package memory

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/driver/declare"
	"github.com/weir-limiter/weir/internal/hash"
)

// Options tune a [Store]. A nil *Options means all defaults.
type Options struct {
	// Definitions are the limits and entities configured when the store is opened. Default: none.
	Definitions *weir.Definitions
	// UsageDays is the number of days for which usage is kept. A negative value records none.
	// Default: 31.
	UsageDays int
	// UsageEntries is the largest number of entries of usage that are kept: one for each limit of an
	// entity and a resource and each hour in which it was used. If there are more, the oldest hours
	// are dropped. An entry takes some 30 bytes, and each entity and resource some 200 more. The hour
	// of the latest call on a limit is no entry yet: it is kept with the state of the limit. Default:
	// 1,000,000.
	UsageEntries int
	// AuditEvents is the number of changes of the configuration that are kept; of more, the oldest
	// are dropped. A negative value keeps none. Default: 10,000.
	AuditEvents int
}

// withDefaults returns the options with defaults filled in, or every mistake in the numbers, joined.
func (o *Options) withDefaults() (Options, error) {
	var out Options
	if o != nil {
		out = *o
	}
	if out.Definitions == nil {
		out.Definitions = &weir.Definitions{}
	}
	out.UsageDays = cmp.Or(out.UsageDays, usageDaysByDefault)
	out.UsageEntries = cmp.Or(out.UsageEntries, usageEntriesByDefault)
	out.AuditEvents = cmp.Or(out.AuditEvents, auditEventsByDefault)
	if out.UsageEntries < 0 {
		return out, &weir.Error{Code: weir.Invalid, Field: "UsageEntries",
			Value: strconv.Itoa(out.UsageEntries), Reason: "must be above zero"}
	}
	return out, nil
}

// Store is a [driver.Store] in process memory, with a configuration that can be changed. Its
// methods may be called concurrently. It starts no goroutine.
type Store struct {
	seed    hash.Hash
	config  atomic.Pointer[configuration]
	editing sync.Mutex // serializes changes of config, and guards children, declared and given
	stripes [stripeCount]stripe
	sweeper sweeper
	usage   *usageHours // nil if no usage is recorded
	audit   auditLog
	// children are the numbers of the children of entities.
	children map[string]int
	// given is true if the configuration was given as a whole, by the options or WriteConfig, and
	// is not the store's own.
	given bool
	// declared says what of the configuration a limits file manages.
	declared declare.Record
}

// Open returns an empty store, or every mistake in the options, joined; each is a [*weir.Error] with
// code [weir.Invalid].
func Open(o *Options) (*Store, error) {
	options, err := o.withDefaults()
	s := &Store{seed: hash.Hash(rand.Uint64())}
	if err := errors.Join(err, s.configure(options.Definitions)); err != nil {
		return nil, err
	}
	s.given = o != nil && o.Definitions != nil
	s.audit.most = options.AuditEvents
	if options.UsageDays > 0 {
		s.usage = newUsageHours(options.UsageDays, options.UsageEntries)
		for i := range s.stripes {
			s.stripes[i].usage.hours = s.usage
		}
	}
	return s, nil
}

// Traits returns that the store enforces every kind, charges eight ancestors, and never waits.
func (s *Store) Traits() driver.Traits {
	return driver.Traits{
		Kinds:        []weir.Kind{weir.Bucket, weir.Window, weir.Concurrency, weir.Budget},
		CascadeDepth: 8,
		Local:        true,
	}
}

// Close does nothing. The state is lost with the store.
func (s *Store) Close() error { return nil }

// ReadConfig returns what is configured for a subject. It never fails.
func (s *Store) ReadConfig(_ context.Context, of weir.Subject, _ bool) (*weir.Config, error) {
	d := s.config.Load().around(of)
	return d.Config(of), nil
}

// Declared reports whether an entity is declared.
func (s *Store) Declared(entity string) bool {
	_, ok := s.config.Load().entities.part(entity)[entity]
	return ok
}

// WriteConfig replaces the configuration, from the next call on. Mistakes in it are [*weir.Error]s
// with code [weir.Invalid], joined, and leave the old configuration in force.
func (s *Store) WriteConfig(ctx context.Context, now time.Time, d *weir.Definitions) error {
	s.editing.Lock()
	defer s.editing.Unlock()
	before := s.config.Load().whole()
	if err := s.configure(d); err != nil {
		return err
	}
	s.declared = declare.Record{Revision: s.declared.Revision + 1} // of the configuration before
	s.given = true
	s.audit.add(ctx, now, describeConfig(before, s.config.Load().whole())...)
	return nil
}

// configure puts a normalized copy of the definitions in force. The counters rely on valid
// definitions. The caller holds editing, unless the store is not in use yet.
func (s *Store) configure(d *weir.Definitions) error {
	normal, err := d.Normalize()
	if err != nil {
		return err
	}
	s.config.Store(newConfiguration(normal))
	s.children = map[string]int{}
	for _, e := range normal.Entities {
		s.countChild(e.Parent, 1)
	}
	return nil
}

// Resources returns, in order, the resources on which the entity has something in use at now or
// limits of its own. It never fails.
func (s *Store) Resources(_ context.Context, now time.Time, entity string) ([]string, error) {
	d := s.config.Load().around(weir.Subject{Entity: entity})
	return d.ResourcesOf(entity, func(yield func(weir.Subject) bool) {
		of := func(s weir.Subject) bool { return s.Entity == entity }
		s.stripes[s.stripeOf(entity)].inUse(now.UnixMilli(), of, yield)
	}), nil
}

// Status returns the statuses of limits and changes nothing. It never fails.
func (s *Store) Status(
	_ context.Context, now time.Time, of []driver.Judged,
) ([]weir.LimitStatus, error) {
	var out []weir.LimitStatus
	for i := range of {
		out = s.report(out, now.UnixMilli(), &of[i])
	}
	return out, nil
}

// report appends the statuses of a subject's limits, all at the same instant.
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
		if at := it.stateOf(l); at >= 0 {
			available = it.states[at].counter.AvailableAt(now, l.Definition())
		}
		out = append(out, weir.LimitStatus{
			Entity: of.Entity, Resource: of.Resource, Limit: l.Name, Kind: l.Kind,
			Level: of.Level, Capacity: l.Capacity, Available: available, Shadow: l.Shadow,
		})
	}
	return out
}
