package function_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-limiter/weir/dynamodb"
	"github.com/weir-limiter/weir/internal/function"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/testkit"
)

// TestEqualsAggregate checks that recorded batches of a table's stream, sent to the function, lead to
// the same usage items as weir aggregate on the same stream: also if each batch is sent twice, and if
// both work on the table.
func TestEqualsAggregate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.use(120, "acme", "globex", "a.b-c")
	a, err := w.table.Aggregate(t.Context(), &dynamodb.AggregateOptions{Once: true})
	if err != nil {
		t.Fatal(err)
	}
	want := w.usage()
	w.forget()
	f := w.function()
	m := &mapping{w: w, batch: 30}
	m.deliver(f, 1000)
	w.equal(w.usage(), want)
	if n := w.log.sum(t, "CountedRecords"); n != a.Counted {
		t.Errorf("the function counted %d records, weir aggregate %d", n, a.Counted)
	}
	t.Logf("%d records counted in %d invocations", a.Counted, m.invocations)

	again := &mapping{w: w, batch: 7}
	again.deliver(w.function(), 1000)
	if _, err := w.table.Aggregate(t.Context(), &dynamodb.AggregateOptions{Once: true}); err != nil {
		t.Fatal(err)
	}
	w.equal(w.usage(), want)
}

// TestPoison checks that a record that cannot be read is isolated with its reason, and that all others
// count, in each way in which a record can be unreadable.
func TestPoison(t *testing.T) {
	t.Parallel()
	replace := func(find, put string) func(string) string {
		return func(s string) string { return strings.Replace(s, find, put, 1) }
	}
	for name, c := range map[string]struct {
		spoil  func(string) string
		reason string
		// marked reports whether the hour of the record can be known, and counted whether the other
		// limits of the record can.
		marked, counted bool
	}{
		"type of an attribute": {
			replace(`"b_tpm_tc":{"N"`, `"b_tpm_tc":{"Q"`), "unsupported DynamoDB attribute type", true, false,
		},
		"number of one limit": {replace(`"b_rpm_tc":{"N":"`, `"b_rpm_tc":{"N":"x`), "b_rpm_tc", false, true},
		"no item after it": {
			replace(`"NewImage"`, `"Image"`), "does not have the item after the write", true, false,
		},
		"no sequence number": {replace(`"SequenceNumber"`, `"Number"`), "sequence number", false, false},
		"no key":             {replace(`"Keys"`, `"Key"`), "PK", false, false},
		"no record":          {func(string) string { return `"record"` }, "cannot unmarshal", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.use(60, "acme")
			a, err := w.table.Aggregate(t.Context(), &dynamodb.AggregateOptions{Once: true})
			if err != nil {
				t.Fatal(err)
			}
			w.forget()
			s := &spoiler{T: t, spoil: c.spoil}
			m := &mapping{w: w, batch: 1000, change: s.change}
			m.deliver(w.function(), 10)
			if s.spoiled != 1 || m.failures > 0 {
				t.Fatalf("%d records spoiled; %d batches failed", s.spoiled, m.failures)
			}
			if reasons := w.log.isolated(t); len(reasons) != 1 || !strings.Contains(reasons[0], c.reason) {
				t.Errorf("got the reasons %q, want one with %q", reasons, c.reason)
			}
			if n := w.log.sum(t, "IsolatedRecords"); n != 1 {
				t.Errorf("%d records isolated, want 1", n)
			}
			gaps := len(w.items(schema.SKAggregator + "#GAP#"))
			if gaps > 0 != c.marked {
				t.Errorf("%d hours are marked as incomplete, want any: %t", gaps, c.marked)
			}
			want := a.Counted - 1
			if c.counted {
				want++
			}
			if n := w.log.sum(t, "CountedRecords"); n != want {
				t.Errorf("%d records counted, want %d", n, want)
			}
		})
	}
}

// spoiler makes one record of the write of a bucket item unreadable.
type spoiler struct {
	*testing.T
	spoil   func(string) string
	spoiled int
}

func (s *spoiler) change(records []json.RawMessage) {
	for i, r := range records {
		var b bytes.Buffer
		if err := json.Compact(&b, r); err != nil {
			s.Fatal(err)
		}
		text := b.String()
		if s.spoiled > 0 || !strings.Contains(text, `"MODIFY"`) || !strings.Contains(text, "b_tpm_tc") {
			continue
		}
		if changed := s.spoil(text); changed != text {
			s.spoiled++
			records[i] = json.RawMessage(changed)
		}
	}
}

// TestFailingTable checks that nothing is lost or counted twice if the table fails: always for a
// while, for one entity, or now and then, also after it has made the write.
func TestFailingTable(t *testing.T) {
	t.Parallel()
	usageOf := func(entity string) func(*testkit.FaultRequest) bool {
		return func(r *testkit.FaultRequest) bool {
			return bytes.Contains(r.Body, []byte("/ENTITY#"+entity)) &&
				bytes.Contains(r.Body, []byte(schema.SKUsagePrefix))
		}
	}
	for name, c := range map[string]struct {
		rules []testkit.FaultRule
		// fails reports whether batches fail, because repeating a write within a batch does not help,
		// and partly whether only a part of them does.
		fails, partly bool
	}{
		"whole table": {[]testkit.FaultRule{
			{Fault: testkit.Refuse, PerMille: 1000, Most: 5, Code: "AccessDeniedException"},
		}, true, false},
		"one entity": {[]testkit.FaultRule{{
			Fault: testkit.Refuse, PerMille: 1000, Most: 3, Code: "AccessDeniedException",
			Match: usageOf("globex"),
		}}, true, true},
		"now and then": {[]testkit.FaultRule{
			{Fault: testkit.LostAnswer, PerMille: 60}, {Fault: testkit.FailAfter, PerMille: 60},
			{Fault: testkit.Throttle, PerMille: 60}, {Fault: testkit.Fail, PerMille: 60},
		}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.use(100, "acme", "globex", "initech")
			if _, err := w.table.Aggregate(t.Context(), &dynamodb.AggregateOptions{Once: true}); err != nil {
				t.Fatal(err)
			}
			want := w.usage()
			w.forget()
			faults := testkit.NewFaults(&testkit.FaultOptions{Seed: 7, Rules: c.rules})
			f := w.function(func(o *ddb.Options) { faults.Install(o) })
			m := &mapping{w: w, batch: 40}
			m.deliver(f, 1000)
			w.equal(w.usage(), want)
			t.Logf("%d invocations, %d of them failed", m.invocations, m.failures)
			if n := w.log.sum(t, "Failures"); n != int64(m.failures) || c.fails && n == 0 {
				t.Errorf("%d batches failed and %d are in the metrics; want some: %t", m.failures, n, c.fails)
			}
			if n := w.log.count(t, "from"); c.partly && n != m.failures {
				t.Errorf("a part failed of %d of %d failed batches, want all", n, m.failures)
			}
		})
	}
}

// TestSchedule checks that an event of a schedule counts what no batch has brought.
func TestSchedule(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.use(10, "acme")
	w.record() // the stream has everything
	answer, err := w.function().Handle(t.Context(), json.RawMessage(
		`{"version": "0", "source": "aws.events", "detail-type": "Scheduled Event", "detail": {}}`))
	if err != nil || answer != nil {
		t.Fatalf("got %v, %v", answer, err)
	}
	if len(w.usage()) != 1 || w.log.sum(t, "CountedRecords") == 0 {
		t.Errorf("got %d usage items, want 1", len(w.usage()))
	}
}

// TestBadEvents checks that events of something else are errors that say what to do.
func TestBadEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.function()
	for name, c := range map[string]struct{ event, want string }{
		"no JSON":     {`{`, "cannot be read"},
		"other event": {`{"source": "aws.s3"}`, "neither a batch"},
		"no window":   {`{"Records": [{}]}`, "TumblingWindowInSeconds"},
		"other stream": {
			`{"shardId": "s", "Records": [{"eventSourceARN": "arn:aws:kinesis:x"}]}`, "DynamoDB stream",
		},
		"a list": {`[]`, "cannot be read"},
	} {
		_, err := f.Handle(t.Context(), json.RawMessage(c.event))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
}

// TestReplacedStream checks that batches of a stream that the table no longer has are left out, and
// that the end of a window is no error.
func TestReplacedStream(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.use(5, "acme")
	f := w.function()
	m := &mapping{w: w, change: func(records []json.RawMessage) {
		for i, r := range records {
			var e map[string]any
			if err := json.Unmarshal(r, &e); err != nil {
				t.Fatal(err)
			}
			e["eventSourceARN"] = "arn:aws:dynamodb:ddblocal:000000000000:table/" + w.table.Name +
				"/stream/2020-01-01T00:00:00.000"
			var err error
			if records[i], err = json.Marshal(e); err != nil {
				t.Fatal(err)
			}
		}
	}}
	m.deliver(f, 10)
	if got := w.usage(); len(got) > 0 {
		t.Errorf("got %v, want no usage", got)
	}
	if m.send(f, "shard", nil) != 0 {
		t.Error("the end of a window failed")
	}
}

// TestSettings checks the errors for settings of the environment, which name the variable.
func TestSettings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, value, want string }{
		{function.StoreEnv, "", "WEIR_STORE"},
		{function.StoreEnv, "memory:", "WEIR_STORE"},
		{function.RetentionEnv, "many", `WEIR_RETENTION_DAYS "many"`},
		{function.RetentionEnv, "0", `WEIR_RETENTION_DAYS "0"`},
		{function.RefillEnv, "yes", `WEIR_REFILL "yes"`},
		{function.LevelEnv, "loud", `WEIR_LOG_LEVEL "loud"`},
	} {
		env := map[string]string{function.StoreEnv: "dynamodb://limits?region=eu-central-1", c.name: c.value}
		_, err := function.New(t.Context(), func(n string) string { return env[n] }, &lines{}, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s=%q: got %v, want %s", c.name, c.value, err, c.want)
		}
	}
}
