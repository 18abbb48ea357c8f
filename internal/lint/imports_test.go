package lint

import (
	"fmt"
	"go/ast"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// importRule compares the imports of the files with the import table.
var importRule = rule{
	name:  "imports",
	check: checkImports,
	samples: []sample{
		{"as the table says", map[string]string{
			"limiter.go": `package weir
				import ("time"; "github.com/weir-limiter/weir/kernel")`,
			"memory/m.go":      `package memory; import "github.com/weir-limiter/weir"`,
			"memory/m_test.go": `package memory_test; import "github.com/weir-limiter/weir/conformance"`,
			"dynamodb/d.go":    `package dynamodb; import "github.com/aws/aws-sdk-go-v2/aws"`,
			"cmd/weir/main.go": `package main; import "github.com/weir-limiter/weir/internal/cli"`,
			"testdata/x/x.go":  `package x; import "example.com/y"`,
		}, ""},
		{"a folder in no row", map[string]string{"redis/r.go": `package redis`}, "redis: is in no row"},
		{"tests in no row", map[string]string{"redis/r_test.go": `package redis`}, "redis: is in no row"},
		{"a module in the root", map[string]string{
			"a.go": `package weir; import "github.com/spf13/cobra"`,
		}, "a.go:1: . may not import github.com/spf13/cobra"},
		{"a module in a test of the root", map[string]string{
			"a_test.go": `package weir; import "github.com/spf13/cobra"`,
		}, "may not import"},
		{"a module in the arithmetic", map[string]string{
			"kernel/a.go": `package kernel; import "golang.org/x/exp/constraints"`,
		}, "kernel may not import"},
		{"a module whose name has the same prefix", map[string]string{
			"manifest/a.go": `package manifest; import "github.com/goccy/go-yaml2"`,
		}, "manifest may not import"},
		{"a room below an allowed one", map[string]string{
			"memory/a_test.go": `package m; import "github.com/weir-limiter/weir/conformance/broken"`,
		}, "may not import conformance/broken"},
		{"production code that takes what is for tests", map[string]string{
			"httpapi/a.go": `package httpapi; import "github.com/weir-limiter/weir/memory"`,
		}, "httpapi may not import memory"},
		{"a store that imports a store", map[string]string{
			"dynamodb/a_test.go": `package dynamodb; import "github.com/weir-limiter/weir/memory"`,
		}, "may not import memory"},
		{"cmd in a room that may import anything", map[string]string{
			"bench/a.go": `package bench; import "github.com/weir-limiter/weir/cmd/weir"`,
		}, "may not import cmd/weir"},
		{"a folder of ours that is in no row", map[string]string{
			"httpapi/a.go": `package httpapi; import "github.com/weir-limiter/weir/redis"`,
		}, "httpapi may not import redis"},
		{"cgo", map[string]string{"memory/a.go": "package memory\nimport \"C\"\n"}, "may not import C"},
	},
}

func checkImports(r *repo) (string, []string) {
	var faults []string
	seen := map[string]bool{}
	n := 0
	for _, f := range r.all() {
		row := findRoom(f.room())
		if row == nil {
			if !seen[f.room()] {
				faults = append(faults, f.room()+": is in no row of the import table")
			}
			seen[f.room()] = true
			continue
		}
		seen[f.room()] = true
		for _, spec := range f.syntax.Imports {
			n++
			if name := importPath(spec); !row.allows(name, f.test()) {
				dir, _ := inModule(name)
				faults = append(faults, r.fault(spec, "%s may not import %s", row.dir, dir))
			}
		}
	}
	return fmt.Sprintf("%d imports in %d rooms; the table has %d", n, len(seen), len(rooms)), faults
}

func findRoom(dir string) *room {
	for i := range rooms {
		if rooms[i].dir == dir {
			return &rooms[i]
		}
	}
	return nil
}

// importPath returns the path of an import.
func importPath(spec *ast.ImportSpec) string {
	name, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return spec.Path.Value // the parser has checked the literal
	}
	return name
}

// inModule returns the folder of an import path if it is in this module.
func inModule(name string) (dir string, ours bool) {
	if name == module {
		return root, true
	}
	return strings.CutPrefix(name, module+"/")
}

func (m *room) allows(imported string, test bool) bool {
	dir, ours := inModule(imported)
	switch {
	case ours && strings.HasPrefix(dir, "cmd/"):
		return false
	case ours && dir == m.dir, !ours && isStandard(imported):
		return true
	}
	entries := m.imports
	if test {
		entries = slices.Concat(m.imports, m.tests, everyTest)
	}
	for _, e := range entries {
		if e == anything || e == dir || !ours && strings.HasPrefix(imported, e+"/") {
			return true
		}
	}
	return false
}

// isStandard reports whether an import path belongs to the standard library, not to a module, whose
// first part has a dot, and not cgo.
func isStandard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return imported != "C" && !strings.Contains(first, ".")
}

// TestImportTable checks the table itself against rules that no row may weaken.
func TestImportTable(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, m := range rooms {
		if seen[m.dir] {
			t.Errorf("%s has two rows", m.dir)
		}
		seen[m.dir] = true
		for _, name := range append(slices.Clone(m.imports), m.tests...) {
			if strings.HasPrefix(name, "cmd/") {
				t.Errorf("%s: a row lets it import %s; no package may import cmd", m.dir, name)
			}
			if slices.Contains(stores, m.dir) && (name == anything || slices.Contains(stores, name)) {
				t.Errorf("%s: a row lets a store import %s", m.dir, name)
			}
		}
		for _, name := range m.imports {
			if slices.Contains(testSupport, name) && !slices.Contains(testSupport, m.dir) {
				t.Errorf("%s: a row lets production code import %s", m.dir, name)
			}
		}
	}
	for _, dir := range []string{root, "kernel"} {
		for _, name := range findRoom(dir).imports {
			if findRoom(name) == nil || name == anything {
				t.Errorf("%s: a row lets it import %s; it needs the standard library alone", dir, name)
			}
		}
	}
}

// testingRule keeps test frameworks out of users' binaries.
var testingRule = rule{
	name:  "testing in production code",
	check: checkTesting,
	samples: []sample{
		{"in tests and in the suites", map[string]string{
			"a_test.go":        `package weir; import "testing"`,
			"conformance/a.go": `package conformance; import ("testing"; "testing/synctest")`,
		}, ""},
		{"in the library", map[string]string{
			"a.go": `package weir; import "testing"`,
		}, "imports testing"},
		{"a part of it", map[string]string{
			"memory/a.go": `package memory; import "testing/fstest"`,
		}, "imports testing/fstest"},
	},
}

func checkTesting(r *repo) (string, []string) {
	var faults []string
	n := 0
	for _, f := range r.source(false) {
		for _, spec := range f.syntax.Imports {
			name := importPath(spec)
			if name != "testing" && !strings.HasPrefix(name, "testing/") {
				continue
			}
			n++
			if !slices.Contains(testSupport, f.room()) {
				faults = append(faults, r.fault(spec, "production code imports %s", name))
			}
		}
	}
	return fmt.Sprintf("%d such imports, all but %d in %v", n, len(faults), testSupport), faults
}
