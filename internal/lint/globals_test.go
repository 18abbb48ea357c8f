package lint

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

var initRule = rule{
	name:  "init functions",
	check: checkInit,
	samples: []sample{
		{"a method may have the name", map[string]string{"a.go": "package a\nfunc (t T) init() {}"}, ""},
		{"one in the code", map[string]string{"a.go": "package a\nfunc init() {}"}, "a.go:2: init"},
		{"one in a test", map[string]string{"a_test.go": "package a\nfunc init() {}"}, "init runs"},
	},
}

func checkInit(r *repo) (string, []string) {
	var faults []string
	n := 0
	for _, f := range r.all() {
		for _, fn := range functions(f) {
			n++
			if fn.Recv == nil && fn.Name.Name == "init" {
				faults = append(faults, r.fault(fn, "init runs unasked; make it a function"))
			}
		}
	}
	return fmt.Sprintf("%d functions, %d named init", n, len(faults)), faults
}

// globalRule keeps state out of package variables. It checks what the code of one package shows. A
// variable must be an assertion (var _ I = T{}), an embedded file, an error, an unexported lock, a
// value of an immutable library type, or an unexported table (an array, slice or map) that is
// written only in its declaration. That means that neither the table nor a part of it is assigned,
// incremented, ranged into, addressed, or passed to a function of the standard library that changes
// its argument. The rule does not notice a write through an alias.
var globalRule = rule{
	name:  "package variables",
	check: checkGlobals,
	samples: []sample{
		{"constants in all but name", map[string]string{"a.go": `package a
			import ("embed"; "errors"; "regexp"; "slices"; "sort"; "sync")
			var _ I = (*T)(nil)
			//go:embed x.txt
			var files embed.FS
			var mu sync.Mutex
			var ErrGone = errors.New("gone")
			var word = regexp.MustCompile("a")
			var table = map[string]int{"a": 1}
			var rows = [...]T{{1}, {2}}
			var built = build()
			func build() []int { return nil }
			func read() int {
				table := map[string]int{}
				table["b"] = 2
				clear(table)
				for i := range rows { _ = rows[i].X }
				_ = slices.Contains(built, 1)
				return sort.SearchInts(built, 2)
			}
		`, "a_test.go": `package a; var seen = 0; func f() { seen++ }`}, ""},
		{"a counter", map[string]string{"a.go": "package a\nvar n int"}, "a.go:2: n"},
		{"a value that wants to be a constant", map[string]string{"a.go": `package a; var n = 1`}, "n"},
		{"a lock for others", map[string]string{"a.go": `package a; import "sync"; var Mu sync.Mutex`}, "Mu"},
		{"a foreign value", map[string]string{"a.go": `package a; import "x"; var c = x.New()`}, "c"},
		{"a swappable function", map[string]string{
			"a.go": `package a; var now = func() int { return 1 }`,
		}, "now"},
		{"a pointer", map[string]string{"a.go": `package a; type T struct{}; var t = &T{}`}, "t"},
		{"an exported table", map[string]string{"a.go": `package a; var T = []int{1}`}, "T: exported"},
		{"an element assigned, in another file", map[string]string{
			"a.go": "package a\nvar t = map[string][]int{}",
			"b.go": "package a\nfunc f() { t[`a`][1] = 2 }",
		}, "b.go:2: t"},
		{"a field counted up", map[string]string{
			"a.go": `package a; var t = []struct{ n int }{{1}}; func f() { t[0].n++ }`,
		}, "t: a table is written"},
		{"ranged into", map[string]string{
			"a.go": `package a; var t = []int{1}; func f() { for t[0] = range 3 {} }`,
		}, "t: a table"},
		{"addressed", map[string]string{
			"a.go": `package a; var t = [1]int{1}; func f() *int { return &t[0] }`,
		}, "t: a table"},
		{"sorted", map[string]string{
			"a.go": `package a; import "slices"; var t = []int{1}; func f() { slices.Sort(t) }`,
		}, "t: a table"},
		{"cleared", map[string]string{
			"a.go": `package a; var t = map[int]int{}; func f() { delete(t, 1) }`,
		}, "t: a table"},
	},
}

// constructors return immutable values.
var constructors = []string{
	"errors.New", "fmt.Errorf", "regexp.MustCompile", "strings.NewReplacer",
}

// mutators change the contents of their first argument.
var mutators = []string{
	"delete", "clear", "copy",
	"slices.Sort", "slices.SortFunc", "slices.SortStableFunc", "slices.Reverse", "slices.Delete",
	"slices.DeleteFunc", "slices.Compact", "slices.CompactFunc", "slices.Insert", "slices.Replace",
	"maps.Copy", "maps.Insert", "maps.DeleteFunc",
	"sort.Ints", "sort.Strings", "sort.Slice", "sort.SliceStable", "sort.Sort", "sort.Stable",
}

func checkGlobals(r *repo) (string, []string) {
	var faults []string
	n := 0
	for dir, files := range r.rooms() {
		g := globals{r: r, dir: dir, info: typeInfo(r, files), tables: map[types.Object]bool{}}
		for _, f := range files {
			g.declarations(f)
		}
		for _, f := range files {
			ast.Inspect(f.syntax, g.writes)
		}
		n += g.count
		faults = append(faults, g.faults...)
	}
	return fmt.Sprintf("%d package variables in production code", n), faults
}

// typeInfo resolves the names of one package. It does not load imports, so their names have no
// type; the rule ignores the errors that follow from that.
func typeInfo(r *repo, files []*file) *types.Info {
	var syntax []*ast.File
	for _, f := range files {
		syntax = append(syntax, f.syntax)
	}
	info := &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: noImports{}, FakeImportC: true, Error: func(error) {}}
	_, _ = config.Check(files[0].room(), r.fset, syntax, info) // see above for the errors
	return info
}

type noImports struct{}

func (noImports) Import(string) (*types.Package, error) {
	return nil, errors.New("imports are not looked at")
}

// globals checks the package variables of one package.
type globals struct {
	r      *repo
	dir    string
	info   *types.Info
	tables map[types.Object]bool
	count  int
	faults []string
}

// declarations checks each package variable of a file by its initial value.
func (g *globals) declarations(f *file) {
	for _, d := range f.syntax.Decls {
		decl, ok := d.(*ast.GenDecl)
		if !ok || decl.Tok != token.VAR {
			continue
		}
		for _, s := range decl.Specs {
			spec := s.(*ast.ValueSpec)
			for i, name := range spec.Names {
				if name.Name == "_" || embeds(decl.Doc) || embeds(spec.Doc) {
					continue
				}
				g.count++
				g.variable(name, spec, i)
			}
		}
	}
}

func (g *globals) variable(name *ast.Ident, spec *ast.ValueSpec, i int) {
	if lock, ok := spec.Type.(*ast.SelectorExpr); ok && lock.Sel.Name == "Mutex" && !name.IsExported() {
		return // they name state that another package keeps for the process
	}
	if len(spec.Values) > i {
		if call, ok := spec.Values[i].(*ast.CallExpr); ok &&
			slices.Contains(constructors, calleeName(call)) {
			g.tables[g.info.Defs[name]] = true
			return
		}
	}
	switch {
	case len(spec.Values) == 0 || !isTable(g.info.Defs[name].Type()):
		g.fault(name, "a package variable that is no table")
	case name.IsExported():
		g.fault(name, "exported, so that anybody may write it")
	default:
		g.tables[g.info.Defs[name]] = true
	}
}

func isTable(t types.Type) bool {
	switch t.Underlying().(type) {
	case *types.Array, *types.Slice, *types.Map:
		return true
	}
	return false
}

func embeds(doc *ast.CommentGroup) bool {
	if doc == nil {
		return false
	}
	return slices.ContainsFunc(doc.List, func(c *ast.Comment) bool {
		return strings.HasPrefix(c.Text, "//go:embed ")
	})
}

// calleeName returns "name" or "package.name", as the call spells it.
func calleeName(call *ast.CallExpr) string {
	switch fn := call.Fun.(type) {
	case *ast.Ident:
		return fn.Name
	case *ast.SelectorExpr:
		if x, ok := fn.X.(*ast.Ident); ok {
			return x.Name + "." + fn.Sel.Name
		}
	}
	return ""
}

// writes finds the statements that write a table.
func (g *globals) writes(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			g.written(n.Lhs...)
		}
	case *ast.IncDecStmt:
		g.written(n.X)
	case *ast.RangeStmt:
		if n.Tok == token.ASSIGN {
			g.written(n.Key, n.Value)
		}
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			g.written(n.X)
		}
	case *ast.CallExpr:
		if len(n.Args) > 0 && slices.Contains(mutators, calleeName(n)) {
			g.written(n.Args[0])
		}
	}
	return true
}

func (g *globals) written(targets ...ast.Expr) {
	for _, e := range targets {
		if id := base(e); id != nil && g.tables[g.info.Uses[id]] {
			g.fault(id, "a table is written after its declaration")
		}
	}
}

func (g *globals) fault(name *ast.Ident, what string) {
	g.faults = append(g.faults, g.r.fault(name, "%s: %s", name.Name, what))
}

// base returns the variable at the bottom of t[i].f[j:k], or nil.
func base(e ast.Expr) *ast.Ident {
	switch e := e.(type) {
	case *ast.Ident:
		return e
	case *ast.IndexExpr:
		return base(e.X)
	case *ast.SelectorExpr:
		return base(e.X)
	case *ast.SliceExpr:
		return base(e.X)
	case *ast.StarExpr:
		return base(e.X)
	case *ast.ParenExpr:
		return base(e.X)
	}
	return nil
}
