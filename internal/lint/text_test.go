package lint

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// unwanted are words that must not be published, such as paths of one machine. They are assembled
// from parts here, because this file is checked too. The expression matches the word only in the
// places that count. It is tried only if a file contains the word, because long samples are checked
// as well.
var unwanted = []struct {
	word  string
	where *regexp.Regexp
}{
	{"sha" + "red/", regexp.MustCompile(`(^|[^\w-])sha` + `red/`)}, // a folder that no clone has
	{"/wo" + "rk/", regexp.MustCompile(`/wo` + `rk/`)},             // one machine's path
	{"TO" + "DO", regexp.MustCompile(`\bTO` + `DO\b`)},
	{"FIX" + "ME", regexp.MustCompile(`\bFIX` + `ME\b`)},
	{"XX" + "X", regexp.MustCompile(`\bXX` + `X\b`)},
}

var textRule = rule{
	name:  "unwanted words",
	check: checkText,
	samples: []sample{
		{"similar words", map[string]string{
			"a.md": "pre-sha" + "red/x homework/ /works todo mktemp a.XX" + "XX",
			"b":    "sha" + "red/\x00", // not text
			// Hashes may contain any text, and caches are not part of the repository.
			"go.sum": "h1:+XX" + "X/", ".cache/a": "FIX" + "ME", ".git/a": "FIX" + "ME",
		}, ""},
		{"a folder", map[string]string{"docs/a.md": "one\nsee `sha" + "red/x.md`"}, "docs/a.md:2"},
		{"a path", map[string]string{"run.sh": "cd /wo" + "rk/main"}, "run.sh:1"},
		{"a promise", map[string]string{"a.go": "package a // TO" + "DO: more"}, "a.go:1"},
		{"a worry", map[string]string{"Makefile": "# FIX" + "ME"}, "Makefile:1"},
		{"a mark", map[string]string{"testdata/a.txt": "XX" + "X"}, "testdata/a.txt:1"},
	},
}

func checkText(r *repo) (string, []string) {
	var faults []string
	for _, f := range r.files {
		if path.Base(f.path) == "go.sum" {
			continue
		}
		n := 0
		for line := range strings.Lines(f.text) {
			n++
			for _, u := range unwanted {
				if strings.Contains(line, u.word) && u.where.MatchString(line) {
					faults = append(faults, fmt.Sprintf("%s:%d: %q", f.path, n, u.word))
				}
			}
		}
	}
	return fmt.Sprintf("%d text files", len(r.files)), faults
}
