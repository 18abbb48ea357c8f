package function_test

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/weir-limiter/weir/dynamodb"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/provision"
)

// TestFilter checks the filter of the stack, which is also that of the documentation, by the matcher
// of patterns in moto: of a real stream it lets through the records of bucket items and no others,
// and of removed audit events those that have expired.
func TestFilter(t *testing.T) {
	t.Parallel()
	python := testkit.ZAE(t)
	patterns := provision.StreamFilter()
	if documented := documentedFilter(t); !slices.Equal(documented, patterns) {
		t.Errorf("docs/aggregator.md has the filter %q, the stack has %q", documented, patterns)
	}
	w := newWorld(t)
	w.use(20, "acme", "globex")
	if _, err := w.table.Aggregate(t.Context(), &dynamodb.AggregateOptions{Once: true}); err != nil {
		t.Fatal(err)
	}
	w.forget()
	_, byShard := w.record()
	var records []json.RawMessage
	for _, of := range byShard {
		records = append(records, of...)
	}
	expired := removedEvent(t, &events.DynamoDBUserIdentity{Type: "Service", PrincipalID: "dynamodb.amazonaws.com"})
	records = append(records, expired, removedEvent(t, nil))

	input, err := json.Marshal(map[string]any{"patterns": patterns, "records": records})
	if err != nil {
		t.Fatal(err)
	}
	cmd := python.Command(t.Context(), "python", "testdata/filter.py")
	cmd.Stdin = bytes.NewReader(input)
	var passes []bool
	if err := json.Unmarshal([]byte(testkit.Run(t, cmd)), &passes); err != nil || len(passes) != len(records) {
		t.Fatalf("got %d answers for %d records: %v", len(passes), len(records), err)
	}
	counts := make(map[bool]int)
	for i, r := range records[:len(records)-2] {
		var e events.DynamoDBEventRecord
		if err := json.Unmarshal(r, &e); err != nil {
			t.Fatal(err)
		}
		sk := e.Change.Keys[schema.AttrSK].String()
		if want := sk == schema.SKState; passes[i] != want {
			t.Errorf("the filter lets a record of %q through: %t, want %t", sk, passes[i], want)
		}
		counts[passes[i]]++
	}
	if counts[true] == 0 || counts[false] == 0 {
		t.Errorf("%d records of the stream passed, %d did not; want some of each", counts[true], counts[false])
	}
	if last := passes[len(passes)-2:]; !last[0] || last[1] {
		t.Errorf("an expired audit event passes: %t, a deleted one: %t; want true and false", last[0], last[1])
	}
	t.Logf("%d records of the stream passed, %d did not", counts[true], counts[false])
}

// documentedFilter returns the patterns of filter.json in docs/aggregator.md.
func documentedFilter(t *testing.T) (patterns []string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/aggregator.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(page), "```json\n")
	text, _, closed := strings.Cut(text, "```")
	var filter struct{ Filters []struct{ Pattern string } }
	if err := json.Unmarshal([]byte(text), &filter); err != nil || !found || !closed {
		t.Fatalf("docs/aggregator.md has no filter: %v", err)
	}
	for _, f := range filter.Filters {
		patterns = append(patterns, f.Pattern)
	}
	return patterns
}

// removedEvent returns the record of an audit event that was removed.
func removedEvent(t *testing.T, by *events.DynamoDBUserIdentity) json.RawMessage {
	t.Helper()
	key := schema.AuditKey("ns", "acme", "01KB00000000000000000000AA")
	e := events.DynamoDBEventRecord{
		EventID: "1", EventName: "REMOVE", EventSource: "aws:dynamodb", UserIdentity: by,
		Change: events.DynamoDBStreamRecord{
			Keys: map[string]events.DynamoDBAttributeValue{
				schema.AttrPK: events.NewStringAttribute(key.PK), schema.AttrSK: events.NewStringAttribute(key.SK),
			},
			SequenceNumber: "100000000000000000001",
		},
	}
	e.Change.ApproximateCreationDateTime.Time = time.Unix(1_790_000_000, 0)
	raw, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
