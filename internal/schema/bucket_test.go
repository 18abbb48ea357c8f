package schema_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir/internal/schema"
)

// bucketItem returns the item of a full bucket with one limit, changed by with. A nil value in with
// removes the attribute.
func bucketItem(t testing.TB, with schema.Item) schema.Item {
	t.Helper()
	id := schema.BucketID{Namespace: "ns", Entity: "bot", Resource: "gpt-4", Shard: 2}
	b := ok[*schema.Bucket](t)(schema.NewBucket(id, 1000, []schema.Limit{limit("r.p_m-x", 10, 5, 60)}))
	item := b.Item()
	for name, value := range with {
		if item[name] = value; value == nil {
			delete(item, name)
		}
	}
	return item
}

func TestBucketOfLaterVersion(t *testing.T) {
	t.Parallel()
	item := bucketItem(t, schema.Item{
		"vu": schema.Number(0), "disabled": schema.Bool(true), "shard_count": schema.Number(4),
		"pgen": schema.Number(0), "pinc": schema.String("-"), "parent_id": schema.String("acme"),
		"sched": schema.String("1;x"), "sched_tz": schema.String("UTC"), "bypass": schema.Number(5),
		"b_r.p_m-x_ws": schema.Number(7), "b_r.p_m-x_rsched": schema.String("-"),
		"b_r.p_m-x_soft": schema.Number(9), "b_r.p_m-x_new": schema.String("?"),
		"b_r.p_m-x_tk": schema.Number(-3), "b_day_cp": schema.Number(10), "b_day_ra": schema.Number(0),
		"b_day_rp": schema.Number(1000), "b_day_tk": schema.Number(2), "b_day_tc": schema.Number(-8),
		"b_x": schema.String("no field"), "tag": schema.Null(), "ttl": schema.Number(99),
	})
	b := ok[*schema.Bucket](t)(schema.ParseBucket(item))
	sameItems(t, b.Item(), item)
	got := fmt.Sprintln(b.ID(), b.Shards, *b.ValidUntil, b.Disabled, b.Stamped, b.Generation,
		b.Incarnation, b.Parent, b.Unjudged, b.TTL, b.RefilledMS, b.Stub)
	want := "ns/BUCKET#bot#gpt-4#2 4 0 true true 0 - acme [bypass sched sched_tz] 99 1000 false\n"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	limits := fmt.Sprintf("%+v", b.Limits)
	want = "[{Name:day Balance:2 Capacity:10 Refill:0 PeriodMS:1000 Consumed:-8 Incomplete:false " +
		"Unjudged:[ra]} {Name:r.p_m-x Balance:-3 Capacity:10000 Refill:5000 PeriodMS:60000 " +
		"Consumed:0 Incomplete:false Unjudged:[soft ws]}]"
	if limits != want {
		t.Errorf("got  %s\nwant %s", limits, want)
	}
	names := strings.Join(b.Attributes("r.p_m-x"), " ")
	want = "b_r.p_m-x_cp b_r.p_m-x_new b_r.p_m-x_ra b_r.p_m-x_rp b_r.p_m-x_rsched b_r.p_m-x_soft " +
		"b_r.p_m-x_tc b_r.p_m-x_tk b_r.p_m-x_ws"
	if names != want {
		t.Errorf("got  %s\nwant %s", names, want)
	}
	if b.Limit("day") == nil || b.Limit("night") != nil || b.Limit(schema.WritesLimit) != nil {
		t.Error("Limit finds a limit that does not exist, or misses one that does")
	}
	if names := b.Attributes(schema.WritesLimit); len(names) != 5 {
		t.Errorf("got %v of %s, want five", names, schema.WritesLimit)
	}
}

// TestBucketStub decodes the item that a refund leaves if the bucket was deleted, and encodes the
// same attributes and no others.
func TestBucketStub(t *testing.T) {
	t.Parallel()
	key := schema.BucketID{Namespace: "ns", Entity: "bot", Resource: "a/b"}.Key().Item()
	item := maps.Clone(key)
	item["b_rpm_tk"], item["b_rpm_tc"] = schema.Number(-5), schema.Number(5)
	item["b_wcu_tk"] = schema.Number(-1000)
	item["b_gone_sched"] = schema.String("-")
	b := ok[*schema.Bucket](t)(schema.ParseBucket(item))
	if !b.Stub || b.Shards != 1 || len(b.Limits) != 1 || b.Limit("gone") != nil {
		t.Errorf("got %+v", b)
	}
	if l := b.Limit("rpm"); l == nil || !l.Incomplete || l.Balance != -5 || l.Consumed != 5 {
		t.Errorf("got %+v, want an incomplete limit", l)
	}
	if b.Writes == nil || !b.Writes.Incomplete {
		t.Errorf("got %+v, want incomplete writes", b.Writes)
	}
	encoded := b.Item()
	for name, value := range item {
		if got, want := show(encoded[name]), show(value); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	for name := range strings.FieldsSeq("rf b_rpm_cp b_rpm_ra b_wcu_tc ttl pgen disabled vu") {
		if encoded[name] != nil {
			t.Errorf("%s was added: %v", name, encoded[name])
		}
	}
	if got := strings.Join(b.Attributes("rpm"), " "); got != "b_rpm_tc b_rpm_tk" {
		t.Errorf("got attributes %s", got)
	}

	limit := b.Limit("rpm")
	limit.Incomplete, limit.Balance, limit.Capacity = false, 1, 2
	encoded = b.Item()
	if got := show(encoded["b_rpm_tk"]) + show(encoded["b_rpm_cp"]); !strings.Contains(got, `"1"`) ||
		!strings.Contains(got, `"2"`) {
		t.Errorf("a limit that was completed is written as %s", got)
	}
}

// TestBucketDisabled keeps a value of disabled that only the library's fast path treats as
// disabled.
func TestBucketDisabled(t *testing.T) {
	t.Parallel()
	item := bucketItem(t, schema.Item{"disabled": schema.Bool(false)})
	b := ok[*schema.Bucket](t)(schema.ParseBucket(item))
	if b.Disabled || b.Extra["disabled"] == nil {
		t.Errorf("got %v and %v", b.Disabled, b.Extra)
	}
	sameItems(t, b.Item(), item)
}

func TestBucketMalformed(t *testing.T) {
	t.Parallel()
	n := func(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }
	binary := &types.AttributeValueMemberB{Value: []byte{1}}
	for _, c := range []struct {
		attribute string
		value     types.AttributeValue
		want      string
	}{
		{"PK", nil, "PK is missing or not a string"},
		{"SK", n("1"), "SK 1 is missing or not a string"},
		{"SK", schema.String("#META"), `SK "#META" is not that of a bucket item`},
		{"PK", schema.String("ns"), `PK "ns" has no namespace`},
		{"PK", schema.String("ns/ENTITY#a"), "is not that of a bucket item"},
		{"PK", schema.String("ns/BUCKET#a"), "has no shard"},
		{"PK", schema.String("ns/BUCKET#a#0"), "has no resource"},
		{"PK", schema.String("ns/BUCKET#a#b#00"), "has no shard number at its end"},
		{"PK", schema.String("ns/BUCKET#a#b#-1"), "has no shard number at its end"},
		{"entity_id", schema.String("other"), `entity_id "other" does not agree with the key`},
		{"resource", schema.Null(), "resource NULL is not a string"},
		{"rf", schema.String("1"), `rf "1" is not a number`},
		{"rf", n("1.5"), "rf 1.5 is not a whole number"},
		{"rf", n("9223372036854775808"), "rf 9223372036854775808 is beyond 64 bits"},
		{"vu", binary, "is not a number"},
		{"ttl", schema.Bool(true), "ttl true is not a number"},
		{"shard_count", n("0"), "shard_count 0 is not above 0"},
		{"shard_count", n("99999999"), "is more than a bucket can have"},
		{"cascade", schema.String("yes"), `cascade "yes" is neither true nor false`},
		{"disabled", schema.String("bypass"), `disabled "bypass" is neither true nor false`},
		{"parent_id", n("3"), "parent_id 3 is not a string"},
		{"pgen", schema.Null(), "pgen NULL is not a number"},
		{"pinc", n("3"), "pinc 3 is not a string"},
		{"b_rpm_tk", n("1e3"), "b_rpm_tk 1e3 is not a whole number"},
		{"b_rpm_cp", n("-1"), "b_rpm_cp -1 is below 0"},
		{"b_rpm_ra", n("-1"), "b_rpm_ra -1 is below 0"},
		{"b_rpm_rp", n("0"), "b_rpm_rp 0 is not above 0"},
		{"b_wcu_tc", schema.String(strings.Repeat("long", 50)), "lon… is not a number"},
	} {
		_, err := schema.ParseBucket(bucketItem(t, schema.Item{c.attribute: c.value}))
		checkMalformed(t, err, c.attribute, c.want)
	}
	// Of several faults, the error is about the first attribute by name.
	for range 20 {
		item := bucketItem(t, schema.Item{"ttl": n("x"), "b_rpm_tk": n("x"), "rf": n("x"), "vu": n("x")})
		_, err := schema.ParseBucket(item)
		checkMalformed(t, err, "b_rpm_tk", "x is not a whole number")
	}
}

// checkMalformed checks the attribute of an error and the end of its text.
func checkMalformed(t *testing.T, err error, attribute, want string) {
	t.Helper()
	e, isMalformed := errors.AsType[*schema.MalformedError](err)
	if !isMalformed || e.Attribute != attribute || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("attribute %s: got error %v, want …%s", attribute, err, want)
	}
}

func TestNewBucketRefuses(t *testing.T) {
	t.Parallel()
	for _, l := range []schema.Limit{
		limit("a", 0, 1, 1), limit("a", 1, 0, 1), limit("a", 1, 1, 0), limit("a", -1, 1, 1),
		limit("a", math.MaxInt64/1000+1, 1, 1), limit("a", 1, math.MaxInt64, 1),
		limit("a", 1, 1, math.MaxInt64),
	} {
		b, err := schema.NewBucket(schema.BucketID{}, 0, []schema.Limit{limit("ok", 1, 1, 1), l})
		if err == nil || !strings.Contains(err.Error(), `limit "a"`) {
			t.Errorf("limit %+v: got %+v and error %v", l, b, err)
		}
	}
	most := int64(math.MaxInt64 / 1000)
	b := ok[*schema.Bucket](t)(schema.NewBucket(schema.BucketID{}, 0, []schema.Limit{
		limit("b", 2, 1, 1), limit("a", most, most, most),
	}))
	if b.Limits[0].Name != "a" || b.Limits[0].Balance != most*1000 {
		t.Errorf("got limits %+v, want them in the order of their names", b.Limits)
	}
	if names := slices.Sorted(maps.Keys(b.Item())); slices.Contains(names, "ttl") {
		t.Error("a new bucket has a ttl")
	}
}
