package stream_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/aggregator"
	"github.com/weir-limiter/weir/dynamodb/internal/stream"
	"github.com/weir-limiter/weir/internal/schema"
)

// bucket is an archive in memory. The first calls of Put for each key fail.
type bucket struct {
	mu      sync.Mutex
	fails   int // how many of each key
	err     error
	objects map[string][]byte
	tries   map[string]int
	puts    int
	put     func(key string) // called before each Put; nil for nothing
}

func (b *bucket) Put(_ context.Context, key string, body []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.puts++
	if b.put != nil {
		b.put(key)
	}
	if b.objects == nil {
		b.objects, b.tries = make(map[string][]byte), make(map[string]int)
	}
	if b.tries[key]++; b.tries[key] <= b.fails {
		return b.err
	}
	b.objects[key] = body
	return nil
}

// events returns the events of all objects by ID, with the number of times that each occurs.
func (b *bucket) events(
	t *testing.T,
) (byID map[string]*aggregator.ArchivedEvent, times map[string]int) {
	t.Helper()
	byID, times = make(map[string]*aggregator.ArchivedEvent), make(map[string]int)
	for _, key := range slices.Sorted(maps.Keys(b.objects)) {
		for e, err := range aggregator.ReadArchive(bytes.NewReader(b.objects[key])) {
			if err != nil {
				t.Fatalf("%s: %v", key, err)
			}
			byID[e.ID] = e
			times[e.ID]++
		}
	}
	return byID, times
}

// removal returns the record of the removal of an audit event, as AWS documents it for an item
// that has expired.
func removal(n int, at time.Time, namespace, entity string) types.Record {
	event := fmt.Sprintf("01K6EVENT%017d", n)
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	keys := map[string]types.AttributeValue{
		schema.AttrPK: text(schema.AuditPK(namespace, entity)),
		schema.AttrSK: text(schema.SKAuditPrefix + event),
	}
	image := maps.Clone(keys)
	image[schema.AttrEntity], image[schema.AttrAction] = text(entity), text(schema.ActionLimitsSet)
	image[schema.AttrTimestamp], image[schema.AttrTTL] = text(schema.Timestamp(at)), &types.AttributeValueMemberN{Value: "1"}
	return types.Record{
		EventName: types.OperationTypeRemove, AwsRegion: new("eu-central-1"), EventSource: new("aws:dynamodb"),
		EventVersion: new("1.1"), EventID: new(event),
		UserIdentity: &types.Identity{
			Type: new("Service"), PrincipalId: new("dynamodb.amazonaws.com"),
		},
		Dynamodb: &types.StreamRecord{
			SequenceNumber: new(fmt.Sprintf("%021d", n)), ApproximateCreationDateTime: new(start),
			StreamViewType: types.StreamViewTypeNewAndOldImages, Keys: keys, OldImage: image,
		},
	}
}

// checkpoints returns the stored sequence numbers by shard.
func (w *world) checkpoints() map[string]string {
	w.Helper()
	found := make(map[string]string)
	out, err := w.c.API.Query(w.Context(), &ddb.QueryInput{
		TableName: &w.table.Name, ConsistentRead: new(true),
		KeyConditionExpression: new("PK = :pk AND begins_with(SK, :sk)"),
		ExpressionAttributeValues: schema.Item{
			":pk": schema.String(schema.SystemPK(schema.RegistryNamespace)), ":sk": schema.String(schema.SKAggregator),
		},
	})
	if err != nil {
		w.Fatal(err)
	}
	for _, item := range out.Items {
		key, err := schema.KeyOf(item)
		if err != nil {
			w.Fatal(err)
		}
		if !schema.IsCheckpoint(key) {
			continue
		}
		c, err := schema.ParseCheckpoint(item)
		if err != nil {
			w.Fatal(err)
		}
		found[c.Shard] = c.Sequence
	}
	return found
}

// TestArchiveFails checks that an object that fails is written again, that the checkpoint does
// not move past it before, and that it moves after.
func TestArchiveFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	day := 24 * time.Hour
	f := &fakeStream{shards: []fakeShard{{id: "s", records: []types.Record{
		removal(1, start, w.ns, "acme"), removal(2, start.Add(day), w.ns, "acme"),
		streamRecord(3, start, w.bucketID("acme"), 0, 3000), removal(4, start, "gone", "acme"),
	}}}}
	b := &bucket{fails: 2, err: errors.New("the bucket is away")}
	b.put = func(key string) {
		_, numbers, _ := strings.Cut(key, "audit-s-")
		first, _, _ := strings.Cut(numbers, "-")
		if got := w.checkpoints()["s"]; got >= fmt.Sprintf("%021s", first) {
			t.Errorf("before %s is written the checkpoint is %s", key, got)
		}
	}
	failures := 0
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := w.reader(func(o *stream.Options) {
		o.Source, o.EmptyReads, o.Archive, o.Once = f, 4, b, false
		o.Wait = func(ctx context.Context, d time.Duration) error {
			if d >= time.Second { // after an error
				failures++
			}
			if got := w.checkpoints(); got["s"] == fmt.Sprintf("%021d", 4) {
				cancel()
			}
			return ctx.Err()
		}
	})
	if err := r.Run(ctx); err != nil {
		t.Fatal(err)
	}
	byID, times := b.events(t)
	if failures < 2 || b.puts < 3*len(b.objects) || len(byID) != 3 || len(b.objects) < 2 {
		t.Errorf("got %d failures, %d events in %d objects", failures, len(byID), len(b.objects))
	}
	for id, e := range byID {
		name := schema.DefaultNamespace
		if e.NamespaceID == "gone" {
			name = ""
		}
		if e.Namespace != name {
			t.Errorf("%s: got the namespace %q, want %q", id, e.Namespace, name)
		}
	}
	hour := schema.Timestamp(weir.Hourly.Start(start))
	w.judge(hours(w.usage()), map[string]int64{tallyKey(weir.Hourly, hour, "acme", "rpm"): 3})
	t.Logf("%d calls of Put, each event %v times; %+v", b.puts, times, r.Summary())
}

// TestArchiveRefused checks that an error that does not pass ends the reader.
func TestArchiveRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := &fakeStream{shards: []fakeShard{{id: "s",
		records: []types.Record{removal(1, start, w.ns, "acme")}}}}
	refused := weir.NewError(weir.PermissionDenied, "archive", "s3://b/k", "no")
	b := &bucket{fails: 99, err: refused}
	r := w.reader(func(o *stream.Options) {
		o.Source, o.EmptyReads, o.Archive, o.Once = f, 4, b, false
	})
	if err := r.Run(t.Context()); !errors.Is(err, weir.PermissionDenied) {
		t.Errorf("got %v", err)
	}
	if got := w.checkpoints(); len(got) != 0 {
		t.Errorf("the checkpoint is %v", got)
	}
}

// TestArchiveKilled checks that each event is archived if the reader is killed at any of its
// writes, with batches of other borders each time.
func TestArchiveKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := &fakeStream{shards: []fakeShard{{id: "s"}}}
	s := f.shard("s")
	b := &bucket{}
	run := func(killed bool) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		b.put = func(string) {
			if killed && b.puts%3 == 2 { // after the object, before the checkpoint
				cancel()
			}
		}
		r := w.reader(func(o *stream.Options) { o.Source, o.EmptyReads, o.Archive = f, 4, b })
		if err := r.Run(ctx); err != nil && ctx.Err() == nil {
			t.Fatal(err)
		}
	}
	n := 0
	for range 8 {
		for range 5 {
			n++
			s.records = append(s.records, removal(n, start.Add(time.Duration(n%3)*24*time.Hour),
				w.ns, "acme"))
		}
		run(true)
	}
	run(false)
	byID, times := b.events(t)
	if len(byID) != n {
		t.Errorf("got %d events, want %d", len(byID), n)
	}
	again := 0
	for _, k := range times {
		again += k - 1
	}
	t.Logf("%d events in %d objects, %d of them again, after %d calls of Put", n, len(b.objects),
		again, b.puts)
}

// TestArchiveManualDelete checks on the real stream that an event that was deleted by a call is
// not archived, and does not move the checkpoint.
func TestArchiveManualDelete(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := schema.AuditEvent{
		Namespace: w.ns, Entity: "acme", ID: "01K6EVENT00000000000000001", Action: schema.ActionLimitsSet,
		Timestamp: schema.Timestamp(start), TTL: start.AddDate(0, 3, 0).Unix(),
	}
	item, err := e.Item()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.c.API.PutItem(t.Context(),
		&ddb.PutItemInput{TableName: &w.table.Name, Item: item}); err != nil {
		t.Fatal(err)
	}
	key := schema.AuditKey(e.Namespace, e.Entity, e.ID).Item()
	if _, err := w.c.API.DeleteItem(t.Context(),
		&ddb.DeleteItemInput{TableName: &w.table.Name, Key: key}); err != nil {
		t.Fatal(err)
	}
	b := &bucket{}
	s := w.count(func(o *stream.Options) { o.Archive = b })
	if b.puts != 0 || s.Archived != 0 || len(w.checkpoints()) != 0 || s.Records < 3 {
		t.Errorf("got %d calls of Put, the checkpoints %v, %+v", b.puts, w.checkpoints(), s)
	}
}

// TestArchiveLongNamespace checks that an ID that no namespace can have is not looked up: the table
// refuses such a key, and the records after it would wait for ever.
func TestArchiveLongNamespace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	long := strings.Repeat("x", 1500)
	f := &fakeStream{shards: []fakeShard{{id: "s", records: []types.Record{
		removal(1, start, long, "acme"), removal(2, start, w.ns, "acme"),
	}}}}
	b := &bucket{}
	r := w.reader(func(o *stream.Options) { o.Source, o.EmptyReads, o.Archive = f, 4, b })
	if err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if byID, _ := b.events(t); len(byID) != 2 {
		t.Errorf("got %d events", len(byID))
	}
}

// TestArchiveOff checks that without an archive nothing is written for such a record.
func TestArchiveOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := &fakeStream{shards: []fakeShard{{id: "s",
		records: []types.Record{removal(1, start, w.ns, "acme")}}}}
	r := w.reader(func(o *stream.Options) { o.Source, o.EmptyReads = f, 4 })
	if err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := r.Summary(); len(w.checkpoints()) != 0 || s.Records != 1 || s.Objects != 0 {
		t.Errorf("got the checkpoints %v, %+v", w.checkpoints(), s)
	}
}
