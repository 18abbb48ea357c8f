package aggregator_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/aggregator"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/soak"
)

// eventItem returns the item of an event of the audit.
func eventItem(
	t testing.TB, namespace, entity string, n int, details map[string]any,
) schema.Item {
	t.Helper()
	at := start.Add(time.Duration(n) * time.Second)
	id, err := schema.NewULID(at.UnixMilli(), bytes.NewReader(fmt.Appendf(nil, "%010d", n)))
	if err != nil {
		t.Fatal(err)
	}
	e := schema.AuditEvent{
		Namespace: namespace, Entity: entity, ID: id, Timestamp: schema.Timestamp(at),
		Action: schema.ActionLimitsSet, Details: details, TTL: at.Unix() + 90*24*3600,
	}
	if n%2 == 0 {
		e.Principal, e.Resource = "ann", "gpt-4o"
	}
	item, err := e.Item()
	if err != nil {
		t.Fatal(err)
	}
	return item
}

// expired returns the record of the removal of an item because of its ttl.
func expired(t testing.TB, n int, item schema.Item) *aggregator.Record {
	t.Helper()
	key, err := schema.KeyOf(item)
	if err != nil {
		t.Fatal(err)
	}
	return &aggregator.Record{
		Sequence: strconv.Itoa(n), Position: position(n), At: start.AddDate(0, 3,
			0), Kind: aggregator.Removed, Expired: true,
		Key: key, Old: item,
	}
}

// archived returns the objects of records.
func archived(t testing.TB, records []*aggregator.Record) []*aggregator.ArchiveObject {
	t.Helper()
	objects, err := aggregator.Archive("shardId-1-ab", records,
		map[string]string{"ns": "default"})
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// events returns the events of objects, and what cannot be read.
func events(
	objects ...*aggregator.ArchiveObject,
) (list []*aggregator.ArchivedEvent, errs []error) {
	for _, o := range objects {
		for e, err := range aggregator.ReadArchive(bytes.NewReader(o.Body)) {
			if err != nil {
				errs = append(errs, err)
				continue
			}
			list = append(list, e)
		}
	}
	return list, errs
}

// hostileDetails are details that are hard to keep.
func hostileDetails() map[string]any {
	var deep any = "bottom"
	for i := range 28 {
		deep = map[string]any{"n" + strconv.Itoa(i): deep}
	}
	return map[string]any{
		"quotes": "\"'\\\x60", "html": "<a href=\"&\">",
		"lines": "a\nb\r\nc\u2028d\u2029e\x00\x1f",
		"long":  strings.Repeat("ü€😀\"\n", 64<<10/12), "": "no name", "päth/\"\n": "key",
		"beyond 2^53": int64(1<<53 +
			1), "beyond 64 bits": json.Number("123456789012345678901.78"),
		"most": int64(math.MaxInt64), "least": int64(math.MinInt64), "minus": json.Number("-0.5"),
		"exponent": json.Number("1E-130"), "fraction": json.Number("0.1000"),
		"nil": nil, "yes": true, "no": false, "deep": deep,
		"empty": map[string]any{}, "none": []any{},
		"list":  []any{int64(1), "2", nil, []any{map[string]any{"x": json.Number("1.5")}}},
		"bytes": &types.AttributeValueMemberB{Value: []byte{0, 255, '"'}},
		"set":   &types.AttributeValueMemberSS{Value: []string{"b", "a\n"}},
		"deeper": map[string]any{
			"numbers": &types.AttributeValueMemberNS{Value: []string{"9007199254740993", "-1"}},
			"blobs":   []any{&types.AttributeValueMemberBS{Value: [][]byte{{1}, {2, 3}}}},
		},
		"typed": map[string]any{"S": "not a type"},
	}
}

// TestArchiveEvents checks that what is read back equals what was in the table.
func TestArchiveEvents(t *testing.T) {
	t.Parallel()
	var records []*aggregator.Record
	var want []*aggregator.ArchivedEvent
	for i, c := range []struct {
		namespace, entity string
		details           map[string]any
	}{
		{"ns", "acme", hostileDetails()}, {"other", "acme", hostileDetails()},
		{"ns", "acme", nil}, {"ns", "a/b#c \"\n\u2028😀", map[string]any{}},
		{"ns", schema.AuditSystem, map[string]any{"n": int64(1)}},
		{"ns", schema.AuditResource("m<o>d"), map[string]any{"s": "x"}},
	} {
		item := eventItem(t, c.namespace, c.entity, i, c.details)
		if c.details == nil {
			delete(item, schema.AttrDetails)
		}
		records = append(records, expired(t, i+1, item))
		e, err := schema.ParseAuditEvent(item)
		if err != nil {
			t.Fatal(err)
		}
		read := &aggregator.ArchivedEvent{NamespaceID: c.namespace, AuditEvent: weir.AuditEvent{
			ID: e.ID, At: start.Add(time.Duration(i) * time.Second), Action: e.Action, Entity: e.Entity,
			Principal: e.Principal, Resource: e.Resource, Details: e.Details,
		}}
		if c.namespace == "ns" {
			read.Namespace = "default"
		}
		want = append(want, read)
	}
	objects := archived(t, records)
	got, errs := events(objects...)
	if len(objects) != 1 || len(errs) > 0 || len(got) != len(want) {
		t.Fatalf("got %d objects, %d events, %v", len(objects), len(got), errs)
	}
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("got  %+v\nwant %+v", got[i], want[i])
		}
	}
}

// TestArchiveObjects checks keys, lines, and which records are archived.
func TestArchiveObjects(t *testing.T) {
	t.Parallel()
	first := expired(t, 700, eventItem(t, "ns", "acme", 0, map[string]any{"n": int64(1<<53 + 1)}))
	second := expired(t, 800, eventItem(t, "other", "acme", 1,
		map[string]any{"b": &types.AttributeValueMemberB{Value: []byte("x")}}))
	second.Old["later"] = schema.String("attribute")
	next := expired(t, 750, eventItem(t, "ns", "acme", 86400, nil))
	manual := expired(t, 760, eventItem(t, "ns", "acme", 3, nil))
	manual.Expired = false
	changed := expired(t, 770, eventItem(t, "ns", "acme", 4, nil))
	changed.Kind = aggregator.Modified
	bucket := expired(t, 780, image(acme, counts{"rpm": 1000}))
	objects := archived(t, []*aggregator.Record{first, next, manual, changed, bucket, second,
		first})
	if len(objects) != 2 {
		t.Fatalf("got %d objects, want 2", len(objects))
	}
	equal(t, "key", objects[0].Key,
		"audit/year=2026/month=03/day=31/audit-shardId-1-ab-700-800.jsonl.gz")
	equal(t, "key", objects[1].Key,
		"audit/year=2026/month=04/day=01/audit-shardId-1-ab-750-750.jsonl.gz")
	equal(t, "events", objects[0].Events, 2)
	z, err := gzip.NewReader(bytes.NewReader(objects[0].Body))
	if err != nil || !z.ModTime.IsZero() || z.Name != "" {
		t.Fatalf("got %+v, %v", z, err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "lines", string(text),
		`{"event_id":"01KN34VP2060R30C1G60R30C1G","namespace":"default",`+
			`"namespace_id":"ns","entity_id":"acme","action":"limits_set","timestamp":"2026-03-31T23:50:00Z",`+
			`"principal":"ann","resource":"gpt-4o","details":{"n":9007199254740993}}
{"event_id":"01KN34VQ1860R30C1G60R30C1H","namespace":null,"namespace_id":"other","entity_id":"acme",`+
			`"action":"limits_set","timestamp":"2026-03-31T23:50:01Z","principal":null,"resource":null,`+
			`"details":{"b":{"Value":"eA=="}},"typed":{"details":{"M":{"b":{"B":"eA=="}}}},`+
			`"other_attributes":{"later":{"S":"attribute"}}}
`)
	for i, o := range archived(t, []*aggregator.Record{bucket, second, next, first}) {
		equal(t, "key", o.Key, objects[i].Key)
		equal(t, "bytes", string(o.Body), string(objects[i].Body))
	}
}

// TestArchiveUnreadable checks that an item that cannot be read is kept as it is, that readers
// report it, and that the others are read.
func TestArchiveUnreadable(t *testing.T) {
	t.Parallel()
	good := expired(t, 1, eventItem(t, "ns", "acme", 0, nil))
	type change func(r *aggregator.Record)
	set := func(name string, value types.AttributeValue) change {
		return func(r *aggregator.Record) { r.Old[name] = value }
	}
	key := func(pk, sk string) change {
		return func(r *aggregator.Record) { rekey(r, cmp.Or(pk, r.Key.PK), cmp.Or(sk, r.Key.SK)) }
	}
	noNumber := &types.AttributeValueMemberM{Value: schema.Item{"n": number("0x1F")}}
	for _, c := range []struct {
		words string
		spoil change
	}{
		{"action is missing", set(schema.AttrAction, schema.String(""))},
		{"attribute action", set(schema.AttrAction, schema.Null())},
		{"attribute details", set(schema.AttrDetails, schema.String("x"))},
		{`timestamp "yesterday"`, set(schema.AttrTimestamp, schema.String("yesterday"))},
		{"have the item", func(r *aggregator.Record) { r.Old = nil }},
		{"another key", func(r *aggregator.Record) { r.Key.SK += "0" }},
		{"event_id is missing", key("", schema.SKAuditPrefix)},
		{"entity_id is missing", key(schema.AuditPK("ns", ""), "")},
		{"is not that of an audit event", key("ns/ENTITY#acme", "")},
		{"has no namespace", key("acme", "")},
		{"invalid number literal", set(schema.AttrDetails, noNumber)},
	} {
		r := expired(t, 2, eventItem(t, "ns", "acme", 1, map[string]any{"kept": "as it is"}))
		c.spoil(r)
		objects := archived(t, []*aggregator.Record{good, r})
		var lines int
		for _, o := range objects {
			lines += o.Events
		}
		got, errs := events(objects...)
		if lines != 2 || len(got) != 1 || len(errs) != 1 || !strings.Contains(errs[0].Error(),
			c.words) {
			t.Errorf("%s: got %d lines, %d events, %v", c.words, lines, len(got), errs)
		}
		_, isLine := errors.AsType[*aggregator.LineError](errs[0])
		text := expanded(t, objects)
		if !isLine || !strings.Contains(text, `"item":{"`) || r.Old != nil &&
			!strings.Contains(text, r.Key.PK) {
			t.Errorf("%s: got the error %v for %s", c.words, errs[0], text)
		}
	}
}

func rekey(r *aggregator.Record, pk, sk string) {
	r.Key = schema.Key{PK: pk, SK: sk}
	r.Old[schema.AttrPK], r.Old[schema.AttrSK] = schema.String(pk), schema.String(sk)
	delete(r.Old, schema.AttrEntity)
	delete(r.Old, "event_id")
}

// expanded returns the text of objects.
func expanded(t *testing.T, objects []*aggregator.ArchiveObject) string {
	t.Helper()
	var all strings.Builder
	for _, o := range objects {
		z, err := gzip.NewReader(bytes.NewReader(o.Body))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(&all, z); err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}

// TestArchiveBorders has readers read batches with any borders. They are killed after any object,
// and begin again at the checkpoint; a slow one comes after the checkpoint has moved. Whatever
// replaces what, each event is in an object.
func TestArchiveBorders(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(soak.Seed(t), 0))
	for round := range soak.Amount(50, 2000) {
		var records []*aggregator.Record
		n := 30 + rng.IntN(30)
		for i := range n {
			records = append(records, expired(t, i+1,
				eventItem(t, "ns", "acme", rng.IntN(3)*86400+i, nil)))
		}
		bucket := make(map[string]*aggregator.ArchiveObject)
		type reader struct{ at, to int }
		readers := []*reader{{}, {}, {}}
		checkpoint := 0
		for checkpoint < n {
			r := readers[rng.IntN(len(readers))]
			if r.at >= n || rng.IntN(5) == 0 {
				r.at = checkpoint // it was killed, and began again
			}
			r.to = min(n, r.at+1+rng.IntN(12))
			objects := archived(t, records[r.at:r.to])
			killed := rng.IntN(3) == 0
			for i, o := range objects {
				if killed && i == rng.IntN(len(objects)) {
					break
				}
				bucket[o.Key] = o
			}
			if killed {
				r.at = checkpoint
				continue
			}
			r.at, checkpoint = r.to, max(checkpoint, r.to)
		}
		ids := make(map[string]bool)
		for _, o := range bucket {
			list, errs := events(o)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			for _, e := range list {
				ids[e.ID] = true
			}
		}
		if len(ids) != n {
			t.Fatalf("round %d: got %d events, want %d", round, len(ids), n)
		}
	}
}
