package lint

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// sleepRule forbids time.Sleep outside a bubble of testing/synctest, which makes tests slow and
// dependent on the speed of the machine; inside a bubble it takes no time. The rule assumes that a
// file that imports testing/synctest sleeps only in bubbles. The cases of conformance are played in
// a bubble that another file of the package opens. internal/testkit has the one loop that polls
// real servers.
var sleepRule = rule{
	name:  "sleep",
	check: checkSleep,
	samples: []sample{
		{"in a bubble, or in the kit", map[string]string{
			"a_test.go": `package a
				import ("testing/synctest"; "time")
				func f() { time.Sleep(1) }`,
			"internal/testkit/k.go": `package k; import "time"; func f() { time.Sleep(1) }`,
			"b.go":                  `package a; func f() { time.Sleep(1) } // another package named time`,
			"conformance/a.go":      `package c; import "testing/synctest"`,
			"conformance/b.go":      `package c; import "time"; func f() { time.Sleep(1) }`,
		}, ""},
		{"in a suite without bubbles", map[string]string{
			"conformance/a_test.go": `package c; import "testing/synctest"`,
			"conformance/b.go":      `package c; import "time"; func f() { time.Sleep(1) }`,
		}, "Sleep"},
		{"beside a file with a bubble", map[string]string{
			"memory/a_test.go": `package m; import "testing/synctest"`,
			"memory/b_test.go": `package m; import "time"; func f() { time.Sleep(1) }`,
		}, "Sleep"},
		{"in the code", map[string]string{
			"a.go": "package a\nimport \"time\"\nfunc f() { time.Sleep(1) }",
		}, "a.go:3: Sleep"},
		{"in a test", map[string]string{
			"a_test.go": `package a; import "time"; func f() { time.Sleep(1) }`,
		}, "Sleep"},
		{"not called", map[string]string{
			"a.go": `package a; import "time"; var _ = time.Sleep`,
		}, "Sleep"},
		{"under another name", map[string]string{
			"a.go": `package a; import clock "time"; func f() { clock.Sleep(1) }`,
		}, "Sleep"},
		{"without a name", map[string]string{
			"a.go": `package a; import . "time"; func f() { Sleep(1) }`,
		}, "Sleep"},
	},
}

func checkSleep(r *repo) (string, []string) {
	var faults []string
	n := 0
	bubbled := func(f *file) bool { return importedAs(f, "testing/synctest") != "" }
	suites := slices.ContainsFunc(r.rooms()["conformance"], bubbled)
	for _, f := range r.all() {
		excused := bubbled(f) || f.room() == "internal/testkit" || f.room() == "conformance" && suites
		for _, use := range uses(f, "Sleep") {
			n++
			if !excused {
				faults = append(faults, r.fault(use, "Sleep outside a synctest bubble"))
			}
		}
	}
	return fmt.Sprintf("%d sleeps, %d of them outside a bubble", n, len(faults)), faults
}

// clockless are the packages in which now is always an argument.
var clockless = []string{
	"memory", "manifest", "conformance/broken", "conformance/model", "internal/schema", "kernel",
}

// maxClockLines is the number of lines of the root that may read the clock, because now is read in
// one place.
const maxClockLines = 1

// clockRule bounds the lines that read the clock. It counts time.Since, which reads it. time.Until
// reads it too, but the root may use it, because nothing else can be compared with a context's
// deadline. Tests may read the clock.
var clockRule = rule{
	name:  "clock",
	check: checkClock,
	samples: []sample{
		{"one line in the root, and the edges", map[string]string{
			"a.go":              `package weir; import "time"; func f() { _, _ = time.Now(), time.Now() }`,
			"b.go":              `package weir; import "time"; func f() { time.Until(deadline) }`,
			"a_test.go":         `package weir; import "time"; func f() { time.Now() }`,
			"memory/a_test.go":  `package memory; import "time"; func f() { time.Now() }`,
			"internal/cli/a.go": `package cli; import "time"; func f() { time.Now() }`,
		}, ""},
		{"two lines in the root", map[string]string{
			"a.go": "package weir\nimport \"time\"\nvar _ = time.Now\n",
			"b.go": "package weir\nimport \"time\"\nfunc f() { time.Since(x) }",
		}, "2 lines"},
		{"one in a store", map[string]string{
			"memory/a.go": `package memory; import "time"; func f() { time.Until(x) }`,
		}, "memory/a.go:1: reads the clock"},
	},
}

func checkClock(r *repo) (string, []string) {
	var faults, lines []string
	for _, f := range r.source(false) {
		if f.room() == root {
			for _, use := range uses(f, "Now", "Since") {
				lines = append(lines, r.fault(use, "reads the clock"))
			}
		}
		if slices.Contains(clockless, f.room()) {
			for _, use := range uses(f, "Now", "Since", "Until") {
				faults = append(faults, r.fault(use, "reads the clock; now is an argument here"))
			}
		}
	}
	lines = slices.Compact(lines)
	figures := fmt.Sprintf("%d lines of the root read the clock, at most %d; in %v none may",
		len(lines), maxClockLines, clockless)
	if len(lines) > maxClockLines {
		faults = append(faults,
			fmt.Sprintf("%d lines of the root: %s", len(lines), strings.Join(lines, ", ")))
	}
	return figures, faults
}

// uses finds the places at which a file mentions functions of package time.
func uses(f *file, names ...string) []ast.Node {
	var out []ast.Node
	as := importedAs(f, "time")
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			x, ok := n.X.(*ast.Ident)
			if ok && as != "" && x.Name == as && slices.Contains(names, n.Sel.Name) {
				out = append(out, n)
			}
		case *ast.Ident:
			if as == "." && slices.Contains(names, n.Name) {
				out = append(out, n)
			}
		}
		return true
	})
	return out
}

// importedAs returns the name under which a file imports a package of the standard library, or "".
func importedAs(f *file, name string) string {
	for _, spec := range f.syntax.Imports {
		if importPath(spec) != name {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return name[strings.LastIndex(name, "/")+1:]
	}
	return ""
}
