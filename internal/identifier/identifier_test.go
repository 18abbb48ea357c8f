package identifier_test

import (
	"os"
	"regexp"
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
	rows := regexp.MustCompile("(?m)^\\| `(.*)` \\| (yes|no) \\| (yes|no) \\| (yes|no) \\|$").
		FindAllStringSubmatch(string(page), -1)
	if len(rows) < 10 {
		t.Fatalf("found %d examples, want all of them", len(rows))
	}
	for _, row := range rows {
		name := row[1]
		reasons := []string{
			identifier.CheckEntity(name, true), identifier.CheckResource(name), identifier.CheckLimit(name),
		}
		for i, what := range []string{"entity", "resource", "limit"} {
			if allowed := reasons[i] == ""; allowed != (row[2+i] == "yes") {
				t.Errorf("%q as %s: the page has %s, but it is allowed: %t (%s)", name, what, row[2+i], allowed, reasons[i])
			}
		}
	}
}
