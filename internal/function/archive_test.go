package function_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-limiter/weir/aggregator"
	"github.com/weir-limiter/weir/dynamodb"
	"github.com/weir-limiter/weir/internal/schema"
)

// memoryArchive keeps objects in memory, after it has failed some times.
type memoryArchive struct {
	mu      sync.Mutex // guards the fields below
	fail    int
	objects map[string][]byte
}

func (a *memoryArchive) Put(_ context.Context, key string, body []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.fail > 0 {
		a.fail--
		return errors.New("the bucket does not answer")
	}
	if a.objects == nil {
		a.objects = make(map[string][]byte)
	}
	a.objects[key] = body
	return nil
}

// expire deletes the audit events of the table by hand. change makes the records of some of these
// deletions those of items that have expired, as DynamoDB does.
func (w *world) expire() (change func([]json.RawMessage), expired map[string]bool) {
	w.Helper()
	expired = make(map[string]bool)
	kept := false
	for _, item := range w.items(schema.SKAuditPrefix) {
		key, err := schema.KeyOf(item)
		if err != nil {
			w.Fatal(err)
		}
		if _, err := w.client.DeleteItem(w.Context(), &ddb.DeleteItemInput{
			TableName: &w.table.Name, Key: key.Item(),
		}); err != nil {
			w.Fatal(err)
		}
		if !kept { // this one stays a deletion by hand
			kept = true
			continue
		}
		expired[key.SK] = true
	}
	return func(records []json.RawMessage) {
		for i, r := range records {
			var e events.DynamoDBEventRecord
			if err := json.Unmarshal(r, &e); err != nil {
				w.Fatal(err)
			}
			if e.EventName != "REMOVE" || !expired[e.Change.Keys[schema.AttrSK].String()] {
				continue
			}
			e.UserIdentity = &events.DynamoDBUserIdentity{
				Type: "Service", PrincipalID: "dynamodb.amazonaws.com",
			}
			var err error
			if records[i], err = json.Marshal(e); err != nil {
				w.Fatal(err)
			}
		}
	}, expired
}

// TestArchive checks that expired audit events get into the archive, and deletions by hand do not;
// that a batch whose object fails is sent again from there, and its usage is counted nevertheless.
func TestArchive(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.use(30, "acme")
	w.administer(4)
	if _, err := w.table.Aggregate(t.Context(), &dynamodb.AggregateOptions{Once: true}); err != nil {
		t.Fatal(err)
	}
	want := w.usage()
	w.forget()
	w.archive = &memoryArchive{fail: 2}
	m := &mapping{w: w, batch: 1000}
	var expired map[string]bool
	m.change, expired = w.expire()
	m.deliver(w.function(), 10)
	if m.failures != 2 || w.log.count(t, "from") != 2 {
		t.Errorf("%d batches failed, want 2 of which a part failed", m.failures)
	}
	w.equal(w.usage(), want)
	found := make(map[string]bool)
	for key, body := range w.archive.objects {
		if !strings.HasPrefix(key, "audit/year=") || !strings.Contains(key, "/audit-shardId-") {
			t.Errorf("got the key %s", key)
		}
		for e, err := range aggregator.ReadArchive(bytes.NewReader(body)) {
			if err != nil {
				t.Fatal(err)
			}
			found[schema.SKAuditPrefix+e.ID] = true
		}
	}
	if len(expired) == 0 || !maps.Equal(found, expired) {
		t.Errorf("got %v in the archive, want %v", found, expired)
	}
	if n := w.log.sum(t, "ArchivedEvents"); n != int64(len(expired)) {
		t.Errorf("%d events are in the metrics, want %d", n, len(expired))
	}
}

// TestIsolatedKept checks that a record that cannot be counted is kept in the archive, with its
// reason, and that its batch comes again until it is.
func TestIsolatedKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.use(20, "acme")
	w.archive = &memoryArchive{fail: 1}
	s := &spoiler{T: t, spoil: func(s string) string { return strings.Replace(s, `"NewImage"`, `"Image"`, 1) }}
	var spoiled []json.RawMessage
	m := &mapping{w: w, batch: 1000, change: func(records []json.RawMessage) {
		s.spoiled = 0 // the same record again
		before := slices.Clone(records)
		s.change(records)
		for i := range records {
			if !bytes.Equal(records[i], before[i]) {
				spoiled = append(spoiled, records[i])
			}
		}
	}}
	m.deliver(w.function(), 10)
	if m.failures != 1 || len(spoiled) != 2 || len(w.archive.objects) != 1 {
		t.Fatalf("%d batches failed, %d records were spoiled, objects %v; want 1, 2 and one",
			m.failures, len(spoiled), slices.Collect(maps.Keys(w.archive.objects)))
	}
	for key, body := range w.archive.objects {
		z, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		var kept struct {
			Reason string          `json:"reason"`
			Record json.RawMessage `json:"record"`
		}
		if err := json.Unmarshal(text, &kept); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(key, "isolated/shardId-") || !strings.HasSuffix(key, ".jsonl.gz") ||
			!strings.Contains(kept.Reason, "after the write") || !bytes.Equal(kept.Record, spoiled[0]) {
			t.Errorf("got %s: %s", key, text)
		}
	}
}
