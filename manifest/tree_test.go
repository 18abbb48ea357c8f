package manifest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// FuzzTree compares the parser with that of the YAML library: what this package parses the library
// parses too, with the same meaning.
func FuzzTree(f *testing.F) {
	for _, seed := range treeSeeds() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		compareWithLibrary(t, text)
	})
}

func treeSeeds() []string {
	return []string{
		"", "a: 1", "a:\n b: 1\nc: 2", "- a", "a: [1]", "a: &x 1", "{a: {b: c}}", "---\na: 1\n...\n",
		"a: {b: 1, 'c': \"d\", e, }\nf:\n  g: h i\n  # text\n  j:\nk: ~\n", "a: |\n  x\n  y\nb: 1",
		"a: x\n  y\nb: 1", "a: 1\n  b: 2", "a: b: c", "a:b", "a: 'x", "a:\n  b: 1\n c: 2", "? a\n: b",
		"{a:b}", "\"a\": 'b'", "--- 0:", "--- {a: 1}",
	}
}

// TestTreeAgainstLibrary compares both parsers on texts that are composed of relevant parts.
func TestTreeAgainstLibrary(t *testing.T) {
	t.Parallel()
	for _, text := range treeSeeds() {
		compareWithLibrary(t, text)
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	pieces := []string{
		"a", "b", ": ", ":", "\n", "\n  ", "\n    ", "{", "}", ", ", "'x'", "\"y\"", "1", " ", "# c\n",
		"~", "c: 1",
	}
	same := 0
	for range 20_000 {
		var b strings.Builder
		for range 1 + r.IntN(12) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		if compareWithLibrary(t, b.String()) {
			same++
		}
	}
	if same < 1000 {
		t.Errorf("only %d texts were read by both: the test says little", same)
	}
}

// compareWithLibrary reports whether both parse the text.
func compareWithLibrary(t *testing.T, text string) bool {
	t.Helper()
	found := &mistakes{}
	text = checkText([]byte(text), found)
	if !found.none() || strings.Count(text, "{")+strings.Count(text, "[") > 100 {
		return false // not text, or too deep for the library
	}
	root, whole := parseTree(text, found)
	if !whole || !found.none() {
		return false
	}
	got := showNode(root)
	if strings.Contains(got, "unread") {
		return false
	}
	file, err := parser.ParseBytes([]byte(text), 0, parser.AllowDuplicateMapKey())
	if err != nil {
		t.Errorf("%q: read as %s; the library says %v", text, got, err)
		return false
	}
	want := "null"
	for _, doc := range file.Docs {
		if doc.Body != nil {
			want = showAST(doc.Body)
		}
	}
	if got != want {
		t.Errorf("%q:\ngot  %s\nwant %s", text, got, want)
	}
	return true
}

func showNode(n *node) string {
	switch n.kind {
	case mappingNode:
		var b strings.Builder
		for i := range n.entries {
			fmt.Fprintf(&b, "%q: %s, ", n.entries[i].name, showNode(&n.entries[i].value))
		}
		return "{" + b.String() + "}"
	case scalarNode:
		return fmt.Sprintf("%q", n.text)
	case nullNode:
		return "null"
	default:
		return "unread"
	}
}

func showAST(n ast.Node) string {
	switch n := n.(type) {
	case *ast.MappingNode:
		var b strings.Builder
		for _, v := range n.Values {
			fmt.Fprintf(&b, "%q: %s, ", v.Key.GetToken().Value, showAST(v.Value))
		}
		return "{" + b.String() + "}"
	case *ast.MappingValueNode:
		return fmt.Sprintf("{%q: %s, }", n.Key.GetToken().Value, showAST(n.Value))
	case *ast.NullNode:
		return "null"
	case *ast.LiteralNode:
		return fmt.Sprintf("%q", n.Value.Value)
	case *ast.StringNode:
		return fmt.Sprintf("%q", n.Value)
	default:
		return fmt.Sprintf("%q", n.GetToken().Value)
	}
}
