package conformance

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weir-limiter/weir/driver"
)

// everyCase returns the cases of all suites.
func everyCase() []Case {
	h := StoreHarness{Open: func(T, Setup) driver.Store { return nil }}
	return slices.Concat(Cases(), h.Cases(), UsageHarness{StoreHarness: h}.UsageCases())
}

func readSemantics(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../docs/semantics.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// numberedLines returns the numbers of the page's lines, such as "3.5", except for the section
// about stores.
func numberedLines(page string) []string {
	heading, item := regexp.MustCompile(`^## (\d+)\. (.*)`), regexp.MustCompile(`^(\d+)\. `)
	var lines []string
	section := ""
	for line := range strings.Lines(page) {
		if m := heading.FindStringSubmatch(line); m != nil {
			section = m[1]
			if m[2] == "Stores" {
				section = ""
			}
		} else if m := item.FindStringSubmatch(line); m != nil && section != "" {
			lines = append(lines, section+"."+m[1])
		}
	}
	return lines
}

func TestEveryLineHasACase(t *testing.T) {
	t.Parallel()
	lines := numberedLines(readSemantics(t))
	if len(lines) < 50 {
		t.Fatalf("found %d numbered lines on the page, want all of them", len(lines))
	}
	cases := map[string]int{}
	for _, c := range everyCase() {
		cases[c.Line]++
		known := slices.Contains(lines, c.Line) ||
			slices.Contains([]string{"6 table", "6 content", seamLine}, c.Line)
		if !known {
			t.Errorf("case %q is about a line that the page has not", c.Title())
		}
	}
	for _, line := range lines {
		if cases[line] == 0 {
			t.Errorf("line %s of docs/semantics.md has no case", line)
		}
	}
	t.Logf("%d lines, %d cases: %v", len(lines), len(everyCase()), cases)
}

func TestEveryMistakeHasACase(t *testing.T) {
	t.Parallel()
	for _, m := range Mistakes() {
		n := 0
		for _, c := range everyCase() {
			if strings.Contains(c.Name, m.Name) {
				n++
			}
		}
		if (n == 0) != (m.Elsewhere != "") {
			t.Errorf("%s has %d cases, and is guarded elsewhere: %q", m.Name, n, m.Elsewhere)
		}
	}
}

func TestNamesOfCasesDiffer(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, c := range everyCase() {
		if seen[c.Title()] {
			t.Errorf("two cases are called %q", c.Title())
		}
		seen[c.Title()] = true
	}
}

// TestTableMatchesTheDocs compares the cells that the suite checks with the table on the page.
func TestTableMatchesTheDocs(t *testing.T) {
	t.Parallel()
	var page []string
	for line := range strings.Lines(readSemantics(t)) {
		verb, rest, found := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "| "), " | ")
		if found && regexp.MustCompile(`^(reserve|adjust|complete|cancel|extend)\b`).MatchString(verb) {
			page = append(page, pageCells(verb, strings.Split(strings.TrimSuffix(rest, " |"), " | "))...)
		}
	}
	var checked []string
	for _, row := range tableRows {
		checked = append(checked, pageCells(row.verb, row.does[:])...)
	}
	slices.Sort(page)
	slices.Sort(checked)
	if !slices.Equal(page, checked) {
		t.Errorf("the page's table and the suite's differ:\npage:  %q\nsuite: %q", page, checked)
	}
}

// pageCells writes a row cell by cell. The page has one row for both kinds of complete.
func pageCells(verb string, does []string) []string {
	var cells []string
	first, second, two := strings.Cut(verb, " / ")
	for i, what := range does {
		if !two {
			cells = append(cells, fmt.Sprintf("%s on %s: %s", verb, tableStates[i], what))
			continue
		}
		a, b, differ := strings.Cut(what, " / ")
		if !differ {
			b = a
		}
		cells = append(cells, fmt.Sprintf("%s actuals on %s: %s", first, tableStates[i], a),
			fmt.Sprintf("complete, %s on %s: %s", second, tableStates[i], b))
	}
	return cells
}
