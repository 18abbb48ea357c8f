// Package dynamodb keeps limits, entities and balances on one DynamoDB table, which it may share
// with programs that use the Python library zae-limiter.
//
// A [Store] reserves on one namespace of a table: it makes a charge on each subject of a plan, by
// the queue of a bucket item, and refunds what was taken in vain. The rooms below
// dynamodb/internal do the rest: bucketitem writes bucket items, admin changes and lists what is
// configured, config reads it, tables looks after the table and its namespaces, and client makes
// the calls.
package dynamodb

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/dynamodb/internal/admin"
	"github.com/weir-limiter/weir/dynamodb/internal/bucketitem"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/dynamodb/internal/config"
	"github.com/weir-limiter/weir/dynamodb/internal/tables"
	"github.com/weir-limiter/weir/internal/schema"
)

// Options say how a table is reached and used. Nil means all defaults.
type Options struct {
	// Region is the table's. Default: what the SDK's own chain finds.
	Region string
	// Endpoint is the address of a DynamoDB that is not Amazon's, such as DynamoDB Local. Default:
	// that of the region.
	Endpoint string
	// Namespace is the name of the world of entities and limits in the table. Default: "default".
	Namespace string
	// Config is the SDK's configuration, with credentials. Default: what the SDK's own chain finds.
	Config *aws.Config
	// HTTP is the client that calls go through. Default: the SDK's.
	HTTP *http.Client
	// Client tunes the SDK's client, after everything else. Default: nothing.
	Client []func(*dynamodb.Options)
	// Transactional takes BatchGetItem and TransactWriteItems for every reservation: atomic over
	// items, at four times the cost. Default: false.
	Transactional bool
	// NoSpeculation reads each bucket item before it is written. Default: false.
	NoSpeculation bool
	// ReadOnly refuses whatever would change the table, with [weir.Unsupported]. Default: false.
	ReadOnly bool
	// Principal is who changes configuration, for the audit. Default: the caller's ARN.
	Principal string
	// WriteTimeout is how long a write may take until its outcome counts as unknown.
	// Default: two seconds.
	WriteTimeout time.Duration
	// Now reads the clock that the table's is compared with. Default: [time.Now].
	Now func() time.Time
	// OnError is told of what goes wrong outside of calls. Default: nobody.
	OnError func(error)
}

// Store is a [driver.Store] on one namespace of one table. All methods may be called at once.
type Store struct {
	admin      *admin.Admin
	client     *client.Client
	config     *config.Reader
	buckets    *bucketitem.Store
	options    Options
	running    *client.Tasks         // calls, item queues, and what is done in the background
	unfinished byLease[*leaseUpdate] // updates that failed
	attempts   byLease[*attempt]
	probe      probe
}

// newStore makes a store on a namespace, by its ID.
func newStore(c *client.Client, namespace string, o Options) *Store {
	s := &Store{client: c, options: o, running: client.NewTasks()}
	s.config = &config.Reader{Client: c, Namespace: namespace}
	s.buckets = bucketitem.New(s.config, s.running, bucketitem.Options{
		NoSpeculation: o.NoSpeculation, WriteTimeout: o.WriteTimeout, OnError: o.OnError,
	})
	s.admin = admin.New(s.buckets, admin.Options{
		Principal: o.Principal, OnError: o.OnError,
	})
	return s
}

// Traits says that there are buckets alone, one level of cascade, and no shadow limits, and that
// parents need not be declared: the Python library makes children of whatever is named.
func (s *Store) Traits() driver.Traits {
	return driver.Traits{
		Kinds: []weir.Kind{weir.Bucket}, CascadeDepth: 1, NoShadow: true, UndeclaredParents: true,
	}
}

// Close waits until what was given back has been written. Calls that come later are unavailable.
func (s *Store) Close() error {
	s.running.Close()
	return nil
}

// ReadConfig returns what is configured for a subject, in one read; a consistent one costs twice as
// much. The version is the number of the last change by this process before the read. It fails
// where the strongest level says what weir cannot judge by, and where the subject is switched off.
// If the namespace was deleted it fails with [weir.NotFound].
func (s *Store) ReadConfig(
	ctx context.Context, of weir.Subject, consistent bool,
) (*weir.Config, error) {
	if err := s.running.EnterNested(); err != nil {
		return nil, err
	}
	defer s.running.End()
	version := s.buckets.ConfigChanges.Latest()
	name := schema.NamespaceKey(s.options.Namespace)
	c, err := s.config.ReadSubject(ctx, of, consistent, name)
	if err != nil {
		return nil, err
	}
	if err := s.checkNamespaceItem(c.Others[0]); err != nil {
		return nil, err
	}
	if err := c.Chargeable(); err != nil {
		return nil, err
	}
	out := &weir.Config{
		Parent: c.Parent(), Cascade: c.Cascades(), Known: c.Declared(), OnUnavailable: c.OnUnavailable(),
		Version: version,
	}
	for _, l := range c.Levels {
		if len(l.Limits) > 0 {
			out.Levels = append(out.Levels, weir.LevelLimits{Level: l.Level, Limits: l.Limits})
		}
	}
	return out, nil
}

// Stats are what a store has counted since it was opened.
type Stats struct {
	// Contended counts reservations that were denied since other writers were quicker, four times.
	Contended int64
	// Ambiguous counts amounts of which nobody knows whether a write that was not answered has
	// charged them, or given them back; AmbiguousMilli is how much they come to, in milli-units. So
	// much may be over-charged at most; nothing is ever given back twice.
	Ambiguous, AmbiguousMilli int64
	// Doublings counts how often this process doubled the shards of a bucket.
	Doublings int64
	// Probes counts the reads by which [Store.Ready] asked the table.
	Probes int64
}

// Stats returns the counts so far.
func (s *Store) Stats() Stats {
	return Stats{
		Contended: s.buckets.Counts.Contended.Load(), Ambiguous: s.buckets.Counts.AmbiguousCalls.Load(),
		AmbiguousMilli: s.buckets.Counts.AmbiguousMilli.Load(), Doublings: s.buckets.Counts.Doublings.Load(),
		Probes: s.buckets.Counts.Probes.Load(),
	}
}

// Counts yields the counts of [Stats] by the names that metrics have, in units where they are
// amounts.
func (s *Store) Counts(yield func(name, help string, read func() int64) bool) {
	for _, c := range []struct {
		name, help string
		read       func() int64
	}{
		{"contended", "Reservations denied since other writers were quicker.", s.buckets.Counts.Contended.Load},
		{"ambiguous", "Amounts of which nobody knows whether a write without an answer charged them or gave them back.",
			s.buckets.Counts.AmbiguousCalls.Load},
		{"ambiguous_units", "What these amounts come to; so much may be over-charged at most.",
			func() int64 { return s.buckets.Counts.AmbiguousMilli.Load() / 1000 }},
		{"doublings", "Times that the shards of a bucket were doubled.", s.buckets.Counts.Doublings.Load},
		{"probes", "Reads that asked the table whether it can be used.", s.buckets.Counts.Probes.Load},
	} {
		if !yield(c.name, c.help, c.read) {
			return
		}
	}
}

// ClockOffset returns what must be added to the process's clock to have the table's, as far as the
// answers so far tell: 0 within two seconds. It never waits.
func (s *Store) ClockOffset() time.Duration { return s.client.Clock.Offset() }

// Open opens one namespace of a table. It only reads: a table that is missing or not ready, has
// other keys or items that this weir cannot read, or does not know the namespace is a [*weir.Error]
// that says what to do about it. The context bounds the opening alone.
func Open(ctx context.Context, table string, o *Options) (*Store, error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	c, err := connect(ctx, table, o)
	if err != nil {
		return nil, err
	}
	var own Options
	if o != nil {
		own = *o
	}
	own.Namespace = cmp.Or(own.Namespace, schema.DefaultNamespace)
	own.WriteTimeout = cmp.Or(own.WriteTimeout, writeTimeout)
	own.Now = c.Now
	if err := tables.CheckNamespace("store.namespace", own.Namespace); err != nil {
		return nil, err
	}
	t := &tables.Table{Client: c}
	if err := t.CheckTable(ctx); err != nil {
		return nil, err
	}
	v, err := t.ReadVersion(ctx)
	if err != nil {
		return nil, err
	}
	if err := tables.CheckVersion(table, v); err != nil {
		return nil, err
	}
	n, err := t.ResolveNamespace(ctx, own.Namespace)
	if err != nil {
		return nil, err
	}
	s := newStore(c, n.ID, own)
	s.probe.passed(c.Now())
	return s, nil
}

// connect returns a client for a table. It sends nothing yet.
func connect(ctx context.Context, table string, o *Options) (*client.Client, error) {
	if o == nil {
		o = &Options{}
	}
	return client.New(ctx, table, &client.Options{
		Region: o.Region, Endpoint: o.Endpoint, Config: o.Config, HTTP: o.HTTP, Tune: o.Client,
		ReadOnly: o.ReadOnly, Now: o.Now,
	})
}

const (
	// openTimeout bounds the reads with which a table is opened, where the caller has no bound.
	openTimeout = 15 * time.Second
	// writeTimeout is the default of [Options.WriteTimeout].
	writeTimeout = 2 * time.Second
)
