// Package dynamodb stores limits, entities and balances in one DynamoDB table. Programs that use
// the Python library zae-limiter may share the table.
//
// A [Store] implements [driver.Store] on one namespace of a table; [Open] opens it. A [Table]
// creates, describes and deletes tables and their namespaces. docs/dynamodb.md describes the table,
// the writes and their costs.
//
// # The path of a reservation
//
// The limiter plans a reservation: it resolves the limits that apply and calls [Store.Reserve] with
// the costs of each limit.
//
//  1. Charge. Reserve makes one item charge for each subject of the plan. A bucket item holds
//     all limits of a subject on one shard; on a subject with several shards the charge picks
//     one at random. If the process remembers a denial that covers the request, Reserve denies
//     it without a write.
//  2. Queue. Each charge waits in the queue of its item. The process has one write of an item in
//     flight at a time; the charges that arrive during a write go with the next one.
//  3. Write. The queue sends one UpdateItem without having read the item. Its condition requires
//     the balances and definitions that the process believes the item to have
//     (docs/adr/0016-fast-writes.md).
//  4. Failed condition. If another process has changed the item, the condition fails and
//     DynamoDB returns the item as it is.
//  5. Image. The queue makes an image of that item: the balances with what they have gained
//     since, and what this process knows beyond the stored values.
//  6. Next write. By the image the queue denies a charge, or sends the next write: a speculative
//     one, one that also refills, or one that creates the item. After four rounds it denies the
//     charge as contended.
//
// If a shard has too little, the charge reads the other shards and tries those that have enough, or
// takes parts from several (docs/adr/0019-new-shards.md). If the configuration differs from what
// the plan assumed, Reserve returns a [*driver.StaleError] and the limiter plans again.
//
// Compensation: the items of a reservation are written at the same time, not in one transaction. If
// one charge is denied or fails, the units that the other charges took are refunded with the next
// write of their items, after the answer. Until then other processes see them as taken. With
// [Options.Transactional] the items are written in one transaction instead.
//
// Reservation without a plan: a limiter without a fresh configuration calls
// [Store.ReserveUnplanned] and reads the configuration at the same time
// (docs/adr/0023-unplanned-reservations.md). The store takes the units by the limits that the items
// have. If the plan made from the configuration takes exactly the same, the reservation stands;
// otherwise the limiter returns the units with a [driver.Update] that is marked unplanned, and
// reserves with the plan.
//
// # Leases
//
// Each lease has a slot in a lease record, an item that every process finds by the lease ID
// (docs/adr/0036-leases-in-the-table.md). Reserve writes the slot after the buckets, and before the
// answer. An update (adjust, complete, cancel, extend) charges the buckets, then writes the slot,
// then refunds. The slot's version decides between processes. With [Options.ProcessLeases] there
// are no records.
//
// An update of a lease goes through the same queues and is never denied.
// A write whose answer was lost may have been applied. The store does not send it again by itself.
// If the caller repeats the call, a charge may count twice. A refund may be missing, but no unit is
// ever refunded twice (docs/adr/0018-settling-dynamodb.md).
//
// # State and locks
//
// For each subject the process keeps what it last saw of the items (their images), the parent, the
// shard count and remembered denials. All of it is a cache: the conditions of the writes decide.
// The image from which an item is written belongs to the goroutine that runs the item's queue. A
// mutex for each item guards the queue and the image that others may read, one for each subject the
// rest. No mutex is locked during a call to DynamoDB.
//
// After a crash the table is as it was last written. Units that an unfinished call had taken stay
// charged. Other processes settle the leases.
//
// # Packages
//
// Below dynamodb/internal, bucketitem writes bucket items, leaserecord writes lease records, config
// reads the configuration, admin changes and lists it, tables creates tables and namespaces, and
// client makes the calls to DynamoDB. Package internal/schema encodes and decodes the items.
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
	"github.com/weir-limiter/weir/dynamodb/internal/leaserecord"
	"github.com/weir-limiter/weir/dynamodb/internal/oldtable"
	"github.com/weir-limiter/weir/dynamodb/internal/tables"
	"github.com/weir-limiter/weir/internal/schema"
)

// Options say how a table is reached and used. Nil means all defaults.
type Options struct {
	// Region is the table's region. Default: the region that the SDK's own chain finds.
	Region string
	// Endpoint is the address of another DynamoDB than Amazon's, such as DynamoDB Local. Default:
	// the endpoint of the region.
	Endpoint string
	// Namespace is the name of a namespace of the table. Default: "default".
	Namespace string
	// Config is the SDK's configuration, with credentials. Default: the configuration that the
	// SDK's own chain finds.
	Config *aws.Config
	// HTTP is the client that sends the calls. Default: the SDK's.
	HTTP *http.Client
	// Client changes the options of the SDK's client, after all other options. Default: nothing.
	Client []func(*dynamodb.Options)
	// Transactional makes each reservation with BatchGetItem and TransactWriteItems. It is atomic
	// over several items, at twice the write units and a consistent read of each item. Default:
	// false.
	Transactional bool
	// ProcessLeases keeps leases only in the process that made them: no other process can settle
	// them. It saves a write unit for each reserve and each update. Default: false, in the table.
	ProcessLeases bool
	// NoSpeculation reads each bucket item before it is written. Default: false.
	NoSpeculation bool
	// ReadOnly refuses every call that would change the table, with [weir.Unsupported]. Default:
	// false.
	ReadOnly bool
	// Principal is the name under which the audit records changes of the configuration. Default:
	// the caller's ARN.
	Principal string
	// WriteTimeout is the time after which the outcome of an unanswered write counts as unknown.
	// Default: two seconds.
	WriteTimeout time.Duration
	// Now returns the process's time, which is compared with the table's clock. Default:
	// [time.Now].
	Now func() time.Time
	// OnError is called with errors that occur outside of calls. Default: they are ignored.
	OnError func(error)
}

// Store is a [driver.Store] on one namespace of one table. All methods may be called concurrently.
type Store struct {
	admin      *admin.Admin
	client     *client.Client
	config     *config.Reader
	buckets    *bucketitem.Store
	leases     *leaserecord.Store // nil if leases are kept in the process
	hasLeases  bool               // the namespace had lease records when it was opened
	options    Options
	running    *client.Tasks         // calls, item queues, and background work
	unfinished byLease[*leaseUpdate] // updates that failed in part or whole
	attempts   byLease[*attempt]
	probe      probe
}

// newStore returns a store on the namespace with the given ID.
func newStore(c *client.Client, namespace string, o Options) *Store {
	s := &Store{client: c, options: o, running: client.NewTasks()}
	s.config = &config.Reader{Client: c, Namespace: namespace}
	s.buckets = bucketitem.New(s.config, s.running, bucketitem.Options{
		NoSpeculation: o.NoSpeculation, WriteTimeout: o.WriteTimeout, OnError: o.OnError,
	})
	if !o.ProcessLeases {
		s.leases = leaserecord.New(c, namespace, s.running, o.WriteTimeout)
	}
	s.admin = admin.New(s.buckets, admin.Options{
		Principal: o.Principal, OnError: o.OnError,
	})
	return s
}

// Traits says that the store has buckets only, one level of cascade, and no shadow limits, and that
// parents need not be declared: the Python library accepts any name as a parent.
func (s *Store) Traits() driver.Traits {
	return driver.Traits{
		Kinds: []weir.Kind{weir.Bucket}, CascadeDepth: 1, NoShadow: true, UndeclaredParents: true,
		NoLeases: s.leases == nil, LeaseRows: s.leases != nil,
	}
}

// Close waits until all refunds have been written. Later calls fail with [weir.Unavailable].
func (s *Store) Close() error {
	s.running.Close()
	return nil
}

// ReadConfig returns the configuration of a subject, with one BatchGetItem; a consistent read costs
// twice as much. The version is the number of this process's last change of the configuration
// before the read. ReadConfig fails if the subject is disabled, if the strongest level has limits
// that weir does not support, and, with [weir.NotFound], if the namespace was deleted.
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

// Stats are counts of a store since it was opened.
type Stats struct {
	// Contended counts reservations that were denied because other writers won every round.
	Contended int64
	// Ambiguous counts the amounts of writes whose answer was lost: they may or may not have been
	// charged or refunded. AmbiguousMilli is their sum in milli-units, and so the most that may be
	// over-charged; no unit is ever refunded twice.
	Ambiguous, AmbiguousMilli int64
	// Doublings counts the doublings of a bucket's shards by this process.
	Doublings int64
	// Probes counts the reads of the table by [Store.Ready].
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

// Counts yields the counts of [Stats] with their metric names. Amounts are in units.
func (s *Store) Counts(yield func(name, help string, read func() int64) bool) {
	for _, c := range []struct {
		name, help string
		read       func() int64
	}{
		{"contended", "Reservations denied because other writers won every retry.",
			s.buckets.Counts.Contended.Load},
		{"ambiguous", "Charges and refunds that may or may not have been made, because the answer to the write was lost.",
			s.buckets.Counts.AmbiguousCalls.Load},
		{"ambiguous_units", "Units of these charges and refunds: at most this much is charged in excess.",
			func() int64 { return s.buckets.Counts.AmbiguousMilli.Load() / 1000 }},
		{"doublings", "Times that the shard count of a bucket was doubled.",
			s.buckets.Counts.Doublings.Load},
		{"probes", "Reads that checked whether the table can be used.",
			s.buckets.Counts.Probes.Load},
	} {
		if !yield(c.name, c.help, c.read) {
			return
		}
	}
}

// ClockOffset returns the duration to add to the process's clock to get the table's, by the answers
// so far. It is 0 if the two are within two seconds. It does not block.
func (s *Store) ClockOffset() time.Duration { return s.client.Clock.Offset() }

// Open opens one namespace of a table. It only reads. It returns a [*weir.Error] that says what to
// do if the table is missing or not ready, has other keys or items that this weir cannot read, or
// does not have the namespace. ctx bounds only the opening.
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
	s.buckets.Old = oldtable.NewSource(c, v, n.ID)
	if s.leases != nil {
		if s.hasLeases, err = s.leases.Recorded(ctx); err != nil {
			return nil, err
		}
	}
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
	// openTimeout bounds the reads that open a table.
	openTimeout = 15 * time.Second
	// writeTimeout is the default of [Options.WriteTimeout].
	writeTimeout = 2 * time.Second
)
