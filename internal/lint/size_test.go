package lint

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
	"unicode/utf8"
)

// Reviewers read files and functions that fit on a few screens, and skim longer ones.
const (
	maxFileLines    = 500
	maxMedianLines  = 180 // of production files
	maxFuncLines    = 70
	usualFuncLines  = 40
	minUsualPercent = 90 // of production functions have no more than usualFuncLines
	maxParameters   = 5
	maxColumns      = 100 // a tab counts as one
	maxWidePercent  = 1   // of lines may be longer than maxColumns
)

var fileRule = rule{
	name:  "file length",
	check: checkFiles,
	samples: []sample{
		{"as long as may be", map[string]string{"a.go": goLines(maxFileLines)}, ""},
		{"one line more", map[string]string{"a.go": goLines(maxFileLines + 1)}, "a.go: 501 lines"},
		{"a long test", map[string]string{"a_test.go": goLines(600)}, "a_test.go: 600 lines"},
	},
}

func checkFiles(r *repo) (string, []string) {
	var faults []string
	longest := &file{}
	for _, f := range r.all() {
		if f.lines() > longest.lines() {
			longest = f
		}
		if n := f.lines(); n > maxFileLines {
			faults = append(faults, fmt.Sprintf("%s: %d lines, at most %d", f.path, n, maxFileLines))
		}
	}
	return fmt.Sprintf("%d Go files, the longest is %s with %d lines (at most %d)",
		len(r.all()), longest.path, longest.lines(), maxFileLines), faults
}

var medianRule = rule{
	name:  "median file",
	check: checkMedian,
	samples: []sample{
		{"one long file of three", map[string]string{
			"a.go": goLines(10), "b.go": goLines(400), "c.go": goLines(maxMedianLines),
		}, ""},
		{"tests do not count", map[string]string{
			"a.go": goLines(400), "a_test.go": goLines(10), "b_test.go": goLines(10),
		}, "400 lines"},
		{"two long files of three", map[string]string{
			"a.go": goLines(10), "b.go": goLines(400), "c.go": goLines(maxMedianLines + 1),
		}, "181 lines"},
	},
}

func checkMedian(r *repo) (string, []string) {
	var lines []int
	for _, f := range r.source(false) {
		lines = append(lines, f.lines())
	}
	n := quantile(lines, 50)
	figures := fmt.Sprintf("the median of %d production files has %d lines, at most %d",
		len(lines), n, maxMedianLines)
	if n > maxMedianLines {
		return figures, []string{figures}
	}
	return figures, nil
}

var functionRule = rule{
	name:  "function length",
	check: checkFunctions,
	samples: []sample{
		{"long ones are rare", map[string]string{
			"a.go": "package a\n" + strings.Repeat(goFunc(10), 9) + goFunc(maxFuncLines),
		}, ""},
		{"tests may have more of them", map[string]string{
			"a_test.go": "package a\n" + goFunc(60),
		}, ""},
		{"one line too many", map[string]string{
			"a.go": "package a\n" + strings.Repeat(goFunc(10), 9) + goFunc(maxFuncLines+1),
		}, "71 lines"},
		{"a long test", map[string]string{"a_test.go": "package a\n" + goFunc(80)}, "80 lines"},
		{"too many long ones", map[string]string{
			"a.go": "package a\n" + strings.Repeat(goFunc(usualFuncLines), 8) + goFunc(usualFuncLines+1),
		}, "88 %"},
	},
}

func checkFunctions(r *repo) (string, []string) {
	var faults []string
	var lines []int
	for _, f := range r.all() {
		for _, fn := range functions(f) {
			n := r.span(fn)
			if !f.test() {
				lines = append(lines, n)
			}
			if n > maxFuncLines {
				faults = append(faults,
					r.fault(fn, "%s has %d lines, at most %d", fn.Name.Name, n, maxFuncLines))
			}
		}
	}
	usual := 0
	for _, n := range lines {
		if n <= usualFuncLines {
			usual++
		}
	}
	percent := 100
	if len(lines) > 0 {
		percent = 100 * usual / len(lines)
	}
	share := fmt.Sprintf("%d %% of %d production functions have at most %d lines (at least %d %%)",
		percent, len(lines), usualFuncLines, minUsualPercent)
	if percent < minUsualPercent {
		faults = append(faults, share)
	}
	return fmt.Sprintf("%s; median %d, 90 %% %d, 99 %% %d", share,
		quantile(lines, 50), quantile(lines, 90), quantile(lines, 99)), faults
}

// parameterRule does not check function literals, because the function to which they are passed
// decides their signature.
var parameterRule = rule{
	name:  "parameters",
	check: checkParameters,
	samples: []sample{
		{"five", map[string]string{"a.go": `package a
			func (r T) f(a, b int, c, d int, e ...string) (g, h int) { return 1, 2 }
			type I interface { M(A, a.B, C, *D, []E) }
		`}, ""},
		{"six named", map[string]string{
			"a.go": `package a; func f(a, b int, c, d, e, f string) {}`,
		}, "f has 6 par"},
		{"six unnamed in an interface", map[string]string{
			"a.go": `package a; type I interface { M(A, B, C, D, E, F) }`,
		}, "M has 6 par"},
		{"six in a test", map[string]string{
			"a_test.go": `package a; func f(a, b, c, d, e, f int) {}`,
		}, "f has 6 par"},
	},
}

func checkParameters(r *repo) (string, []string) {
	var faults []string
	count := make([]int, maxParameters+2)
	judge := func(n ast.Node, name string, sig *ast.FuncType) {
		params := sig.Params.NumFields()
		count[min(params, maxParameters+1)]++
		if params > maxParameters {
			faults = append(faults,
				r.fault(n, "%s has %d parameters, at most %d", name, params, maxParameters))
		}
	}
	for _, f := range r.all() {
		for _, fn := range functions(f) {
			judge(fn, fn.Name.Name, fn.Type)
		}
		for _, m := range interfaceMethods(f) {
			judge(m, m.Names[0].Name, m.Type.(*ast.FuncType))
		}
	}
	figures := fmt.Sprintf("functions with 0, 1, … %d and more parameters: %v", maxParameters, count)
	return figures, faults
}

var columnRule = rule{
	name:  "columns",
	check: checkColumns,
	samples: []sample{
		{"one in a hundred", map[string]string{
			"a.go": goLines(99) + "//" + strings.Repeat("x", maxColumns-1) + "\n",
		}, ""},
		{"characters, not bytes", map[string]string{
			"a.go": "package a // " + strings.Repeat("é", 80),
		}, ""},
		{"a wide line in a short file", map[string]string{
			"a.go": "package a\n\t//" + strings.Repeat("x", maxColumns-2),
		}, "a.go:2"},
		{"one in fifty", map[string]string{
			"a.go": goLines(49) + "//" + strings.Repeat("x", maxColumns-1) + "\n",
		}, "1 of 50 lines"},
	},
}

func checkColumns(r *repo) (string, []string) {
	var wide []string
	lines := 0
	for _, f := range r.all() {
		lines += f.lines()
		n := 0
		for line := range strings.Lines(f.text) {
			n++
			line = strings.TrimSuffix(line, "\n")
			if utf8.RuneCountInString(line) > maxColumns {
				wide = append(wide, fmt.Sprintf("%s:%d", f.path, n))
			}
		}
	}
	figures := fmt.Sprintf("%d of %d lines have more than %d columns, at most %d %%",
		len(wide), lines, maxColumns, maxWidePercent)
	if 100*len(wide) > maxWidePercent*lines {
		return figures, []string{figures + ": " + strings.Join(wide[:min(len(wide), 20)], " ")}
	}
	return figures, nil
}

// quantile returns the smallest of the numbers that p percent of them do not exceed; 0 for none.
func quantile(numbers []int, p int) int {
	if len(numbers) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(numbers))
	return sorted[(len(sorted)*p+99)/100-1]
}

// functions returns the functions and methods that a file declares.
func functions(f *file) []*ast.FuncDecl {
	var out []*ast.FuncDecl
	for _, d := range f.syntax.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok {
			out = append(out, fn)
		}
	}
	return out
}

// interfaceMethods returns the methods of the interfaces that a file spells out.
func interfaceMethods(f *file) []*ast.Field {
	var out []*ast.Field
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		if it, ok := n.(*ast.InterfaceType); ok {
			for _, m := range it.Methods.List {
				if _, ok := m.Type.(*ast.FuncType); ok {
					out = append(out, m)
				}
			}
		}
		return true
	})
	return out
}

// goLines is a Go file of n lines.
func goLines(n int) string { return "package a\n" + strings.Repeat("\n", n-1) }

// goFunc is a function of n lines.
func goFunc(n int) string { return "func f() {" + strings.Repeat("\n", n-1) + "}\n" }
