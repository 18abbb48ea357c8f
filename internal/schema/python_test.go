package schema_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/testkit"
)

// oracleCase is a bucket that both sides create.
type oracleCase struct {
	Entity     string        `json:"entity"`
	Resource   string        `json:"resource"`
	Limits     []oracleLimit `json:"limits"`
	Now        int64         `json:"now"`
	Multiplier int64         `json:"multiplier"`
	Cascade    bool          `json:"cascade"`
	Parent     string        `json:"parent"`
	Shard      int           `json:"shard"`
	Shards     int           `json:"shards"`
	PGen       *int64        `json:"pgen"`
	PInc       *string       `json:"pinc"`
}

type oracleLimit struct {
	Name       string `json:"name"`
	Capacity   int64  `json:"capacity"`
	Refill     int64  `json:"refill"`
	Seconds    int64  `json:"seconds"`
	Multiplier int64  `json:"multiplier"`
}

type oracleAnswer struct {
	Buckets []map[string]any `json:"buckets"`
	Configs []map[string]any `json:"configs"`
	Seconds []*json.Number   `json:"seconds"`
	Read    json.RawMessage  `json:"read"`
	Hour    string           `json:"hour"`
	Table   map[string]any   `json:"table"`
}

// TestPython compares the items of weir and of the Python library for the same arguments, and makes
// the library read the items of weir.
func TestPython(t *testing.T) {
	t.Parallel()
	venv := testkit.ZAE(t)
	rng := newRand(t)
	var cases []oracleCase
	for range 200 {
		cases = append(cases, randomCase(rng))
	}
	var seconds []oracleLimit
	for range 20_000 {
		seconds = append(seconds, randomLimit(rng, "a", 15))
	}
	hour := rng.Int64N(4_000_000_000_000)
	items, want := readable(t)
	answer := askPython(t, venv, map[string]any{
		"buckets": cases, "seconds": seconds, "read": items, "hour": hour,
	})

	for i, c := range cases {
		sameItems(t, c.bucket(t), fromJSON(t, answer.Buckets[i]))
		stored := fromJSON(t, answer.Configs[i])
		written := (&schema.Config{Namespace: "ns", Limits: c.limits()}).Item()
		for name, value := range stored {
			if show(written[name]) != show(value) {
				t.Errorf("%s: got %s, want %s", name, show(written[name]), show(value))
			}
		}
	}
	checkSeconds(t, seconds, answer.Seconds)
	if got := schema.WindowKey(weir.Hourly, time.UnixMilli(hour)); got != answer.Hour {
		t.Errorf("hour of %d: got %s, want %s", hour, got, answer.Hour)
	}
	if got := compact(t, answer.Read); got != want {
		t.Errorf("the library reads\n%s, want\n%s", got, want)
	}
	checkTable(t, answer.Table)
}

func askPython(t *testing.T, venv *testkit.Venv, question any) oracleAnswer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := venv.Command(ctx, "python", "testdata/oracle.py")
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(marshal(t, question)), &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	var answer oracleAnswer
	if err := json.Unmarshal(out, &answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

func randomLimit(rng *rand.Rand, name string, maxDigits int) oracleLimit {
	return oracleLimit{
		Name: name, Capacity: min(randomAmount(rng, maxDigits), schema.MaxUnits),
		Refill: randomAmount(rng, 12), Seconds: randomAmount(rng, 6), Multiplier: rng.Int64N(20) - 1,
	}
}

func randomCase(rng *rand.Rand) oracleCase {
	c := oracleCase{
		Entity:   randomName(rng, letters+digits, letters+digits+"_.-:@"),
		Resource: randomName(rng, letters, letters+digits+"_.-/"),
		Now:      rng.Int64N(4_000_000_000_000), Multiplier: rng.Int64N(9), Cascade: rng.IntN(2) == 0,
		Shards: 1,
	}
	for i := range 1 + rng.IntN(4) {
		name := fmt.Sprintf("l%d%s", i, randomName(rng, "_-.", "_-."))
		c.Limits = append(c.Limits, randomLimit(rng, name, 10))
	}
	if rng.IntN(2) == 0 {
		c.Parent = "acme"
	}
	if rng.IntN(2) == 0 {
		c.PGen, c.PInc = new(rng.Int64N(3)), new("ab")
	}
	if rng.IntN(4) == 0 {
		c.Shard, c.Shards = 1, 2
	}
	return c
}

func (c oracleCase) limits() []schema.Limit {
	var limits []schema.Limit
	for _, l := range c.Limits {
		limits = append(limits, limit(l.Name, l.Capacity, l.Refill, l.Seconds))
	}
	return limits
}

func (c oracleCase) bucket(t *testing.T) schema.Item {
	t.Helper()
	id := schema.BucketID{Namespace: "ns", Entity: c.Entity, Resource: c.Resource, Shard: c.Shard}
	b := ok[*schema.Bucket](t)(schema.NewBucket(id, c.Now, c.limits()))
	b.Cascade, b.Parent, b.Shards = c.Cascade, c.Parent, c.Shards
	if c.PGen != nil {
		b.Stamped, b.Generation, b.Incarnation = true, *c.PGen, *c.PInc
	}
	if seconds, ends := schema.BucketSeconds(b.Limits, c.Multiplier); ends {
		b.TTL = schema.TTL(c.Now, seconds)
	}
	return b.Item()
}

// checkSeconds compares the lifetimes of buckets, and counts those for which doubles and exact
// arithmetic differ.
func checkSeconds(t *testing.T, limits []oracleLimit, want []*json.Number) {
	t.Helper()
	const most = math.MaxInt64 / 4
	inexact, beyond := 0, 0
	for i, l := range limits {
		b := ok[schema.BucketLimit](t)(limit(l.Name, l.Capacity, l.Refill, l.Seconds).Bucket())
		got, ends := schema.BucketSeconds([]schema.BucketLimit{b}, l.Multiplier)
		if ends != (want[i] != nil) {
			t.Errorf("%+v: got %d, %v, want %v", l, got, ends, want[i])
		}
		if !ends {
			continue
		}
		n, err := want[i].Int64()
		if err != nil || n > most {
			n = most
			beyond++
		}
		if got != n {
			t.Errorf("%+v: got %d, want %s", l, got, *want[i])
		}
		if l.Capacity < 100_000_000 && got != l.Capacity*l.Seconds*l.Multiplier/l.Refill {
			inexact++
		}
	}
	t.Logf("%d lifetimes, %d of them without end, at least %d others not exact",
		len(limits), beyond, inexact)
	if inexact == 0 {
		t.Error("no case in which doubles and exact arithmetic differ")
	}
}

// readable returns an item of each kind that the library reads, and the result that it should
// print.
func readable(t *testing.T) (items map[string]any, want string) {
	t.Helper()
	c := oracleCase{Entity: "bot", Resource: "a/b", Now: 5, Shards: 2, Limits: []oracleLimit{
		{Name: "r.p_m-x", Capacity: 10, Refill: 5, Seconds: 60},
		{Name: "tpm", Capacity: 7, Refill: 7, Seconds: 1},
	}}
	e := schema.Entity{
		Namespace: "ns", ID: "bot", Name: "Bot", Parent: "acme", Cascade: true, Generation: 8, Version: 2,
		Incarnation: "ab", Metadata: map[string]any{"team": "a", "n": 3},
		CreatedAt: "2024-01-01T00:00:00Z",
	}
	event := schema.AuditEvent{
		Namespace: "ns", Entity: "bot", ID: "01M7YE70Y93TREE97AWB8B04H4",
		Timestamp: "2024-01-01T00:00:00Z",
		Action:    schema.ActionLimitsSet, Resource: "a/b", Details: schema.LimitsDetails(c.limits()[:1]),
	}
	id := schema.BucketID{Namespace: "ns", Entity: "bot", Resource: "a/b"}
	u := schema.NewUsage(id, weir.Daily, time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC))
	u.Events, u.Counters["tpm"], u.Overdrawn = 4, 9, map[string]int64{"tpm": 1}
	config := schema.Config{Namespace: "ns", Entity: "bot", Resource: "a/b", Limits: c.limits()}
	items = map[string]any{
		"bucket": toJSON(c.bucket(t)), "config": toJSON(config.Item()), "usage": toJSON(u.Item()),
		"entity": toJSON(ok[schema.Item](t)(e.Item())), "event": toJSON(ok[schema.Item](t)(event.Item())),
	}
	return items, compact(t, []byte(`{
		"bucket": {"r.p_m-x": [10000, 10000, 5000, 60000, 0, 5, 2],
			"tpm": [7000, 7000, 7000, 1000, 0, 5, 2]},
		"config": {"r.p_m-x": [10, 5, 60], "tpm": [7, 7, 1]},
		"entity": ["bot", "Bot", "acme", true, {"team": "a", "n": 3}, "2024-01-01T00:00:00Z", 8, "ab"],
		"event": ["01M7YE70Y93TREE97AWB8B04H4", "limits_set", null, "a/b",
			{"limits": [{"name": "r.p_m-x", "capacity": 10,
				"refill_amount": 5, "refill_period_seconds": 60}]}],
		"usage": ["bot", "a/b", "daily", "2024-01-02T00:00:00Z", 4, {"tpm": 9}, {"tpm": 1}]
	}`))
}

// compact formats JSON in one way, whatever the order of its fields.
func compact(t *testing.T, b []byte) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	return string(marshal(t, v))
}

// checkTable compares the definition of the table, with a stream as the library creates it.
func checkTable(t *testing.T, want map[string]any) {
	t.Helper()
	in := schema.Table{Name: "weir", Stream: true}.CreateInput()
	var got map[string]any
	if err := json.Unmarshal(marshal(t, in), &got); err != nil {
		t.Fatal(err)
	}
	if got := prune(got); !reflect.DeepEqual(got, any(want)) {
		t.Errorf("table: got\n%v, want\n%v", got, want)
	}
}

// prune removes empty values.
func prune(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name, element := range v {
			if element == nil || element == "" || name == "ResultMetadata" {
				delete(v, name)
				continue
			}
			v[name] = prune(element)
		}
	case []any:
		for i := range v {
			v[i] = prune(v[i])
		}
	}
	return value
}

// toJSON returns an item in the form of the library's client.
func toJSON(item schema.Item) map[string]any {
	out := make(map[string]any, len(item))
	for name, value := range item {
		out[name] = valueToJSON(value)
	}
	return out
}

func valueToJSON(value types.AttributeValue) any {
	kind := strings.TrimPrefix(fmt.Sprintf("%T", value), "*types.AttributeValueMember")
	switch v := value.(type) {
	case *types.AttributeValueMemberM:
		return map[string]any{kind: toJSON(v.Value)}
	case *types.AttributeValueMemberL:
		list := make([]any, len(v.Value))
		for i, element := range v.Value {
			list[i] = valueToJSON(element)
		}
		return map[string]any{kind: list}
	}
	return map[string]any{kind: reflect.ValueOf(value).Elem().FieldByName("Value").Interface()}
}
