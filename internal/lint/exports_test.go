package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"slices"
	"strings"
)

// maxExports bounds the exported names of a package, because its users have to learn them. Methods
// do not count, and an enumeration counts once, with its type.
var maxExports = map[string]int{root: 50, "driver": 40, "limiter": 8, "memory": 8, "dynamodb": 10, "tigerbeetle": 6}

var exportRule = rule{
	name:  "exports",
	check: checkExports,
	samples: []sample{
		{"eight, counted as the rule says", map[string]string{"memory/a.go": `package memory
			type Kind string
			const (A Kind = "a"; B Kind = "b")
			type Mode int
			const (C Mode = iota; D; E)
			const (F = 1; G = 2)
			const H Mode = 9
			func New() {}
			type Options struct{}
			var ErrX, ErrY error
			func (Kind) Method() {}
			type private struct{}
			const unseen = 1
		`}, ""},
		{"other rooms are free", map[string]string{"manifest/a.go": `package manifest
			const (A, B, C, D, E, F, G, H, I = 1, 2, 3, 4, 5, 6, 7, 8, 9)
		`}, ""},
		{"nine constants that are no enumeration", map[string]string{"memory/a.go": `package memory
			const (A, B, C, D, E, F, G, H, I = 1, 2, 3, 4, 5, 6, 7, 8, 9)
		`}, "memory: 9 exported names"},
		{"nine, because a mixed block is none", map[string]string{"limiter/a.go": `package limiter
			type Kind string
			const (A Kind = "a"; B Kind = "b"; C Kind = "c"; D Kind = "d"; E Kind = "e")
			const (F Kind = "f"; G, H, I, J, K, L, M = 1, 2, 3, 4, 5, 6, 7)
		`}, "9 exported"},
		{"nine, because the type is another's", map[string]string{"memory/a.go": `package memory
			import "time"
			const (A time.Duration = iota; B; C; D; E; F; G; H; I)
		`}, "9 exported"},
		{"nine functions", map[string]string{
			"memory/a.go": "package a\nfunc A() {}\nfunc B() {}\nfunc C() {}\nfunc D() {}\n",
			"memory/b.go": "package a\n" + "type E int\ntype F int\ntype G int\nvar H, I int\n",
		}, "9 exported"},
	},
}

func checkExports(r *repo) (string, []string) {
	var figures, faults []string
	files := r.rooms()
	for _, dir := range slices.Sorted(maps.Keys(maxExports)) {
		if len(files[dir]) == 0 {
			continue
		}
		names := exports(files[dir])
		figure := fmt.Sprintf("%s: %d exported names, at most %d", dir, len(names), maxExports[dir])
		figures = append(figures, figure)
		if len(names) > maxExports[dir] {
			faults = append(faults, figure+": "+strings.Join(slices.Sorted(maps.Keys(names)), " "))
		}
	}
	return strings.Join(figures, "; "), faults
}

// exports returns the names of a package that count. A name that files for different platforms
// declare counts once.
func exports(files []*file) map[string]bool {
	types := map[string]bool{}
	names := map[string]bool{}
	var consts []*ast.GenDecl
	for _, f := range files {
		for _, d := range f.syntax.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					names[d.Name.Name] = true
				}
			case *ast.GenDecl:
				if d.Tok == token.CONST {
					consts = append(consts, d)
					continue
				}
				for _, name := range declared(d) {
					names[name.Name] = true
					types[name.Name] = d.Tok == token.TYPE
				}
			}
		}
	}
	for _, d := range consts {
		if types[enumerated(d)] {
			continue // counted with its type
		}
		for _, name := range declared(d) {
			names[name.Name] = true
		}
	}
	maps.DeleteFunc(names, func(name string, _ bool) bool { return !ast.IsExported(name) })
	return names
}

// enumerated returns the type of the constants of a declaration if they all have the same type and
// it is a type of this package; otherwise "".
func enumerated(d *ast.GenDecl) string {
	found, last := "", ""
	for i, spec := range d.Specs {
		vs := spec.(*ast.ValueSpec)
		switch id, ok := vs.Type.(*ast.Ident); {
		case ok:
			last = id.Name
		case vs.Type != nil || len(vs.Values) > 0:
			return "" // another package's type, or the value's own; an empty spec repeats the last
		}
		if i > 0 && last != found {
			return ""
		}
		found = last
	}
	return found
}

// declared returns the names that a type, const or var declaration declares.
func declared(d *ast.GenDecl) []*ast.Ident {
	var out []*ast.Ident
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			out = append(out, s.Name)
		case *ast.ValueSpec:
			out = append(out, s.Names...)
		}
	}
	return out
}
