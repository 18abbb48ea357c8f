package function_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb"
	"github.com/weir-limiter/weir/internal/function"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/limiter"
)

const resource = "gpt-4o"

// world is a table with a stream, and a function that counts it.
type world struct {
	*testing.T
	table   *dynamodb.Table
	client  *ddb.Client
	streams *dynamodbstreams.Client
	log     *lines
	archive *memoryArchive // nil for none
}

func newWorld(t *testing.T) *world {
	t.Helper()
	local := testkit.DynamoDB(t)
	cfg := local.Config()
	w := &world{
		T: t, client: local.Client(), log: &lines{},
		streams: dynamodbstreams.NewFromConfig(cfg, func(o *dynamodbstreams.Options) {
			o.BaseEndpoint = new(local.Endpoint())
		}),
		table: &dynamodb.Table{
			Name:    "weir-" + rand.Text()[:16],
			Options: &dynamodb.Options{Config: &cfg, Endpoint: local.Endpoint(), WriteTimeout: time.Minute},
		},
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
	return w
}

// function returns a function of the table, with the client option of faults.
func (w *world) function(tune ...func(*ddb.Options)) *function.Function {
	w.Helper()
	o := *w.table.Options
	o.Client = tune
	options := &function.Options{Table: &dynamodb.Table{Name: w.table.Name, Options: &o}}
	if w.archive != nil {
		options.Archive = w.archive
	}
	f, err := function.New(w.Context(), func(string) string { return "" }, w.log, options)
	if err != nil {
		w.Fatal(err)
	}
	return f
}

// use makes calls of some entities: reserve, then settle with other amounts, or cancel.
func (w *world) use(calls int, entities ...string) {
	w.Helper()
	s, err := dynamodb.Open(w.Context(), w.table.Name, w.table.Options)
	if err != nil {
		w.Fatal(err)
	}
	l, err := limiter.New(s, &limiter.Options{StoreTimeout: time.Minute})
	if err != nil {
		w.Fatal(err)
	}
	var limits []weir.Limit
	for _, name := range []string{"rpm", "tpm"} {
		limits = append(limits, weir.Limit{
			Name: name, Kind: weir.Bucket, Capacity: 1e9, RefillAmount: 1e9, RefillPeriod: time.Minute,
		})
	}
	if err := l.SetLimits(w.Context(), weir.Subject{}, limits); err != nil {
		w.Fatal(err)
	}
	for i := range calls {
		lease, err := l.Reserve(w.Context(), &weir.Request{
			Entity: entities[i%len(entities)], Resource: resource,
			Costs: weir.Costs{"rpm": 1, "tpm": int64(100 + i)},
		})
		if err != nil {
			w.Fatal(err)
		}
		if i%5 == 4 {
			_, err = lease.Cancel(w.Context())
		} else {
			_, err = lease.Complete(w.Context(), weir.Costs{"tpm": int64(50 + 3*i)})
		}
		if err != nil {
			w.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		w.Fatal(err)
	}
}

// administer makes changes of the configuration, each of which is an event of the audit.
func (w *world) administer(changes int) {
	w.Helper()
	s, err := dynamodb.Open(w.Context(), w.table.Name, w.table.Options)
	if err != nil {
		w.Fatal(err)
	}
	l, err := limiter.New(s, &limiter.Options{StoreTimeout: time.Minute})
	if err != nil {
		w.Fatal(err)
	}
	for i := range changes {
		if err := l.SetEntity(w.Context(), fmt.Sprintf("entity-%d", i), "", false); err != nil {
			w.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		w.Fatal(err)
	}
}

// items returns the items of the table whose sort key has a prefix, by key.
func (w *world) items(prefix string) map[string]schema.Item {
	w.Helper()
	found := make(map[string]schema.Item)
	p := ddb.NewScanPaginator(w.client, &ddb.ScanInput{
		TableName: &w.table.Name, ConsistentRead: new(true),
	})
	for p.HasMorePages() {
		page, err := p.NextPage(w.Context())
		if err != nil {
			w.Fatal(err)
		}
		for _, item := range page.Items {
			key, err := schema.KeyOf(item)
			if err != nil {
				w.Fatal(err)
			}
			if strings.HasPrefix(key.SK, prefix) {
				found[key.String()] = item
			}
		}
	}
	return found
}

// usage returns the usage items as text, without the time at which they expire.
func (w *world) usage() map[string]string {
	w.Helper()
	found := make(map[string]string)
	for key, item := range w.items(schema.SKUsagePrefix) {
		delete(item, schema.AttrTTL)
		var b strings.Builder
		for _, name := range slices.Sorted(maps.Keys(item)) {
			switch v := item[name].(type) {
			case *ddbtypes.AttributeValueMemberN:
				fmt.Fprintf(&b, "%s=%s ", name, v.Value)
			case *ddbtypes.AttributeValueMemberS:
				fmt.Fprintf(&b, "%s=%s ", name, v.Value)
			default:
				fmt.Fprintf(&b, "%s=%v ", name, v)
			}
		}
		found[key] = b.String()
	}
	return found
}

// forget deletes all that an aggregator has written.
func (w *world) forget() {
	w.Helper()
	for _, prefix := range []string{schema.SKUsagePrefix, schema.SKAggregator} {
		for _, item := range w.items(prefix) {
			key, err := schema.KeyOf(item)
			if err != nil {
				w.Fatal(err)
			}
			if _, err := w.client.DeleteItem(w.Context(), &ddb.DeleteItemInput{
				TableName: &w.table.Name, Key: key.Item(),
			}); err != nil {
				w.Fatal(err)
			}
		}
	}
}

// equal compares usage items with those that are right.
func (w *world) equal(got, want map[string]string) {
	w.Helper()
	if len(want) == 0 {
		w.Error("no usage was counted")
	}
	for key := range maps.Keys(want) {
		if got[key] != want[key] {
			w.Errorf("%s\n got %s\nwant %s", key, got[key], want[key])
		}
	}
	if len(got) != len(want) {
		w.Errorf("got %d usage items, want %d", len(got), len(want))
	}
}

// mapping is the event source mapping of the table's stream: records of its shards as Lambda sends
// them.
type mapping struct {
	w *world
	// batch is the number of records of a batch.
	batch int
	// change changes a batch before it is sent.
	change func(records []json.RawMessage)

	invocations, failures int
	states                map[string]map[string]string // by shard
}

// record reads all shards of the stream, parents first, and returns the records of each as JSON. It
// reads again until the bucket items are as the last records say.
func (w *world) record() (shards []string, records map[string][]json.RawMessage) {
	w.Helper()
	d, err := w.client.DescribeTable(w.Context(), &ddb.DescribeTableInput{TableName: &w.table.Name})
	if err != nil {
		w.Fatal(err)
	}
	arn := d.Table.LatestStreamArn
	for {
		out, err := w.streams.DescribeStream(w.Context(), &dynamodbstreams.DescribeStreamInput{
			StreamArn: arn,
		})
		if err != nil {
			w.Fatal(err)
		}
		shards, records = nil, make(map[string][]json.RawMessage)
		last := make(map[string]string)
		for _, s := range out.StreamDescription.Shards {
			shards = append(shards, *s.ShardId)
			records[*s.ShardId] = w.recordShard(*arn, *s.ShardId, last)
		}
		if w.complete(last) {
			return shards, records
		}
	}
}

// complete reports whether the last records of the bucket items have the items as they are.
func (w *world) complete(last map[string]string) bool {
	for key, item := range w.items(schema.SKState) {
		tc := item[schema.BucketAttribute("tpm", schema.FieldConsumed)]
		if n, ok := tc.(*ddbtypes.AttributeValueMemberN); !ok || last[key] != n.Value {
			return false
		}
	}
	return true
}

func (w *world) recordShard(arn, shard string, last map[string]string) (records []json.RawMessage) {
	w.Helper()
	it, err := w.streams.GetShardIterator(w.Context(), &dynamodbstreams.GetShardIteratorInput{
		StreamArn: &arn, ShardId: &shard, ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
	})
	if err != nil {
		w.Fatal(err)
	}
	for next, empty := it.ShardIterator, 0; next != nil && empty < 3; {
		out, err := w.streams.GetRecords(w.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: next})
		if err != nil {
			w.Fatal(err)
		}
		if next = out.NextShardIterator; len(out.Records) == 0 {
			empty++
		}
		for i := range out.Records {
			e := lambdaRecord(arn, &out.Records[i])
			raw, err := json.Marshal(e)
			if err != nil {
				w.Fatal(err)
			}
			records = append(records, raw)
			keys := e.Change.Keys
			key := schema.Key{PK: keys[schema.AttrPK].String(), SK: keys[schema.AttrSK].String()}
			if tc, ok := e.Change.NewImage[schema.BucketAttribute("tpm", schema.FieldConsumed)]; ok {
				last[key.String()] = tc.Number()
			}
		}
	}
	return records
}

// deliver sends everything that is recorded, in batches. A batch that fails is sent again from where
// it failed, at most most times in all.
func (m *mapping) deliver(f *function.Function, most int) {
	m.w.Helper()
	shards, records := m.w.record()
	for _, shard := range shards {
		for rest := records[shard]; len(rest) > 0; {
			batch := slices.Clone(rest[:min(len(rest), cmp.Or(m.batch, 100))])
			if m.change != nil {
				m.change(batch)
			}
			if m.invocations++; m.invocations > most {
				m.w.Fatalf("more than %d invocations", most)
			}
			done := m.send(f, shard, batch)
			if done < len(batch) {
				m.failures++
			}
			rest = rest[done:]
		}
	}
}

// send sends a batch, and returns the number of its records that are done.
func (m *mapping) send(f *function.Function, shard string, batch []json.RawMessage) (done int) {
	m.w.Helper()
	ctx, cancel := context.WithTimeout(m.w.Context(), time.Minute)
	defer cancel()
	return m.sendIn(ctx, f, shard, batch)
}

// sendIn is send with a context.
func (m *mapping) sendIn(
	ctx context.Context, f *function.Function, shard string, batch []json.RawMessage,
) (done int) {
	m.w.Helper()
	if m.states == nil {
		m.states = make(map[string]map[string]string)
	}
	event, err := json.Marshal(map[string]any{
		"Records": batch, "shardId": shard, "state": m.states[shard],
		"window": map[string]string{
			"start": "2026-11-27T09:00:00Z", "end": "2026-11-27T09:01:00Z",
		},
		"eventSourceARN":          "arn:aws:dynamodb:ddblocal:000000000000:table/x/stream/y",
		"isFinalInvokeForWindow":  false,
		"isWindowTerminatedEarly": false,
	})
	if err != nil {
		m.w.Fatal(err)
	}
	answer, err := f.Handle(ctx, event)
	if err != nil {
		return 0
	}
	text, err := json.Marshal(answer)
	if err != nil {
		m.w.Fatal(err)
	}
	var a events.DynamoDBTimeWindowEventResponse
	if err := json.Unmarshal(text, &a); err != nil || a.State == nil {
		m.w.Fatalf("got the answer %s: %v; Lambda needs a state", text, err)
	}
	m.states[shard] = a.State
	if len(a.BatchItemFailures) == 0 {
		return len(batch)
	}
	done = slices.IndexFunc(batch, func(r json.RawMessage) bool {
		return sequence(r) == a.BatchItemFailures[0].ItemIdentifier
	})
	if done < 0 || len(a.BatchItemFailures) > 1 {
		m.w.Fatalf("got the answer %s, want one record of the batch", text)
	}
	return done
}

// sequence returns the sequence number of a record.
func sequence(r json.RawMessage) string {
	var e events.DynamoDBEventRecord
	if json.Unmarshal(r, &e) != nil {
		return ""
	}
	return e.Change.SequenceNumber
}

// lines is the log of a function.
type lines struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// all returns the lines decoded. All of them have to be JSON objects.
func (l *lines) all(t *testing.T) (all []map[string]any) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range bytes.Lines(l.b.Bytes()) {
		m := make(map[string]any)
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatalf("the log has the line %s: %v", line, err)
		}
		all = append(all, m)
	}
	return all
}

// sum returns the sum of a metric.
func (l *lines) sum(t *testing.T, metric string) (sum int64) {
	t.Helper()
	for _, line := range l.all(t) {
		if n, ok := line[metric].(float64); ok && line["_aws"] != nil {
			sum += int64(n)
		}
	}
	return sum
}

// count returns the number of lines with a field.
func (l *lines) count(t *testing.T, field string) (n int) {
	t.Helper()
	for _, line := range l.all(t) {
		if line[field] != nil {
			n++
		}
	}
	return n
}

// isolated returns the reasons of the isolated records.
func (l *lines) isolated(t *testing.T) (reasons []string) {
	t.Helper()
	for _, line := range l.all(t) {
		if reason, ok := line["reason"].(string); ok && line["record"] != nil {
			reasons = append(reasons, reason)
		}
	}
	return reasons
}
