package server

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// loggedIn has the packages that write to the server's log.
var loggedIn = []string{".", filepath.Join("..", "..", "httpapi", "httphandler")}

// TestLogIsDocumented compares the tables of docs/server.md with the messages and the fields that the
// code logs.
func TestLogIsDocumented(t *testing.T) {
	t.Parallel()
	section := logSection(t)
	messages, fields := loggedBy(t)
	inTable := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (?:debug|info|warn|error)")
	compare(t, "messages", messages, found(inTable, section))
	compare(t, "fields", fields, found(regexp.MustCompile("(?m)^- `([a-z_]+)`"), section))
}

// logSection returns the section of the documentation about the log.
func logSection(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "server.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), "\n## The log\n")
	if !ok {
		t.Fatal("docs/server.md has no section about the log")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	return section
}

// checkRows checks that lines, in the form of text, have no fields but those in their row of the
// table.
func checkRows(t *testing.T, lines []string) {
	t.Helper()
	section := logSection(t)
	rows := map[string][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| .*$").FindAllStringSubmatch(section, -1) {
		rows[row[1]] = found(regexp.MustCompile("`([a-z_]+)`"), row[0])
	}
	key := regexp.MustCompile(` ([a-z_]+)=("(?:[^"\\]|\\.)*"|\S*)`)
	for _, line := range lines {
		fields := key.FindAllStringSubmatch(" "+line, -1)
		message := strings.Trim(fields[2][2], `"`)
		for _, f := range fields[3:] {
			if !slices.Contains(rows[message], f[1]) {
				t.Errorf("%q has the field %q, which the table does not have: %s", message, f[1], line)
			}
		}
	}
}

// checkExamples checks that each example of grep finds a line. hour is the hour of the lines.
func checkExamples(t *testing.T, lines []string, hour string) {
	t.Helper()
	section := logSection(t)
	for _, example := range found(regexp.MustCompile(`(?m)^\$ grep (?:-E )?'([^']+)' weir.log`), section) {
		example = regexp.MustCompile(`20\d\d-\d\d-\d\dT\d\d`).ReplaceAllString(example, hour)
		if !slices.ContainsFunc(lines, regexp.MustCompile(example).MatchString) {
			t.Errorf("grep %q finds nothing", example)
		}
	}
}

func found(form *regexp.Regexp, text string) []string {
	var all []string
	for _, m := range form.FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}

func compare(t *testing.T, what string, code, document []string) {
	t.Helper()
	slices.Sort(code)
	slices.Sort(document)
	code = slices.Compact(code)
	for _, name := range code {
		if !slices.Contains(document, name) {
			t.Errorf("%s: %q is logged, but not in docs/server.md", what, name)
		}
	}
	for i, name := range document {
		if !slices.Contains(code, name) {
			t.Errorf("%s: %q is in docs/server.md, but not logged", what, name)
		}
		if i > 0 && document[i-1] == name {
			t.Errorf("%s: %q is twice in docs/server.md", what, name)
		}
	}
}

// loggedBy returns the messages and the names of the fields in calls of package slog.
func loggedBy(t *testing.T) (messages, fields []string) {
	t.Helper()
	for _, dir := range loggedIn {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", dir, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(tree, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					message, field := logCall(call)
					messages, fields = append(messages, message...), append(fields, field...)
				}
				return true
			})
		}
	}
	return messages, fields
}

// logCall returns the message or the field of a call, if it is one of package slog.
//
// The methods attrs and the function add have names of fields as arguments, too.
func logCall(call *ast.CallExpr) (message, field []string) {
	of, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		if f, ok := call.Fun.(*ast.Ident); ok && f.Name == "add" && len(call.Args) > 0 {
			return nil, literal(call.Args[0])
		}
		return nil, nil
	}
	switch of.Sel.Name {
	case "LogAttrs", "Log":
		if len(call.Args) > 2 {
			return literal(call.Args[2]), nil
		}
	case "attrs":
		for _, arg := range call.Args {
			field = append(field, literal(arg)...)
		}
		return nil, field
	case "DebugContext", "InfoContext", "WarnContext", "ErrorContext":
		return literal(call.Args[1]), nil
	}
	if from, ok := of.X.(*ast.Ident); ok && from.Name == "slog" && len(call.Args) == 2 {
		return nil, literal(call.Args[0])
	}
	return nil, nil
}

func literal(e ast.Expr) []string {
	if l, ok := e.(*ast.BasicLit); ok && l.Kind == token.STRING {
		if text, err := strconv.Unquote(l.Value); err == nil {
			return []string{text}
		}
	}
	return nil
}
