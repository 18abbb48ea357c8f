package manifest_test

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/manifest"
)

func parseFile(t *testing.T, path string) *manifest.Manifest {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Parse(path, data)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func parse(t *testing.T, text string) *manifest.Manifest {
	t.Helper()
	m, err := manifest.Parse("limits.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// normal returns the definitions normalized.
func normal(t *testing.T, d *weir.Definitions) *weir.Definitions {
	t.Helper()
	n, err := d.Normalize()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestDesignSample(t *testing.T) {
	t.Parallel()
	m := parseFile(t, "testdata/design.yaml")
	if m.Version != 1 || m.Namespace != "default" {
		t.Errorf("got version %d of %q, want 1 of default", m.Version, m.Namespace)
	}
	minute, five := time.Minute, 5*time.Minute
	want := normal(t, &weir.Definitions{
		OnUnavailable: weir.Block,
		System: []weir.Limit{
			{Name: "rpm", Kind: weir.Bucket, Capacity: 600, RefillAmount: 600, RefillPeriod: minute},
		},
		Resources: map[string][]weir.Limit{"gpt-4o": {
			{Name: "rpm", Kind: weir.Bucket, Capacity: 500, RefillAmount: 500, RefillPeriod: minute},
			{Name: "tpm", Kind: weir.Bucket, Capacity: 200000, RefillAmount: 100000, RefillPeriod: minute},
			{Name: "parallel", Kind: weir.Concurrency, Capacity: 20, Timeout: five},
		}},
		Entities: map[string]weir.EntityDefinition{
			"acme": {},
			"acme-bot": {Parent: "acme", Cascade: true, Limits: map[string][]weir.Limit{"gpt-4o": {
				{Name: "rpm", Capacity: 100},
				{Name: "tpm", Capacity: 50000},
				{Name: "parallel", Kind: weir.Concurrency, Capacity: 5, Timeout: five},
				{Name: "hourly", Kind: weir.Window, Capacity: 2000, Window: time.Hour},
				{
					Name: "usd_micros", Kind: weir.Budget, Capacity: 50000000, Every: "month",
					Zone: "Europe/Berlin", Shadow: true,
				},
			}}},
		},
	})
	if changes := manifest.Diff(want, m.Definitions); len(changes) > 0 {
		t.Errorf("the file is not what it says: %v", lines(changes))
	}
	if !reflect.DeepEqual(m.Definitions, want) {
		t.Errorf("got %+v, want %+v", m.Definitions, want)
	}
}

func TestExampleFile(t *testing.T) {
	t.Parallel()
	m := parseFile(t, "../examples/limits.yaml")
	for _, tenant := range []string{"tenant-1", "tenant-2", "tenant-3", "tenant-4"} {
		e, ok := m.Definitions.Entities[tenant]
		if !ok || e.Parent != "acme" || !e.Cascade {
			t.Errorf("%s: got %+v, want a tenant of acme that cascades", tenant, e)
		}
	}
	kinds := map[weir.Kind]bool{}
	m.Definitions.All(func(_ string, l *weir.Limit) bool {
		kinds[l.Kind] = true
		return true
	})
	if len(kinds) != 4 {
		t.Errorf("got kinds %v, want all four", kinds)
	}
	for _, h := range manifest.Hidden(m.Definitions) {
		if h.Loses() {
			t.Errorf("an example should lose no limit: %s", h.String())
		}
	}
}

func TestForms(t *testing.T) {
	t.Parallel()
	plain := "version: 1\nsystem: {limits: {rpm: {capacity: 1000}}}\nentities: {a: {}, b: {parent: a}}\n"
	want := parse(t, plain)
	for name, text := range map[string]string{
		"byte order mark":  "\uFEFF" + plain,
		"carriage returns": strings.ReplaceAll(plain, "\n", "\r\n"),
		"no line at end":   strings.TrimSuffix(plain, "\n"),
		"document marks":   "---\n" + plain + "...\n",
		"JSON": `{"version":1,"system":{"limits":{"rpm":{"capacity":1000}}},` +
			`"entities":{"a":{},"b":{"parent":"a"}}}`,
		"underscores": strings.Replace(plain, "1000", "1_000", 1),
		"explicit defaults": strings.Replace(plain, "1000",
			"1000, kind: bucket, refill_amount: 1000, refill_period: 60, enforce: True", 1),
		"namespace":         plain + "namespace: default\n",
		"empty parts":       plain + "resources:\n",
		"an entity of null": strings.Replace(plain, "a: {}", "a: ", 1),
		"blocks": "version: 1\nsystem:\n  limits:\n    rpm:\n      capacity:\n        1000 # text\n" +
			"entities:\n    a:\n    b:\n        'parent': \"a\"\n        cascade: false\n",
	} {
		got, err := manifest.Parse("limits.yaml", []byte(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if !reflect.DeepEqual(got.Definitions, want.Definitions) || got.Namespace != "default" {
			t.Errorf("%s: got %+v, want %+v", name, got.Definitions, want.Definitions)
		}
	}
}

func TestNamesAsWritten(t *testing.T) {
	t.Parallel()
	m := parse(t, `
version: 1
entities:
  42: {}
  0x1F: {parent: 42}
  true: {parent: 0x1F}
  1.50: {parent: true}
  2024-01-01: {}
  null: {}
  user:1@example.org: {parent: "null"}
  org/team: {}
`)
	want := map[string]string{
		"42": "", "0x1F": "42", "true": "0x1F", "1.50": "true", "2024-01-01": "", "null": "",
		"user:1@example.org": "null", "org/team": "",
	}
	if len(m.Definitions.Entities) != len(want) {
		t.Errorf("got %d entities, want %d", len(m.Definitions.Entities), len(want))
	}
	for name, parent := range want {
		if e, ok := m.Definitions.Entities[name]; !ok || e.Parent != parent {
			t.Errorf("%s: got %v with parent %q, want parent %q", name, ok, e.Parent, parent)
		}
	}
}

// TestNotText checks files that a golden file of text cannot contain.
func TestNotText(t *testing.T) {
	t.Parallel()
	const (
		notUTF8    = "weir: invalid: the file is not UTF-8: it has the byte "
		control    = "weir: invalid: the file has a control character, "
		invalid    = "weir: invalid: "
		namespaces = "must begin with a letter or a digit and have only letters, digits and _ . : @ -"
		fields     = "the fields here are parent, cascade, name, metadata, metadata_json, resources"
	)
	for _, tt := range []struct{ name, text, want string }{
		{"bad byte", "version: 1\nna\xffme: x", "f:2:3: " + notUTF8 + "0xFF"},
		{"UTF-16", "\xff\xfev\x00", "f:1:1: " + notUTF8 + "0xFF"},
		{"cut rune", "é: \xc3", "f:1:4: " + notUTF8 + "0xC3"},
		{"zero byte", "version: 1\n\x00", "f:2:1: " + control + "U+0000"},
		{"bell in a comment", "# \a", "f:1:3: " + control + "U+0007"},
		{"delete", "a\x7f", "f:1:2: " + control + "U+007F"},
		{"lone return", "a: 1\rb: 2", "f:1:5: " + control + "U+000D"},
		{"next line", "a\u0085", "f:1:2: " + control + "U+0085"},
		{"line separator", "a\u2028", "f:1:2: " + control + "U+2028"},
		{"mark inside", "a: \uFEFF1", "f:1:4: " + control + "U+FEFF"},
		{"two marks", "\uFEFF\uFEFFa", "f:1:1: " + control + "U+FEFF"},
		{"returns count", "version: 1\r\nnamespace: _\r\n",
			"f:2:12: " + invalid + `namespace "_": ` + namespaces},
		{"after a mark", "\uFEFFversion: 2", "f:1:10: " + invalid + `version "2": must be 1`},
		{"wide letters", "version: 1\nentities: {'日本': {x: 1}}",
			"f:2:19: " + invalid + "entities.日本.x \"1\": is unknown: " + fields},
		{"a replacement character is text", "version: 1\nnamespace: \"\uFFFD\"",
			"f:2:12: " + invalid + "namespace \"\uFFFD\": " + namespaces},
		{"a tag at the end", "version: 1\nentities: !x",
			"f:2:11: " + invalid + "tags are not allowed in a limits file"},
		{"too deep to recurse", strings.Repeat("{a: ", 100_000),
			"f:1:65: " + invalid + "mappings are nested deeper than 16 levels"},
		{"a deep list", "system: " + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000),
			"f:1:1: " + invalid + `version "": is missing: a limits file begins with "version: 1"` +
				"\nf:1:9: " + invalid + `system "": must be a mapping, not a list`},
		{"a long message of the scanner", "|" + strings.Repeat("6", 1000) + "\n",
			"f:1:1: " + invalid + "the file is not YAML: " +
				`invalid header option: "` + strings.Repeat("6", 96) + "… (1025 bytes)"},
		{"too long", strings.Repeat(" ", 4<<20+1),
			"f:1:1: " + invalid + "the file has 4194305 bytes: at most 4194304"},
	} {
		_, err := manifest.Parse("f", []byte(tt.text))
		if got := fmt.Sprint(err); got != tt.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tt.name, got, tt.want)
		}
	}
}

// TestLargeFile checks that the time to parse thousands of entities grows with their number, not
// with its square.
func TestLargeFile(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString("version: 1\nentities:\n  acme: {}\n")
	const tenants = 20_000
	for i := range tenants {
		fmt.Fprintf(&text, "  tenant-%d: {parent: acme, cascade: true}\n", i)
	}
	began := time.Now()
	m := parse(t, text.String())
	if got := len(m.Definitions.Entities); got != tenants+1 {
		t.Errorf("got %d entities, want %d", got, tenants+1)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("took %v, want well below a second", took)
	}
}

func TestManyMistakes(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString("version: 1\nentities:\n")
	for i := range 1500 {
		fmt.Fprintf(&text, "  e%d: 5\n", i)
	}
	_, err := manifest.Parse("f", []byte(text.String()))
	got := strings.Split(fmt.Sprint(err), "\n")
	if len(got) != 1001 {
		t.Fatalf("got %d lines, want 1001", len(got))
	}
	if want := `f:1002:9: weir: invalid: entities.e999 "5": must be a mapping, not text`; got[999] != want {
		t.Errorf("got %s, want %s", got[999], want)
	}
	if want := `f:1002:9: weir: invalid: there are 500 more mistakes`; got[1000] != want {
		t.Errorf("got %s, want %s", got[1000], want)
	}
}

func TestErrorChain(t *testing.T) {
	t.Parallel()
	_, err := manifest.Parse("f", []byte("version: 1\nsystem: {limits: {rpm: {capacity: -1}}}"))
	e, ok := errors.AsType[*manifest.Error](err)
	if !ok || e.File != "f" || e.Line != 2 || e.Column != 35 {
		t.Fatalf("got %#v, want the place f:2:35", e)
	}
	we, ok := errors.AsType[*weir.Error](err)
	if !ok || we.Code != weir.Invalid || we.Field != "system.limits.rpm.capacity" || we.Value != "-1" {
		t.Errorf("got %#v, want the field and its value", we)
	}
	if !errors.Is(err, weir.Invalid) {
		t.Errorf("got %v, want it to be invalid", err)
	}
}

func TestLocate(t *testing.T) {
	t.Parallel()
	m := parseFile(t, "testdata/design.yaml")
	refuse := func(field string) error {
		return &weir.Error{Code: weir.Unsupported, Field: field, Value: "v", Reason: "is refused"}
	}
	plain := errors.New("plain")
	err := m.Locate(errors.Join(
		refuse("resources.gpt-4o.limits.parallel"),
		refuse("resources.gpt-4o.limits.parallel.zone"),
		errors.Join(refuse("entities.acme-bot.resources.gpt-4o.limits.hourly"), plain),
		refuse("entities.nobody"),
		refuse("elsewhere.x"),
		refuse(""),
	))
	want := `testdata/design.yaml:11:7: weir: unsupported: resources.gpt-4o.limits.parallel "v": is refused
testdata/design.yaml:11:7: weir: unsupported: resources.gpt-4o.limits.parallel.zone "v": is refused
testdata/design.yaml:23:11: weir: unsupported: entities.acme-bot.resources.gpt-4o.limits.hourly "v": is refused
plain
testdata/design.yaml:12:1: weir: unsupported: entities.nobody "v": is refused
weir: unsupported: elsewhere.x "v": is refused
weir: unsupported: is refused`
	if got := fmt.Sprint(err); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if !errors.Is(err, plain) || !errors.Is(err, weir.Unsupported) {
		t.Errorf("got %v, want what was joined inside", err)
	}
	if err := m.Locate(nil); err != nil {
		t.Errorf("got %v, want nil", err)
	}
}

func lines(changes []manifest.Change) string {
	var b strings.Builder
	for i := range changes {
		b.WriteString(changes[i].String() + "\n")
	}
	return b.String()
}

// A file that names a namespace is refused for any other one.
func TestCheckNamespace(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ line, namespace, want string }{
		{"", "default", ""},
		{"", "prod", ""},
		{"namespace: prod\n", "prod", ""},
		{"namespace: default\n", "prod", `limits.yaml:2:1: weir: invalid: namespace "default": is not the store's namespace, which is "prod"`},
		{"namespace: prod\n", "default", `limits.yaml:2:1: weir: invalid: namespace "prod": is not the store's namespace, which is "default"`},
	} {
		m, err := manifest.Parse("limits.yaml", []byte("version: 1\n"+tt.line))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := m.CheckNamespace(tt.namespace); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%q in %s: got %s, want %s", tt.line, tt.namespace, got, tt.want)
		}
	}
}
