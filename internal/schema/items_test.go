package schema_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
)

// samples returns one item of each kind that the golden files lack, or have without some
// attributes.
func samples(t testing.TB) []schema.Item {
	t.Helper()
	extra := schema.Item{"later": schema.StringSet("x", "y")}
	entity := schema.Entity{
		Namespace: "ns", ID: "bot", Parent: "acme", Version: 3, Extra: extra,
		Metadata: map[string]any{
			"n": json.Number("1.50"), "deep": []any{nil, true, int64(-1), map[string]any{}},
		},
	}
	event := schema.AuditEvent{
		Namespace: "ns", Entity: "bot", ID: "01M7YE70Y93TREE97AWB8B04H4", Action: "later", Extra: extra,
	}
	return []schema.Item{
		ok[schema.Item](t)(entity.Item()),
		ok[schema.Item](t)(event.Item()),
		(&schema.Usage{
			Namespace: "ns", Entity: "bot", Resource: "a/b", Window: weir.Monthly, WindowKey: "2024-01",
			Start: "2024-01-01T00:00:00Z", Events: 2, Counters: map[string]int64{"r.p_m": 5, "tpm": -1},
			Overdrawn: map[string]int64{"tpm": 1}, TTL: 9, Extra: extra,
		}).Item(),
		(&schema.Provisioner{Namespace: "ns", Extra: extra}).Item(),
		(&schema.Provisioner{Namespace: "own", Extra: extra, Own: &schema.OwnDeclared{
			Entities: []string{"a", "b"}, Policy: true, Retention: true, Again: []string{"b"},
			Revision: 7, AppliedBy: "ann",
		}}).Item(),
		(&schema.ApplyMark{Namespace: "ns", ID: "X", By: "ann", AtMS: 9, Extra: extra}).Item(),
		(&schema.Resources{Namespace: "ns", Extra: extra}).Item(),
		(&schema.EntityConfigResources{Namespace: "ns", Extra: extra}).Item(),
		(&schema.Version{Schema: "0.10.0", Extra: extra}).Item(),
		(&schema.Namespace{Name: "a", ID: "b", Extra: extra}).Item(),
		bucketItem(t, extra),
		configItem(extra),
	}
}

// TestSamplesRoundTrip decodes each sample and encodes it again. Each has one unknown attribute,
// which ends up in Extra.
func TestSamplesRoundTrip(t *testing.T) {
	t.Parallel()
	kinds := map[string]bool{}
	for _, item := range samples(t) {
		kind, encoded, extra, err := again(item)
		if err != nil || extra != 1 {
			t.Errorf("item %s: %d attributes travelled raw, error %v", keyOf(item), extra, err)
			continue
		}
		kinds[kind] = true
		sameItems(t, encoded, item)
		if encoded["GSI4PK"] == nil || encoded["GSI4SK"] == nil {
			t.Errorf("item %s is not in GSI4", keyOf(item))
		}
	}
	if len(kinds) != 12 {
		t.Errorf("got %d kinds, want all twelve: %v", len(kinds), kinds)
	}
}

// TestMalformedSamples replaces each attribute of each sample with a value that it never has.
func TestMalformedSamples(t *testing.T) {
	t.Parallel()
	wrong := &types.AttributeValueMemberB{Value: []byte("?")}
	n := 0
	for _, item := range samples(t) {
		for name, value := range item {
			if strings.HasPrefix(name, "GSI") || name == "later" || name == "config_version" ||
				name == "disabled" || name == "r.p_m" || strings.HasPrefix(name, "tpm") {
				continue
			}
			item[name] = wrong
			if _, _, _, err := again(item); err == nil {
				t.Errorf("item %s: a malformed attribute %s is accepted", keyOf(item), name)
			} else if name != "PK" && name != "SK" {
				checkMalformed(t, err, name, "")
			}
			item[name] = value
			n++
		}
	}
	t.Log(n, "attributes")
}

func TestEntity(t *testing.T) {
	t.Parallel()
	item := ok[schema.Item](t)((&schema.Entity{Namespace: "ns", ID: "bot"}).Item())
	got := ok[*schema.Entity](t)(schema.ParseEntity(item))
	if got.ID != "bot" || got.Namespace != "ns" || got.Version != 0 || got.Mark() != "-" ||
		got.Extra != nil {
		t.Errorf("got %+v", got)
	}
	if item["version"] != nil || item["pgen"] != nil || item["GSI1PK"] != nil {
		t.Errorf("an entity written by the library is encoded as %v", item)
	}
	got.CreatedAt = "2024-01-01T00:00:00Z"
	if got.Mark() != got.CreatedAt {
		t.Errorf("got mark %q", got.Mark())
	}
	got.Incarnation = "ab"
	if got.Mark() != "ab" {
		t.Errorf("got mark %q", got.Mark())
	}
	got.Metadata = map[string]any{"a": map[string]any{"b": []any{1.5}}}
	_, err := got.Item()
	if err == nil || err.Error() != "metadata.a.b[0]: a float64 cannot be stored" {
		t.Errorf("got error %v", err)
	}
	event := schema.AuditEvent{Details: map[string]any{"x": struct{}{}}}
	if _, err := event.Item(); err == nil || err.Error() != "details.x: a struct {} cannot be stored" {
		t.Errorf("got error %v", err)
	}
}

func TestReservedNames(t *testing.T) {
	t.Parallel()
	used := map[string]int64{"window": 1, "ttl": 2, "PK": 3, "rpm": 4}
	u := schema.Usage{Namespace: "ns", Counters: used}
	if item := u.Item(); show(item["window"]) != show(schema.String("")) || item["ttl"] != nil ||
		show(item["rpm"]) != show(schema.Number(4)) {
		t.Errorf("got %v", item)
	}
	counts := map[string]int64{"SK": 1, "LSI3SK": 1, "a": 2}
	c := schema.EntityConfigResources{Namespace: "ns", Counts: counts}
	if item := c.Item(); show(item["SK"]) != show(schema.String("#ENTITY_CONFIG_RESOURCES")) ||
		item["LSI3SK"] != nil || show(item["a"]) != show(schema.Number(2)) {
		t.Errorf("got %v", item)
	}
}

func TestDetails(t *testing.T) {
	t.Parallel()
	e := &schema.Entity{ID: "bot", Name: "bot", Parent: "acme", Generation: 8}
	off := false
	for _, c := range []struct {
		got  map[string]any
		want string
	}{
		{schema.CreatedDetails(e), `{"cascade":false,"metadata":{},"name":"bot","parent_id":"acme"}`},
		{schema.DeletedDetails(3, true), `{"complete":true,"records_deleted":3}`},
		{schema.ParentChangedDetails("", e, 2),
			`{"buckets_stamped":2,"old_parent_id":null,"parent_id":"acme","pgen":8}`},
		{schema.SystemDeletedDetails(systemLimits, ""), `{"limits":["rpm","tpm"],"on_unavailable":null}`},
		{schema.AccessDetails(schema.AccessOff, 1), `{"buckets_stamped":1,"disabled":true}`},
		{schema.AccessDetails(schema.AccessOn, 1), `{"buckets_stamped":1,"disabled":false}`},
		{schema.AccessDetails(schema.AccessBypass, 1), `{"buckets_stamped":1,"disabled":"bypass"}`},
		{schema.AccessDetails(schema.AccessInherit, 0), `{"buckets_stamped":0,"disabled":null}`},
		{schema.CascadeDetails(nil, 0), `{"buckets_stamped":0,"cascade":null}`},
		{schema.CascadeDetails(&off, 4), `{"buckets_stamped":4,"cascade":false}`},
		{schema.LimitsDetails(nil), `{"limits":[]}`},
	} {
		if got := string(marshal(t, c.got)); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
		if _, err := schema.EncodeMap(c.got); err != nil {
			t.Errorf("%s: %v", c.want, err)
		}
	}
}

func TestWindows(t *testing.T) {
	t.Parallel()
	west := time.FixedZone("west", -3600)
	at := time.Date(2024, 12, 31, 23, 59, 59, 999, west) // 2025-01-01 00:59:59 UTC
	for _, c := range []struct {
		window          weir.UsageWindow
		start, end, key string
	}{
		{weir.Hourly, "2025-01-01T00:00:00Z", "2025-01-01T01:00:00Z", "2025-01-01T00:00:00Z"},
		{weir.Daily, "2025-01-01T00:00:00Z", "2025-01-02T00:00:00Z", "2025-01-01"},
		{weir.Monthly, "2025-01-01T00:00:00Z", "2025-02-01T00:00:00Z", "2025-01"},
		{"weekly", "2025-01-01T00:59:59Z", "2025-01-01T00:59:59Z", "2025-01-01T00:59:59Z"},
	} {
		start, end := schema.Timestamp(c.window.Start(at)), schema.Timestamp(c.window.End(at))
		if start != c.start || end != c.end || schema.WindowKey(c.window, at) != c.key {
			t.Errorf("%s: got %s to %s, key %s", c.window, start, end, schema.WindowKey(c.window, at))
		}
		u := schema.NewUsage(schema.BucketID{Namespace: "ns", Entity: "e", Resource: "r"}, c.window, at)
		item := u.Item()
		got := fmt.Sprint(keyOf(item), show(item["GSI2SK"]), show(item["window_start"]))
		want := fmt.Sprint("ns/ENTITY#e #USAGE#r#"+c.key, show(schema.String("USAGE#"+c.key+"#e")),
			show(schema.String(c.start)))
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if _, err := schema.ParseTimestamp("2025-01-01"); err == nil {
		t.Error("a date is parsed as a timestamp")
	}
	if got := schema.OffsetTimestamp(at); got != "2025-01-01T00:59:59+00:00" {
		t.Errorf("got %s", got)
	}
	at = at.Add(time.Millisecond)
	if got := schema.OffsetTimestamp(at); got != "2025-01-01T00:59:59.001000+00:00" {
		t.Errorf("got %s", got)
	}
}

func TestIDs(t *testing.T) {
	t.Parallel()
	dash := []byte{0xf8, 0, 0, 0, 0, 0, 0, 0} // "-AAA…"
	zero := make([]byte, 8)
	id := ok[string](t)(schema.NewNamespaceID(bytes.NewReader(append(bytes.Repeat(dash, 2), zero...))))
	if id != "AAAAAAAAAAA" {
		t.Errorf("got %q", id)
	}
	if id, err := schema.NewNamespaceID(bytes.NewReader(bytes.Repeat(dash, 100))); err == nil {
		t.Errorf("got %q from a source that is not random", id)
	}
	broken := iotest.ErrReader(fmt.Errorf("broken"))
	if _, err := schema.NewNamespaceID(broken); err == nil {
		t.Error("no error of a broken source")
	}
	if _, err := schema.NewIncarnation(broken); err == nil {
		t.Error("no error of a broken source")
	}
	if _, err := schema.NewULID(0, broken); err == nil {
		t.Error("no error of a broken source")
	}
	for _, ms := range []int64{-1, 1 << 48} {
		if id, err := schema.NewULID(ms, bytes.NewReader(make([]byte, 10))); err == nil {
			t.Errorf("%d ms: got %q", ms, id)
		}
	}
	before := ""
	for _, ms := range []int64{0, 1, 1_700_000_000_000, 1<<48 - 1} {
		id := ok[string](t)(schema.NewULID(ms, bytes.NewReader(make([]byte, 10))))
		back := ok[weir.LeaseID](t)(weir.ParseLeaseID(id))
		if id <= before || back.Time().UnixMilli() != ms {
			t.Errorf("%d ms: got %q after %q, which is of %v", ms, id, before, back.Time())
		}
		before = id
	}
}
