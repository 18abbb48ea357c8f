package stream_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/aggregator"
	"github.com/weir-limiter/weir/dynamodb"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/dynamodb/internal/stream"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/internal/testkit/calls"
	"github.com/weir-limiter/weir/limiter"
)

// start is ten minutes before the end of an hour, a day and a month. It is in the future, so that
// DynamoDB Local does not delete what expires.
var start = time.Date(2029, 3, 31, 23, 50, 0, 0, time.UTC)

const resource = "gpt-4o"

// world is a table with a stream, whose time the test sets.
type world struct {
	*testing.T
	table *dynamodb.Table
	c     *client.Client
	ns    string
	clock *phases
	// calls counts the calls of the readers to the table.
	calls *testkit.Counter
	// tally has the units by hour, entity and limit.
	tally map[string]int64
}

// newWorld returns a world on a new table.
func newWorld(t *testing.T, tune ...func(*dynamodb.Table)) *world {
	t.Helper()
	local := testkit.DynamoDB(t)
	cfg := local.Config()
	cfg.APIOptions = append(cfg.APIOptions, calls.New(t, callsFile).Install)
	w := &world{
		T: t, clock: &phases{}, calls: &testkit.Counter{}, tally: make(map[string]int64),
		table: &dynamodb.Table{
			Name:    "weir-" + rand.Text()[:16],
			Options: &dynamodb.Options{Config: &cfg, Endpoint: local.Endpoint(), WriteTimeout: time.Minute},
		},
	}
	for _, f := range tune {
		f(w.table)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		if err := w.table.Delete(ctx); err != nil {
			t.Errorf("delete: %v", err)
		}
	})
	if _, err := w.table.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	n, err := w.table.Namespace(t.Context(), schema.DefaultNamespace)
	if err != nil {
		t.Fatal(err)
	}
	w.ns = n.ID
	w.c = w.client()
	w.at(start)
	return w
}

// client returns another client of the table.
func (w *world) client(tune ...func(*ddb.Options)) *client.Client {
	w.Helper()
	c, err := client.New(w.Context(), w.table.Name, &client.Options{
		Endpoint: w.table.Options.Endpoint, Config: w.table.Options.Config, Tune: tune,
	})
	if err != nil {
		w.Fatal(err)
	}
	return c
}

// reader returns a reader of the table that ends when everything is counted.
func (w *world) reader(tune ...func(*stream.Options)) *stream.Reader {
	w.Helper()
	return w.readerOf(w.client(w.calls.Install), tune...)
}

func (w *world) readerOf(c *client.Client, tune ...func(*stream.Options)) *stream.Reader {
	o := stream.Options{
		Once: true, EmptyReads: 2, Interval: time.Millisecond, IndexLag: -1,
		Source: &source{stream.NewSource(w.c), w.clock}, Move: w.clock.move, Now: w.clock.now,
	}
	for _, f := range tune {
		f(&o)
	}
	return stream.New(c, o)
}

// count counts everything that is in the stream.
func (w *world) count(tune ...func(*stream.Options)) aggregator.Summary {
	w.Helper()
	return w.countBy(func() *stream.Reader { return w.reader(tune...) })
}

// countBy runs readers until one has read everything: a busy DynamoDB Local shows writes late in its
// streams.
func (w *world) countBy(reader func() *stream.Reader) aggregator.Summary {
	w.Helper()
	end := w.at(w.clock.now())
	total := aggregator.Summary{Skipped: make(map[string]int64)}
	for {
		r := reader()
		if err := r.Run(w.Context()); err != nil {
			w.Fatal(err)
		}
		s := r.Summary()
		total.Records, total.Counted = total.Records+s.Records, total.Counted+s.Counted
		total.Hours, total.Totals = total.Hours+s.Hours, total.Totals+s.Totals
		total.Splits, total.Raised = total.Splits+s.Splits, total.Raised+s.Raised
		total.SplitsFailed += s.SplitsFailed
		total.Gaps, total.Until = total.Gaps+s.Gaps, s.Until
		total.Refills, total.RefillsLost = total.Refills+s.Refills, total.RefillsLost+s.RefillsLost
		for reason, n := range s.Skipped {
			total.Skipped[reason] += n
		}
		if w.clock.seen(end) {
			return total
		}
	}
}

// at sets the time, and puts a marker into the stream from which on records have it.
func (w *world) at(now time.Time) (phase int) {
	w.Helper()
	n := w.clock.next(now)
	key := schema.Key{PK: marker, SK: fmt.Sprintf("%04d", n)}
	in := &ddb.PutItemInput{TableName: &w.table.Name, Item: key.Item()}
	if _, err := w.c.API.PutItem(w.Context(), in); err != nil {
		w.Fatal(err)
	}
	return n
}

// process returns a limiter on the table. Its writes are all made when it is closed.
func (w *world) process(tune ...func(*dynamodb.Options)) *limiter.Limiter {
	w.Helper()
	o := *w.table.Options
	for _, f := range tune {
		f(&o)
	}
	s, err := dynamodb.Open(w.Context(), w.table.Name, &o)
	if err != nil {
		w.Fatal(err)
	}
	l, err := limiter.New(s, &limiter.Options{Now: w.clock.now, StoreTimeout: time.Minute})
	if err != nil {
		w.Fatal(err)
	}
	return l
}

// limits sets limits of the system that never deny.
func (w *world) limits(names ...string) {
	w.Helper()
	l := w.process()
	var limits []weir.Limit
	for _, name := range names {
		limits = append(limits, weir.Limit{
			Name: name, Kind: weir.Bucket, Capacity: 1e9, RefillAmount: 1e9, RefillPeriod: time.Minute,
		})
	}
	if err := l.SetLimits(w.Context(), weir.Subject{}, limits); err != nil {
		w.Fatal(err)
	}
	w.close(l)
}

func (w *world) close(l *limiter.Limiter) {
	w.Helper()
	if err := l.Close(); err != nil {
		w.Fatal(err)
	}
}

// take reserves, and tallies the costs.
func (w *world) take(l *limiter.Limiter, entity string, c weir.Costs) *weir.Lease {
	w.Helper()
	lease, err := l.Reserve(w.Context(), &weir.Request{Entity: entity, Resource: resource, Costs: c})
	if err != nil {
		w.Fatal(err)
	}
	for name, n := range c {
		w.add(entity, name, n)
	}
	return lease
}

// complete settles a lease, and tallies the differences.
func (w *world) complete(l *limiter.Limiter, lease *weir.Lease, entity string, was, is weir.Costs) {
	w.Helper()
	if _, err := lease.Bind(l).Complete(w.Context(), is); err != nil {
		w.Fatal(err)
	}
	for name, n := range is {
		w.add(entity, name, n-was[name])
	}
}

func (w *world) add(entity, limit string, n int64) {
	w.tally[tallyKey(weir.Hourly, schema.Timestamp(weir.Hourly.Start(w.clock.now())), entity, limit)] += n
}

func tallyKey(of weir.UsageWindow, start, entity, limit string) string {
	return string(of) + " " + start + " " + entity + " " + limit
}

// items returns all usage items.
func (w *world) items() []schema.Item {
	w.Helper()
	var found []schema.Item
	pages := ddb.NewScanPaginator(w.c.API, &ddb.ScanInput{
		TableName: &w.table.Name, ConsistentRead: new(true),
		FilterExpression:          new("begins_with(SK, :usage)"),
		ExpressionAttributeValues: schema.Item{":usage": schema.String(schema.SKUsagePrefix)},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(w.Context())
		if err != nil {
			w.Fatal(err)
		}
		found = append(found, page.Items...)
	}
	return found
}

// usage returns the units by window, start, entity and limit.
func (w *world) usage() map[string]int64 {
	w.Helper()
	found := make(map[string]int64)
	for _, item := range w.items() {
		u, err := schema.ParseUsage(item)
		if err != nil {
			w.Fatal(err)
		}
		for limit, n := range u.Counters {
			if n != 0 {
				found[tallyKey(u.Window, u.Start, u.Entity, limit)] += n
			}
		}
	}
	return found
}

// hours returns the part of usage that is for hours.
func hours(usage map[string]int64) map[string]int64 {
	return only(usage, string(weir.Hourly)+" ")
}

func only(usage map[string]int64, prefix string) map[string]int64 {
	found := make(map[string]int64)
	for key, n := range usage {
		if strings.HasPrefix(key, prefix) && n != 0 {
			found[key] = n
		}
	}
	return found
}

// judge compares usage with what is expected.
func (w *world) judge(got, want map[string]int64) {
	w.Helper()
	wrong := 0
	keys := make(map[string]bool)
	for _, m := range []map[string]int64{got, want} {
		for key := range m {
			keys[key] = true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if got[key] != want[key] {
			if wrong++; wrong <= 10 {
				w.Errorf("%s: got %d, want %d", key, got[key], want[key])
			}
		}
	}
	w.Logf("%d of %d sums are right", len(keys)-wrong, len(keys))
}

// marker is the partition of the items that say where in the stream a time begins.
const marker = "marker"

// phases are the times of a world. The records after a marker have its time.
type phases struct {
	mu    sync.Mutex
	times []time.Time
	// from are the sequence numbers of the markers that a reader has seen, by phase.
	from map[int]string
}

func (p *phases) next(now time.Time) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.times = append(p.times, now)
	return len(p.times) - 1
}

// seen reports whether a reader has read the marker of a phase.
func (p *phases) seen(phase int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, seen := p.from[phase]
	return seen
}

// now returns the time of the last phase.
func (p *phases) now() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.times[len(p.times)-1]
}

// move returns the time of the first phase for a time that no phase has, such as the table's.
func (p *phases) move(at time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at.Before(start.AddDate(-1, 0, 0)) {
		return p.times[0]
	}
	return at
}

// of returns the time of a record.
func (p *phases) of(sequence, pk, sk string) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	sequence = fmt.Sprintf("%40s", sequence)
	if p.from == nil {
		p.from = make(map[int]string)
	}
	if n, err := strconv.Atoi(sk); err == nil && pk == marker {
		p.from[n] = sequence
	}
	phase := 0
	for n, from := range p.from {
		if from <= sequence {
			phase = max(phase, n)
		}
	}
	return p.times[phase]
}

// source gives records the times of their phases.
type source struct {
	stream.Source
	*phases
}

func (s *source) GetRecords(
	ctx context.Context, in *dynamodbstreams.GetRecordsInput, o ...func(*dynamodbstreams.Options),
) (*dynamodbstreams.GetRecordsOutput, error) {
	out, err := s.Source.GetRecords(ctx, in, o...)
	if err != nil {
		return nil, err
	}
	for i := range out.Records {
		d := out.Records[i].Dynamodb
		key := stream.ConvertItem(d.Keys)
		d.ApproximateCreationDateTime = new(s.of(cmp.Or(*d.SequenceNumber, ""),
			schema.StringAttribute(key, schema.AttrPK), schema.StringAttribute(key, schema.AttrSK)))
	}
	return out, nil
}
