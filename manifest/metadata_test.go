package manifest_test

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/manifest"
)

// hostileTexts returns texts that some program takes for something else.
func hostileTexts() []string {
	return []string{
		"", " ", "a: b", "a #b", "- a", "'", `"`, `\`, `\n`, "\n", "\r\n", "\t", "\x00", "\x1b[31m", "\u007f", "\u0085",
		"=1+1", "@SUM(A1)", "<script>alert(1)</script>", "&amp;", "{}", "[]", "{{x}}", "%s", "$HOME", "`id`",
		"null", "~", "true", "no", "1", "1.50", "0x10", "---", "...", "!!str x", "&a", "*a", "<<", "?", ":", "|", ">",
		"\u202eabc\u202c", "שלום עולם", "مرحبا", "日本語", "👩\u200d👩\u200d👧", "e\u0301", "\u2028", "\u2029", "\ufeff", "\ufffd",
		"\U0010ffff", "name, other", " leading", "trailing ", strings.Repeat("x", 900),
	}
}

func randomText(r *rand.Rand) string {
	texts := hostileTexts()
	text := texts[r.IntN(len(texts))]
	if r.IntN(3) == 0 && len(text) < 100 {
		text += texts[r.IntN(len(texts)-1)]
	}
	for range r.IntN(4) {
		text += string(rune(r.IntN(0xd7ff))) // below the surrogates
	}
	if len(text) > 1024 {
		return "x"
	}
	return text
}

// withoutControls returns a text without the characters that the name of an entity may not have.
func withoutControls(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, text)
}

// randomMetadata returns metadata in normal form.
func randomMetadata(r *rand.Rand) map[string]any {
	m := map[string]any{}
	for range r.IntN(5) {
		key := randomText(r)
		if key == "" {
			continue
		}
		if m[key] = randomText(r); r.IntN(3) == 0 {
			m[key] = randomValue(r, 3)
		}
	}
	return m
}

func randomValue(r *rand.Rand, depth int) any {
	switch n := r.IntN(8); {
	case n == 0:
		return nil
	case n == 1:
		return r.IntN(2) == 0
	case n == 2:
		return r.Int64() - r.Int64()
	case n == 3:
		numbers := []json.Number{"0.5", "-1e-7", "12345678901234567890123", "1.0", "0.1000"}
		return numbers[r.IntN(len(numbers))]
	case n == 4 && depth > 0:
		return []any{randomValue(r, depth-1), randomText(r)}
	case n == 5 && depth > 0:
		return map[string]any{"k" + randomText(r): randomValue(r, depth-1)}
	}
	return randomText(r)
}

// TestMetadata parses what a file says of a name and metadata.
func TestMetadata(t *testing.T) {
	t.Parallel()
	m := parse(t, `version: 1
entities:
  a:
    name: "Acme \"Inc.\" \u05d0"
    metadata: {team: search, "cost center": 042, empty: ""}
    metadata_json: '{"n": 1.50, "list": [1, null, true]}'
  b: {name: b, metadata: {}}
`)
	a := m.Definitions.Entities["a"]
	if a.Name != `Acme "Inc." א` || len(a.Metadata) != 5 || a.Metadata["cost center"] != "042" ||
		a.Metadata["empty"] != "" || a.Metadata["n"] != json.Number("1.50") {
		t.Errorf("got %+v", a)
	}
	if b := m.Definitions.Entities["b"]; b.Name != "" || b.Metadata != nil {
		t.Errorf("got %+v, want no name but its own", b)
	}
	d := &weir.Definitions{Entities: map[string]weir.EntityDefinition{
		"a": {Metadata: map[string]any{"team": "ads", "empty": "x"}}, "b": {Name: "Bee"},
	}}
	same := map[string]any{"n": json.Number("1.5"), "list": []any{json.Number("1.0"), nil, true}}
	for name, value := range same { // as DynamoDB may write them
		is := map[string]any{name: value}
		was := map[string]any{name: a.Metadata[name]}
		if got := manifest.Diff(ofA(was), ofA(is)); len(got) > 0 {
			t.Errorf("the same number is a change: %s", lines(got))
		}
	}
	want := `delete entities.a.name: "Acme \"Inc.\" א"
delete entities.a.metadata."cost center": "042"
update entities.a.metadata.empty: "" -> "x"
delete entities.a.metadata.list: [1,null,true]
delete entities.a.metadata.n: 1.50
update entities.a.metadata.team: "search" -> "ads"
create entities.b.name: "Bee"`
	if got := lines(manifest.Diff(m.Definitions, d)); strings.TrimSpace(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// ofA returns definitions of one entity with metadata.
func ofA(m map[string]any) *weir.Definitions {
	return &weir.Definitions{Entities: map[string]weir.EntityDefinition{"a": {Metadata: m}}}
}

// TestMetadataMistakes checks that what cannot be a name or metadata is refused with its position.
func TestMetadataMistakes(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 70_000)
	for _, c := range []struct{ entity, want string }{
		{"name:", "3:5: weir: invalid: entities.a.name"},
		{"name: {x: y}", "must be text, not a mapping"},
		{"name: " + long, "has 70000 bytes: it can have at most 1024"},
		{`name: "a\nb"`, "must not have control characters"},
		{"metadata: x", "must be a mapping"},
		{"metadata: {x: }", "must be text, not nothing"},
		{"metadata: {x: {y: z}}", "entities.a.metadata.x"},
		{`metadata: {"": z}`, "must not be empty"},
		{"metadata: {x: y, x: z}", "is given twice"},
		{"metadata: {x: " + long + "}", "it can have at most 65536"},
		{"metadata_json: '[1]'", "is not an object of JSON"},
		{"metadata_json: 'null'", "it must be an object"},
		{"metadata_json: '{} {}'", "has something behind the object"},
		{"metadata_json: {x: 1}", "must be an object of JSON in quotes"},
		{"metadata: {x: y}\n    metadata_json: '{\"x\": 1}'", "is given twice, in metadata and in metadata_json"},
	} {
		_, err := manifest.Parse("limits.yaml", []byte("version: 1\nentities: \n  a:\n    "+c.entity+"\n"))
		if err == nil || !strings.Contains(err.Error(), strings.TrimPrefix(c.want, "3:5: ")) {
			t.Errorf("%.60s: got %v, want %s", c.entity, err, c.want)
		}
	}
}
