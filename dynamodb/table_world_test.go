package dynamodb

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/sharding"
	"github.com/weir-limiter/weir/limiter"
)

// mistakeCase checks that a mistake is not made on DynamoDB. It also runs with each fault that it
// should catch injected between weir and the table.
type mistakeCase struct {
	// name begins with the name of the mistake in [conformance.Mistakes], if it is one of those.
	name string
	play func(w *tableWorld)
}

// tableWorld is a namespace of a table in which several processes share a virtual clock.
type tableWorld struct {
	conformance.T
	clock *conformance.Clock
	table *Table
	space string
	// wrong is the fault injected into every process except eye; nil for none.
	wrong *wrong
	// eye is a process that only reads, writes raw items and sets limits.
	eye  *process
	open []*process
}

// process is one limiter with a store of its own.
type process struct {
	*limiter.Limiter
	store *Store
	w     *tableWorld
	log   *writeLog
}

// processOptions are the options of a process.
type processOptions struct {
	store   Options
	limiter limiter.Options
}

// testStart is the time at which the worlds begin.
var testStart = time.Date(2026, 3, 4, 5, 6, 0, 0, time.UTC)

// inTableWorld runs a case in a namespace of its own.
func inTableWorld(t conformance.T, table *Table, wrong *wrong, play func(w *tableWorld)) {
	t.Helper()
	w := &tableWorld{T: t, clock: conformance.NewClock(testStart), table: table, wrong: wrong}
	w.space = "w" + strings.ToLower(weir.NewLeaseID(time.Now()).String())
	if _, _, err := table.RegisterNamespace(t.Context(), w.space); err != nil {
		t.Fatalf("register: %v", err)
	}
	defer func() {
		for _, p := range w.open {
			_ = p.Close() // it may be closed already
		}
	}()
	w.eye = w.start(processOptions{}, nil)
	play(w)
}

// process starts another process.
func (w *tableWorld) process(o ...processOptions) *process {
	w.Helper()
	if len(o) == 0 {
		o = []processOptions{{}}
	}
	return w.start(o[0], w.wrong)
}

// start opens a limiter on a store of its own. The timeouts are long enough for a slow machine.
func (w *tableWorld) start(o processOptions, wrong *wrong) *process {
	w.Helper()
	s := o.store
	s.Config, s.Endpoint = w.table.Options.Config, w.table.Options.Endpoint
	s.Namespace, s.Principal = w.space, "test"
	if s.WriteTimeout == 0 {
		s.WriteTimeout = time.Minute
	}
	p := &process{w: w, log: &writeLog{}}
	s.Client = append(s.Client, p.log.install)
	if wrong != nil {
		s.Client = append(s.Client, wrong.install)
	}
	var err error
	if p.store, err = Open(w.Context(), w.table.Name, &s); err != nil {
		w.Fatalf("open: %v", err)
	}
	l := o.limiter
	if l.Now == nil {
		l.Now = w.clock.Now
	}
	if l.StoreTimeout == 0 {
		l.StoreTimeout = time.Minute
	}
	var b driver.Store = p.store
	if wrong != nil && wrong.store != nil {
		b = wrong.store(p.store)
	}
	if p.Limiter, err = limiter.New(b, &l); err != nil {
		w.Fatalf("open a limiter: %v", err)
	}
	w.open = append(w.open, p)
	return p
}

// limits sets the limits of a place with the observer, not with a tested process.
func (w *tableWorld) limits(at weir.Subject, limits ...weir.Limit) {
	w.Helper()
	if err := w.eye.SetLimits(w.Context(), at, limits); err != nil {
		w.Fatalf("set limits of %+v: %v", at, err)
	}
}

// system sets the limits of the system.
func (w *tableWorld) system(limits ...weir.Limit) {
	w.Helper()
	w.limits(weir.Subject{}, limits...)
}

// family declares a child that cascades to a parent.
func (w *tableWorld) family(child, parent string) {
	w.Helper()
	for _, e := range [][2]string{{parent, ""}, {child, parent}} {
		if err := w.eye.SetEntity(w.Context(), e[0], e[1], e[1] != ""); err != nil {
			w.Fatalf("set entity %s: %v", e[0], err)
		}
	}
}

// per returns a bucket with a refill per period.
func per(name string, capacity, refill int64, period time.Duration) weir.Limit {
	return weir.Limit{
		Name: name, Kind: weir.Bucket, Capacity: capacity, RefillAmount: refill, RefillPeriod: period,
	}
}

// noRefill returns a bucket that does not refill during a case: one unit in a hundred years.
func noRefill(name string, capacity int64) weir.Limit {
	return per(name, capacity, 1, noRefillPeriod*time.Second)
}

// noRefillPeriod is the period of still in seconds.
const noRefillPeriod = 100 * 365 * 24 * 60 * 60

const (
	testEntity   = "acme"
	testResource = "gpt-4o"
)

// ask makes a request and waits until nothing is running in the background.
func (p *process) ask(entity string, c weir.Costs) (*weir.Lease, error) {
	l, err := p.Reserve(p.w.Context(), &weir.Request{Entity: entity, Resource: testResource, Costs: c})
	p.quiet()
	return l, err
}

// quiet waits until all queues are empty and no read is in flight.
func (p *process) quiet() { p.store.running.Wait() }

// admit reserves, and fails unless the request is admitted.
func (p *process) admit(entity string, c weir.Costs) *weir.Lease {
	p.w.Helper()
	l, err := p.ask(entity, c)
	if err != nil {
		p.w.Fatalf("at %s: %v: got %v, want admitted", p.w.since(), c, err)
	}
	return l
}

// deny reserves, fails unless a limit denies the request, and returns the statuses.
func (p *process) deny(entity string, c weir.Costs) []weir.LimitStatus {
	p.w.Helper()
	l, err := p.ask(entity, c)
	d, ok := errors.AsType[*weir.DeniedError](err)
	if !ok || d.Contended {
		p.w.Fatalf("at %s: %v: got %v, %v, want denied", p.w.since(), c, l != nil, err)
	}
	return d.Limits
}

// must fails if a settlement failed.
func (p *process) must(_ *weir.Receipt, err error) {
	p.w.Helper()
	if err != nil {
		p.w.Fatalf("at %s: settle: %v", p.w.since(), err)
	}
	p.quiet()
}

// drain reserves single units until it is denied, at most the given number of times, and returns
// the number admitted.
func (p *process) drain(entity, limit string, most int) int {
	p.w.Helper()
	for n := range most {
		_, err := p.ask(entity, weir.Costs{limit: 1})
		if d, ok := errors.AsType[*weir.DeniedError](err); ok && !d.Contended {
			return n
		}
		if err != nil {
			p.w.Fatalf("at %s: got %v after %d", p.w.since(), err, n)
		}
	}
	return most
}

// since returns the time since testStart.
func (w *tableWorld) since() time.Duration { return w.clock.Now().Sub(testStart) }

// equal fails unless two values are the same.
func equal[V comparable](w *tableWorld, what string, got, want V) {
	w.Helper()
	if got != want {
		w.Errorf("at %s: %s: got %v, want %v", w.since(), what, got, want)
	}
}

// id returns the identity of a bucket item.
func (w *tableWorld) id(entity string, shard int) schema.BucketID {
	return schema.BucketID{
		Namespace: w.eye.store.config.Namespace, Entity: entity, Resource: testResource, Shard: shard,
	}
}

// raw reads a bucket item without decoding it; nil if it does not exist.
func (w *tableWorld) raw(entity string, shard int) schema.Item {
	w.Helper()
	item, err := w.eye.store.client.GetItem(w.Context(), w.id(entity, shard).Key(), true)
	if err != nil {
		w.Fatalf("read: %v", err)
	}
	return item
}

// bucket reads a bucket item; nil if it does not exist.
func (w *tableWorld) bucket(entity string, shard int) *schema.Bucket {
	w.Helper()
	item := w.raw(entity, shard)
	if item == nil {
		return nil
	}
	b, err := schema.ParseBucket(item)
	if err != nil {
		w.Fatalf("read: %v", err)
	}
	return b
}

// stored reads one limit of a bucket item.
func (w *tableWorld) stored(entity string, shard int, limit string) schema.BucketLimit {
	w.Helper()
	b := w.bucket(entity, shard)
	if b == nil || b.Limit(limit) == nil {
		w.Fatalf("at %s: %s has no limit %s on shard %d", w.since(), entity, limit, shard)
	}
	return *b.Limit(limit)
}

// edit sets numbers of a bucket item without a condition, as another program would.
func (w *tableWorld) edit(entity string, shard int, numbers map[string]int64) {
	w.Helper()
	e := &client.Expression{}
	for _, attribute := range slices.Sorted(maps.Keys(numbers)) {
		e.SetNumber(attribute, numbers[attribute])
	}
	in := &ddb.UpdateItemInput{
		TableName: &w.table.Name, Key: w.id(entity, shard).Key().Item(), UpdateExpression: e.Update(),
		ExpressionAttributeNames: e.Names, ExpressionAttributeValues: e.Values,
	}
	if _, err := w.eye.store.client.API.UpdateItem(w.Context(), in); err != nil {
		w.Fatalf("edit: %v", err)
	}
}

// put stores a bucket item as another program would.
func (w *tableWorld) put(b *schema.Bucket) {
	w.Helper()
	in := &ddb.PutItemInput{TableName: &w.table.Name, Item: b.Item()}
	if _, err := w.eye.store.client.API.PutItem(w.Context(), in); err != nil {
		w.Fatalf("put: %v", err)
	}
}

// shards returns the existing shards of a bucket, by number.
func (w *tableWorld) shards(entity string) map[int]*schema.Bucket {
	w.Helper()
	keys := make([]schema.Key, 2*sharding.MaxShards)
	for i := range keys {
		keys[i] = w.id(entity, i).Key()
	}
	items, err := w.eye.store.client.BatchGet(w.Context(), keys, true)
	if err != nil {
		w.Fatalf("read: %v", err)
	}
	found := make(map[int]*schema.Bucket)
	for i, item := range items {
		if item == nil {
			continue
		}
		if found[i], err = schema.ParseBucket(item); err != nil {
			w.Fatalf("read: %v", err)
		}
	}
	return found
}

// items returns all items of the namespace, in the order of their keys.
func (w *tableWorld) items() []schema.Item {
	w.Helper()
	var found []schema.Item
	pages := ddb.NewScanPaginator(w.eye.store.client.API, &ddb.ScanInput{
		TableName: &w.table.Name, ConsistentRead: new(true),
		FilterExpression: new("begins_with(PK, :ns)"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":ns": schema.String(w.eye.store.config.Namespace + "/"),
		},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(w.Context())
		if err != nil {
			w.Fatalf("scan: %v", err)
		}
		found = append(found, page.Items...)
	}
	return found
}

// concurrently runs f in n concurrent goroutines and waits for them. f must not end the case.
func concurrently(n int, f func(i int)) {
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	all.Wait()
}
