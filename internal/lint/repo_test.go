package lint

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

const module = "github.com/weir-limiter/weir"

// root is the name of the module's own folder in the tables.
const root = "."

// repo has the files that the rules check. It is read once.
type repo struct {
	fset  *token.FileSet
	files []*file // every text file, by path
}

// file is one text file.
type file struct {
	path string // from the module's folder, with slashes
	text string
	// syntax is nil unless the file is Go and takes part in builds.
	syntax *ast.File
}

// load reads a repository: every text file but those of git and those that .gitignore names.
func load(fsys fs.FS) (*repo, error) {
	r := &repo{fset: token.NewFileSet()}
	err := fs.WalkDir(fsys, root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains([]string{".git", ".cache", "dist"}, name) {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || name == ".git" { // a file in a git worktree
			return nil
		}
		return r.read(fsys, name)
	})
	return r, err
}

func (r *repo) read(fsys fs.FS, name string) error {
	data, err := fs.ReadFile(fsys, name)
	if err != nil || bytes.IndexByte(data, 0) >= 0 || !utf8.Valid(data) {
		return err // not text
	}
	f := &file{path: name, text: string(data)}
	if strings.HasSuffix(name, ".go") && !slices.Contains(strings.Split(name, "/"), "testdata") {
		const mode = parser.ParseComments | parser.SkipObjectResolution
		if f.syntax, err = parser.ParseFile(r.fset, name, data, mode); err != nil {
			return err
		}
	}
	r.files = append(r.files, f)
	return nil
}

// find returns the file at a path, or nil.
func (r *repo) find(name string) *file {
	for _, f := range r.files {
		if f.path == name {
			return f
		}
	}
	return nil
}

// source returns the Go files: either only tests or only production code.
func (r *repo) source(tests bool) []*file {
	var out []*file
	for _, f := range r.files {
		if f.syntax != nil && f.test() == tests {
			out = append(out, f)
		}
	}
	return out
}

// all returns every Go file, production code first.
func (r *repo) all() []*file { return append(r.source(false), r.source(true)...) }

// rooms returns the production files of each folder that has any.
func (r *repo) rooms() map[string][]*file {
	out := map[string][]*file{}
	for _, f := range r.source(false) {
		out[f.room()] = append(out[f.room()], f)
	}
	return out
}

// room is the file's folder; "." for the module's own.
func (f *file) room() string { return path.Dir(f.path) }

func (f *file) test() bool { return strings.HasSuffix(f.path, "_test.go") }

// lines returns the number of lines; a last line without a line break counts.
func (f *file) lines() int {
	n := strings.Count(f.text, "\n")
	if f.text != "" && !strings.HasSuffix(f.text, "\n") {
		n++
	}
	return n
}

func countLines(files []*file) int {
	n := 0
	for _, f := range files {
		n += f.lines()
	}
	return n
}

// fault returns the text of a fault at a node.
func (r *repo) fault(n ast.Node, format string, args ...any) string {
	pos := r.fset.Position(n.Pos())
	return fmt.Sprintf("%s:%d: %s", pos.Filename, pos.Line, fmt.Sprintf(format, args...))
}

// span returns the number of lines of a node.
func (r *repo) span(n ast.Node) int {
	return r.fset.Position(n.End()).Line - r.fset.Position(n.Pos()).Line + 1
}
