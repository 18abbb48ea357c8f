package identifier_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/weir-limiter/weir/internal/identifier"
)

// TestNamesGuide checks the examples of docs/names.md.
func TestNamesGuide(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/names.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| `(.*)` \\| (yes|no) \\| (yes|no) \\| (yes|no) \\|.*$").
		FindAllStringSubmatch(string(page), -1)
	if len(rows) < 10 {
		t.Fatalf("found %d examples, want all of them", len(rows))
	}
	for _, row := range rows {
		name := strings.ReplaceAll(row[1], `\|`, "|") // as a table of Markdown has it
		reasons := []string{
			identifier.CheckEntity(name), identifier.CheckResource(name), identifier.CheckLimit(name),
		}
		for i, what := range []string{"entity", "resource", "limit"} {
			if allowed := reasons[i] == ""; allowed != (row[2+i] == "yes") {
				t.Errorf("%q as %s: the page has %s, but it is allowed: %t (%s)", name, what, row[2+i], allowed, reasons[i])
			}
		}
	}
}

// TestReasons checks what is said of malformed names.
func TestReasons(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"":                                     "must not be empty",
		"two words":                            "must not contain ' '",
		"a#b":                                  "must not contain '#', which separates names",
		"a\nb":                                 `must not contain '\n', which cannot be printed`,
		"a\u202eb":                             `must not contain '\u202e', which cannot be printed`,
		"a\u00a0b":                             `must not contain '\u00a0', which cannot be printed`,
		"a\xff":                                "must be valid UTF-8",
		"..":                                   "is reserved",
		"_default_":                            "is reserved",
		"$SYSTEMS":                             `must not begin with "$SYSTEM", which is reserved`,
		"$RESOURCE:":                           `must not begin with "$RESOURCE:", which is reserved`,
		strings.Repeat("é", 64):                "",
		strings.Repeat("é", 64) + "a":          "must have at most 128 bytes, has 129",
		strings.Repeat("a", 128):               "",
		"$RESOURCES":                           "",
		"_default":                             "",
		"...":                                  "",
		"\u0627\u0644\u0634\u0631\u0643\u0629": "",
	} {
		if got := identifier.CheckResource(name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}
