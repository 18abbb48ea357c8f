package lint

import (
	"fmt"
	"path"
	"regexp"
	"strings"
	"unicode"
)

// internalsRule checks that the names in docs/internals.md exist, because that page follows the code
// function by function and a renamed function would leave it wrong.
var internalsRule = rule{
	name:  "names in docs/internals.md",
	check: checkInternals,
	samples: []sample{
		{"names that exist", map[string]string{
			"docs/internals.md": "`Store.Reserve` (reserve.go) calls `decide`.\n```\n`gone`\n```\n`--flag x`",
			"memory/reserve.go": "package memory; func (s *Store) Reserve() { s.decide() }",
			"docs/other.md":     "`gone`",
		}, ""},
		{"a function that was renamed", map[string]string{
			"docs/internals.md": "one\n`Store.Reserve` calls `resolve`",
			"a.go":              "package a; func (s *Store) Reserve() {}",
		}, "docs/internals.md:2: no production code has resolve"},
		{"a name that only a test has", map[string]string{
			"docs/internals.md": "`helper`", "a_test.go": "package a; func helper() {}",
		}, "no production code has helper"},
		{"a file that was renamed", map[string]string{
			"docs/internals.md": "see plan.go", "a.go": "package a // plan",
		}, "docs/internals.md:1: there is no plan.go"},
	},
}

var (
	codeSpan = regexp.MustCompile("`[^`]+`")
	goFile   = regexp.MustCompile(`\b\w+\.go\b`)
	goName   = regexp.MustCompile(`^[A-Za-z]\w*$`)
)

func checkInternals(r *repo) (string, []string) {
	page := r.find("docs/internals.md")
	if page == nil {
		return "there is no such page", nil
	}
	words, files := map[string]bool{}, map[string]bool{}
	for _, f := range r.source(false) {
		files[path.Base(f.path)] = true
		for word := range strings.FieldsFuncSeq(f.text, func(c rune) bool {
			return c != '_' && !unicode.IsLetter(c) && !unicode.IsDigit(c)
		}) {
			words[word] = true
		}
	}
	var faults []string
	n, names, fenced := 0, 0, false
	for line := range strings.Lines(page.text) {
		n++
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		if fenced {
			continue
		}
		for _, name := range goFile.FindAllString(line, -1) {
			if names++; !files[name] {
				faults = append(faults, fmt.Sprintf("%s:%d: there is no %s", page.path, n, name))
			}
		}
		for _, span := range codeSpan.FindAllString(line, -1) {
			name := strings.Trim(span, "`")
			name = name[strings.LastIndexAny(name, "./")+1:]
			if names++; goName.MatchString(name) && !words[name] {
				faults = append(faults, fmt.Sprintf("%s:%d: no production code has %s", page.path, n, name))
			}
		}
	}
	return fmt.Sprintf("%d names of functions and files", names), faults
}
