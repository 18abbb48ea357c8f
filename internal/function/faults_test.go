package function_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/testkit"
)

// replaceStream turns the stream of the table off and on again: then it is another one.
func (w *world) replaceStream() {
	w.Helper()
	for _, s := range []*ddbtypes.StreamSpecification{
		{StreamEnabled: new(false)},
		{StreamEnabled: new(true), StreamViewType: ddbtypes.StreamViewTypeNewAndOldImages},
	} {
		_, err := w.client.UpdateTable(w.Context(), &ddb.UpdateTableInput{
			TableName: &w.table.Name, StreamSpecification: s,
		})
		if err != nil {
			w.Fatal(err)
		}
	}
}

// TestNewStream checks that an instance which has just counted a batch of a stream counts those of
// the stream that replaced it.
func TestNewStream(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.use(5, "acme")
	f := w.function()
	(&mapping{w: w}).deliver(f, 10)
	w.replaceStream()
	w.use(5, "acme")
	w.use(5, "globex")
	(&mapping{w: w}).deliver(f, 10)
	got := w.usage()
	if len(got) != 2 {
		t.Errorf("got the usage %v, want that of acme and globex", got)
	}
}

// TestMarkFails checks that an hour is marked as incomplete although the first attempt to mark it
// fails.
func TestMarkFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.use(30, "acme", "globex")
	faults := testkit.NewFaults(&testkit.FaultOptions{Seed: 7, Rules: []testkit.FaultRule{
		{Fault: testkit.Refuse, PerMille: 1000, Match: func(r *testkit.FaultRequest) bool {
			return r.Operation == "UpdateItem" && bytes.Contains(r.Body, []byte("/ENTITY#globex")) &&
				bytes.Contains(r.Body, []byte(schema.SKUsagePrefix))
		}},
		{
			Fault: testkit.Refuse, PerMille: 1000, Most: 1, Code: "AccessDeniedException",
			Match: func(r *testkit.FaultRequest) bool {
				return r.Operation == "PutItem" && bytes.Contains(r.Body, []byte("#GAP#"))
			},
		},
	}})
	m := &mapping{w: w, batch: 1000}
	m.deliver(w.function(func(o *ddb.Options) { faults.Install(o) }), 10)
	if m.failures != 1 {
		t.Errorf("%d batches failed, want 1", m.failures)
	}
	if len(w.items(schema.SKAggregator+"#GAP#")) == 0 {
		t.Error("the usage of globex is not counted, and no hour is marked as incomplete")
	}
}

// TestManyIsolated checks that a batch of records that cannot be counted costs one object, so that
// the function has the time to write it: a bucket may have a limit that no record of it can be
// counted of.
func TestManyIsolated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.use(50, "acme")
	w.archive = &memoryArchive{}
	spoiled := 0
	m := &mapping{w: w, batch: 1000, change: func(records []json.RawMessage) {
		for i, r := range records {
			text := strings.ReplaceAll(string(r), `"b_rpm_tc":{"N":"`, `"b_rpm_tc":{"N":"x`)
			if text != string(r) {
				spoiled++
				records[i] = json.RawMessage(text)
			}
		}
	}}
	m.deliver(w.function(), 10)
	if len(w.archive.objects) > m.invocations {
		t.Errorf("got %d objects of %d isolated records, want at most one of each of %d batches",
			len(w.archive.objects), spoiled, m.invocations)
	}
	if spoiled == 0 || w.log.sum(t, "IsolatedRecords") != int64(spoiled) {
		t.Errorf("%d records isolated, want %d", w.log.sum(t, "IsolatedRecords"), spoiled)
	}
}

// TestForeignState checks that the state of a window from other code is left out: the batch would
// fail for as long as the stream keeps it.
func TestForeignState(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.use(5, "acme")
	f := w.function()
	shards, records := w.record()
	for _, state := range []string{
		`null`, `{}`, `[1]`, `"x"`, `{"writes": 5}`, `{"other": {"a": 1}}`, `{"writes": "{"}`,
		`{"writes": "[{\"i\":\"x\"}]"}`,
	} {
		batch, err := json.Marshal(records[shards[0]])
		if err != nil {
			t.Fatal(err)
		}
		answer, err := f.Handle(t.Context(), json.RawMessage(
			`{"shardId": "`+shards[0]+`", "state": `+state+`, "Records": `+string(batch)+`}`))
		if err != nil || answer == nil {
			t.Errorf("state %s: got %v, %v", state, answer, err)
		}
	}
}
