package declared_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-limiter/weir/change"
	"github.com/weir-limiter/weir/dynamodb"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/testkit"
)

// TestNames exports names and metadata of every sort, and applies the file to another namespace and
// then a changed one.
func TestNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.open("alice")
	for name, text := range map[string]string{
		"a": `"quoted" 'text'`, "b": "<script>", "c": "\u202eשלום", "d": "=1+1: #x", "e": "日本語",
		"f": strings.Repeat("x", 1024),
	} {
		c := &change.Entity{Name: &text, Metadata: map[string]any{
			text: text, "big": strings.Repeat(text, 50), "control": "\x00\n\x1b", "n": json.Number("1.5"),
			"list": []any{int64(1), nil, map[string]any{"deep": true}},
		}}
		if _, err := first.ChangeEntity(t.Context(), name, c, nil); err != nil {
			t.Fatal(err)
		}
	}
	exported, err := first.ExportLimits(t.Context())
	if err != nil || len(exported.Foreign) != 0 {
		t.Fatalf("got %+v, %v", exported.Foreign, err)
	}
	w.namespace("other")
	second := w.open("bob", func(o *dynamodb.Options) { o.Namespace = "other" })
	text := strings.Replace(exported.Text, "namespace: default", "namespace: other", 1)
	second.apply(text)
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		want, err := first.Entity(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := second.Entity(t.Context(), name)
		if err != nil || got.Name != want.Name || !reflect.DeepEqual(got.Metadata, want.Metadata) {
			t.Errorf("%s: got %.200v, %v", name, got, err)
		}
	}
	if again, err := second.ExportLimits(t.Context()); err != nil || again.Text != text {
		t.Errorf("the export after the apply is another one: %v", err)
	}
	if p := second.plan(text); len(p.Changes) != 0 {
		t.Errorf("got changes %s", lines(p.Changes))
	}
	p := second.apply(strings.Replace(text, `name: "<script>"`, `name: "B"`, 1))
	w.wantLines("a changed name", p.Changes, `update entities.b.name "<script>">"B"`)
}

// TestUnsayableTexts exports names and metadata of another program that no limits file can have:
// the export names them, and has the rest.
func TestUnsayableTexts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l := w.open("alice")
	n, err := w.table.Namespace(t.Context(), "default")
	if err != nil {
		t.Fatal(err)
	}
	none, err := schema.EncodeMap(nil)
	if err != nil {
		t.Fatal(err)
	}
	big, err := schema.EncodeMap(map[string]any{"v": strings.Repeat("x", 70_000)})
	if err != nil {
		t.Fatal(err)
	}
	for entity, item := range map[string]schema.Item{
		"big":     {":n": schema.String("Big"), ":m": big},
		"control": {":n": schema.String("a\nb"), ":m": none},
		"long":    {":n": schema.String(strings.Repeat("x", 1025)), ":m": none},
	} {
		if _, err := l.ChangeEntity(t.Context(), entity, &change.Entity{}, nil); err != nil {
			t.Fatal(err)
		}
		_, err := testkit.DynamoDB(t).Client().UpdateItem(t.Context(), &ddb.UpdateItemInput{
			TableName: &w.table.Name, Key: schema.MetaKey(n.ID, entity).Item(),
			UpdateExpression:          new("SET #n = :n, metadata = :m"),
			ExpressionAttributeNames:  map[string]string{"#n": "name"},
			ExpressionAttributeValues: item,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	exported, err := l.ExportLimits(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range exported.Foreign {
		got = append(got, f.Path+" "+f.Attribute+" "+f.Reason)
	}
	want := []string{
		"entities.big metadata has 70008 bytes as JSON: it can have at most 65536",
		"entities.control name must not have control characters",
		"entities.long name has 1025 bytes: it can have at most 1024",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, line := range []string{"  big:\n    name: \"Big\"\n", "  control: {}\n", "  long: {}\n"} {
		if !strings.Contains(exported.Text, line) {
			t.Errorf("the export has no %q:\n%s", line, exported.Text)
		}
	}
}
