package declared_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/weir-limiter/weir/change"
	"github.com/weir-limiter/weir/dynamodb"
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
