package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"strings"
)

// docRule asks for a comment on every exported name of production code. One comment serves a
// declaration in parentheses. In a struct or interface, one comment serves a run of members without
// a blank line, and the type's comment serves them all if none has a comment of its own.
var docRule = rule{
	name:  "doc comments",
	check: checkDocs,
	samples: []sample{
		{"all that is exported", map[string]string{"a.go": `package a
			// T is.
			type T struct {
				// A and B are.
				A, B int
				C int

				D int // is
				e int

				f int
			}
			// M does.
			func (T) M() {}
			// I is.
			type I interface {
				// M does.
				M()
				fmt.Stringer
			}
			// Plain is.
			type Plain struct { X, Y int }
			// Small is.
			type Small interface { M() }
			// The modes.
			const (
				A = 1
				B = 2
			)
			var (
				// X is.
				X int
				Y int // is
			)
			func (t hidden) Exported() {}
			func hide() {}
			type hidden struct { X int }
		`, "a_test.go": `package a; func Helper() {}`}, ""},
		{"a function", map[string]string{"a.go": "package a\nfunc F() {}"}, "a.go:2: F has no"},
		{"a directive is no comment", map[string]string{
			"a.go": "package a\n//go:noinline\nfunc F() {}",
		}, "F has no"},
		{"a type", map[string]string{"a.go": "package a\ntype T int"}, "T has no"},
		{"a constant", map[string]string{"a.go": "package a\nconst C = 1"}, "C has no"},
		{"a variable among others", map[string]string{"a.go": `package a
			var (
				// A is.
				A int
				B int
			)
		`}, "B has no"},
		{"a method", map[string]string{"a.go": `package a
			// T is.
			type T[P any] struct{}
			func (t *T[P]) M() {}
		`}, "T.M has no"},
		{"an interface's method after a blank line", map[string]string{"a.go": `package a
			// T is.
			type T interface {
				// L does.
				L()

				M()
			}
		`}, "T.M has no"},
		{"a field after a blank line", map[string]string{"a.go": `package a
			// T is.
			type T struct {
				// A is.
				A int

				B int
			}
		`}, "T.B has no"},
	},
}

func checkDocs(r *repo) (string, []string) {
	d := docs{r: r}
	for _, f := range r.source(false) {
		for _, decl := range f.syntax.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				d.function(decl)
			case *ast.GenDecl:
				d.declaration(decl)
			}
		}
	}
	return fmt.Sprintf("%d exported names, %d without a comment", d.count, len(d.faults)), d.faults
}

// docs gathers the exported names that no comment serves.
type docs struct {
	r      *repo
	count  int
	faults []string
}

// name counts one name. The comments are those that may serve it.
func (d *docs) name(n ast.Node, name string, comments ...*ast.CommentGroup) {
	d.count++
	for _, c := range comments {
		if strings.TrimSpace(c.Text()) != "" { // Text leaves out directives
			return
		}
	}
	d.faults = append(d.faults, d.r.fault(n, "%s has no doc comment", name))
}

func (d *docs) function(fn *ast.FuncDecl) {
	name := fn.Name.Name
	if fn.Recv != nil {
		receiver := baseName(fn.Recv.List[0].Type)
		if !ast.IsExported(receiver) {
			return
		}
		name = receiver + "." + name
	}
	if fn.Name.IsExported() {
		d.name(fn, name, fn.Doc)
	}
}

func (d *docs) declaration(decl *ast.GenDecl) {
	for _, spec := range decl.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() {
				d.name(s, s.Name.Name, decl.Doc, s.Doc, s.Comment)
				d.members(s)
			}
		case *ast.ValueSpec:
			for _, name := range s.Names {
				if name.IsExported() {
					d.name(name, name.Name, decl.Doc, s.Doc, s.Comment)
				}
			}
		}
	}
}

// members looks at the fields of a struct or the methods of an interface.
func (d *docs) members(s *ast.TypeSpec) {
	var members []*ast.Field
	switch t := s.Type.(type) {
	case *ast.StructType:
		members = t.Fields.List
	case *ast.InterfaceType:
		members = t.Methods.List
	}
	for _, run := range d.runs(members) {
		var comments []*ast.CommentGroup
		for _, f := range run {
			comments = append(comments, f.Doc, f.Comment)
		}
		for _, f := range run {
			for _, name := range f.Names {
				if name.IsExported() {
					d.name(f, s.Name.Name+"."+name.Name, comments...)
				}
			}
		}
	}
}

// runs splits members at blank lines. If no member has a comment there are no runs, because the
// type's comment serves all members.
func (d *docs) runs(members []*ast.Field) [][]*ast.Field {
	var out [][]*ast.Field
	commented := false
	end := 0
	for _, f := range members {
		commented = commented || f.Doc != nil || f.Comment != nil
		var start ast.Node = f
		if f.Doc != nil {
			start = f.Doc
		}
		if len(out) == 0 || d.line(start.Pos()) > end+1 {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], f)
		end = d.line(f.End())
	}
	if !commented {
		return nil
	}
	return out
}

func (d *docs) line(p token.Pos) int { return d.r.fset.Position(p).Line }

// baseName is the name of a receiver's type, without pointer and type parameters.
func baseName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return baseName(e.X)
	case *ast.IndexExpr:
		return baseName(e.X)
	case *ast.IndexListExpr:
		return baseName(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

var packageDocRule = rule{
	name:  "package comments",
	check: checkPackageDocs,
	samples: []sample{
		{"in one file", map[string]string{
			"m/a.go": "package m", "m/b.go": "// Package m is.\npackage m",
		}, ""},
		{"in no file", map[string]string{
			"m/a.go": "package m", "m/b.go": "package m",
		}, "m: no package"},
		{"in a test alone", map[string]string{
			"m/a.go": "package m", "m/a_test.go": "// Package m is.\npackage m",
		}, "no package"},
		{"twice", map[string]string{
			"m/a.go": "// Package m is.\npackage m", "m/b.go": "// Package m is.\npackage m",
		}, "2 package comments"},
	},
}

func checkPackageDocs(r *repo) (string, []string) {
	var faults []string
	rooms := r.rooms()
	for dir, files := range rooms {
		n := 0
		for _, f := range files {
			if strings.TrimSpace(f.syntax.Doc.Text()) != "" {
				n++
			}
		}
		switch {
		case n == 0:
			faults = append(faults, dir+": no package comment")
		case n > 1:
			faults = append(faults, fmt.Sprintf("%s: %d package comments, want one", dir, n))
		}
	}
	return fmt.Sprintf("%d packages", len(rooms)), faults
}
