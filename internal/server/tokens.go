package server

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi/httphandler"
)

// tokenDigest is the SHA-256 of a bearer token. The server does not keep the token itself.
type tokenDigest [sha256.Size]byte

// tokenEntry is one bearer token.
type tokenEntry struct {
	identity httphandler.Identity
	digest   tokenDigest
}

// tokenSet are the bearer tokens in force.
type tokenSet struct {
	current atomic.Pointer[[]tokenEntry]
}

// load puts the bearer tokens of a file in force, and returns what is different from before. With an
// error it changes nothing.
func (t *tokenSet) load(file *fileContent) ([]slog.Attr, error) {
	if err := checkPrivate(file); err != nil {
		return nil, err
	}
	entries, err := parseTokens(file.name, file.data)
	if err != nil {
		return nil, err
	}
	var before []tokenEntry
	if old := t.current.Swap(&entries); old != nil {
		before = *old
	}
	return tokenChanges(before, entries), nil
}

// count returns how many bearer tokens are in force: 0 if t is nil or nothing was loaded.
func (t *tokenSet) count() int {
	if t == nil || t.current.Load() == nil {
		return 0
	}
	return len(*t.current.Load())
}

// callers returns how many bearer tokens may reserve: 0 if t is nil or nothing was loaded.
func (t *tokenSet) callers() (n int) {
	if t == nil || t.current.Load() == nil {
		return 0
	}
	for _, e := range *t.current.Load() {
		if e.identity.Role >= httphandler.RoleCall {
			n++
		}
	}
	return n
}

// checkPrivate refuses a file that others than its owner can read or write. The group may read a file
// of root if the server is another user: that is how a mounted secret reaches a server without
// privileges. Windows has no such modes.
func checkPrivate(file *fileContent) error {
	refused := os.FileMode(0o077)
	if file.lent {
		refused = 0o037
	}
	if runtime.GOOS == "windows" || file.mode.Perm()&refused == 0 {
		return nil
	}
	return fmt.Errorf("%s: its mode %04o lets other users read or change it: set it to 0600",
		file.name, file.mode.Perm())
}

// authenticate returns the owner of a bearer token. It compares the token with every entry in
// constant time, so that the time it takes reveals nothing about a guess.
func (t *tokenSet) authenticate(bearer string) (httphandler.Identity, bool) {
	digest := tokenDigest(sha256.Sum256([]byte(bearer)))
	entries := *t.current.Load()
	found := -1
	for i := range entries {
		same := subtle.ConstantTimeCompare(digest[:], entries[i].digest[:])
		found = subtle.ConstantTimeSelect(same, i, found)
	}
	if found < 0 {
		return httphandler.Identity{}, false
	}
	return entries[found].identity, true
}

const (
	maxTokenFile    = 256 << 10
	maxTokens       = 1000
	maxTokenNesting = 16 // the YAML parser is slow on deep brackets
	minTokenBytes   = 16 // characters
	maxTokenBytes   = 1024
)

// tokenSyntax is the syntax of a bearer token in RFC 6750.
var tokenSyntax = regexp.MustCompile(`^[A-Za-z0-9._~+/-]+=*$`)

// tokenName is the syntax of a name in the file.
var tokenName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// hidden replaces in messages what may be a secret.
const hidden = "(hidden)"

// tokenMistake is a mistake in a bearer-token file, with its position. It quotes nothing that is
// long enough to be a bearer token.
type tokenMistake struct {
	file         string
	line, column int
	err          *weir.Error
}

func (e *tokenMistake) Error() string {
	return fmt.Sprintf("%s:%d:%d: %v", e.file, e.line, e.column, e.err)
}

func (e *tokenMistake) Unwrap() error { return e.err }

// tokenReader reads a bearer-token file and collects its mistakes.
type tokenReader struct {
	file    string
	entries []tokenEntry
	found   []*tokenMistake
	names   map[string]bool
	digests map[tokenDigest]string // to names
}

// parseTokens reads the bearer tokens of a file:
//
//	tokens:
//	  - {name: checkout, role: call, token: "at least 16 characters"}
//	  - {name: ops, role: admin, namespaces: all, sha256: "64 hexadecimal digits"}
//
// It returns all mistakes, joined, in the order of the file.
func parseTokens(file string, data []byte) ([]tokenEntry, error) {
	r := &tokenReader{file: file, names: map[string]bool{}, digests: map[tokenDigest]string{}}
	r.read(data)
	slices.SortStableFunc(r.found, func(a, b *tokenMistake) int {
		return cmp.Or(cmp.Compare(a.line, b.line), cmp.Compare(a.column, b.column))
	})
	var errs []error
	for _, m := range r.found {
		errs = append(errs, m)
	}
	return r.entries, errors.Join(errs...)
}

func (r *tokenReader) read(data []byte) {
	data = bytes.TrimPrefix(data, []byte("\uFEFF")) // some editors write a byte order mark
	if nesting(data) > maxTokenNesting {
		r.add(nil, "", "", "the file is nested too deeply")
		return
	}
	tree, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		var at *token.Token
		if e, ok := errors.AsType[yaml.Error](err); ok {
			at = e.GetToken()
		}
		r.add(at, "", "", "the file is not YAML") // the parser's error may quote a secret
		return
	}
	if len(tree.Docs) != 1 || tree.Docs[0].Body == nil {
		r.add(nil, "", "", "the file must be one mapping with tokens in it")
		return
	}
	given := false
	r.fields(tree.Docs[0].Body, "", []string{"tokens"}, func(_ string, n ast.Node) {
		given = true
		r.list(n)
	})
	if !given && len(r.found) == 0 {
		r.add(nil, "tokens", "", "is missing")
	}
}

// list reads the bearer tokens.
func (r *tokenReader) list(n ast.Node) {
	list, ok := n.(*ast.SequenceNode)
	switch {
	case !ok:
		r.add(n.GetToken(), "tokens", "", "must be a list")
	case len(list.Values) == 0:
		r.add(n.GetToken(), "tokens", "", "is empty, so no client could use the server")
	case len(list.Values) > maxTokens:
		r.add(n.GetToken(), "tokens", fmt.Sprint(len(list.Values)),
			fmt.Sprintf("a file has at most %d", maxTokens))
	default:
		for i, v := range list.Values {
			r.entry(fmt.Sprintf("tokens[%d]", i), v)
		}
	}
}

// entry reads one bearer token.
func (r *tokenReader) entry(path string, n ast.Node) {
	var e tokenEntry
	before := len(r.found)
	given := map[string]*token.Token{}
	known := []string{"name", "role", "namespaces", "token", "sha256"}
	ok := r.fields(n, path, known, func(field string, n ast.Node) {
		given[field] = n.GetToken()
		path := path + "." + field
		text, ok := r.text(n, path)
		if !ok {
			return
		}
		switch field {
		case "name":
			e.identity.Name = text
			r.name(n, path, text)
		case "role":
			e.identity.Role = r.role(n, path, text)
		case "namespaces":
			e.identity.AllNamespaces = text == "all"
			if !e.identity.AllNamespaces {
				r.add(n.GetToken(), path, text, "must be all, or be left out for that of the server")
			}
		case "token":
			e.digest = r.secret(n, path, text)
		case "sha256":
			e.digest = r.hash(n, path, text)
		}
	})
	if !ok {
		return
	}
	r.complete(path, n, &e, given)
	if len(r.found) > before {
		return
	}
	at := cmp.Or(given["token"], given["sha256"])
	if other, taken := r.digests[e.digest]; taken {
		r.add(at, path, "", fmt.Sprintf("has the same bearer token as %q", other))
		return
	}
	r.digests[e.digest] = e.identity.Name
	r.entries = append(r.entries, e)
}

// complete refuses an entry that lacks a field, or has fields that do not go together.
func (r *tokenReader) complete(
	path string, n ast.Node, e *tokenEntry, given map[string]*token.Token,
) {
	for _, field := range []string{"name", "role"} {
		if given[field] == nil {
			r.add(n.GetToken(), path+"."+field, "", "is missing")
		}
	}
	if of := given["namespaces"]; of != nil && e.identity.Role != httphandler.RoleAdmin {
		r.add(of, path+".namespaces", of.Value, "needs the role admin")
	}
	switch {
	case given["token"] == nil && given["sha256"] == nil:
		r.add(n.GetToken(), path, "", "must have a token, or its sha256")
	case given["token"] != nil && given["sha256"] != nil:
		r.add(given["sha256"], path+".sha256", hidden, "cannot be combined with token")
	}
}

func (r *tokenReader) name(n ast.Node, path, text string) {
	switch {
	case !tokenName.MatchString(text):
		r.add(n.GetToken(), path, text,
			"must have 1 to 64 letters, digits, '.', '_' or '-', and begin with a letter or digit")
	case r.names[text]:
		r.add(n.GetToken(), path, text, "is given twice")
	}
	r.names[text] = true
}

func (r *tokenReader) role(n ast.Node, path, text string) httphandler.Role {
	for _, role := range []httphandler.Role{httphandler.RoleRead, httphandler.RoleCall, httphandler.RoleAdmin} {
		if role.String() == text {
			return role
		}
	}
	r.add(n.GetToken(), path, text, "must be read, call or admin")
	return httphandler.RoleNone
}

func (r *tokenReader) secret(n ast.Node, path, text string) tokenDigest {
	switch {
	case len(text) < minTokenBytes || len(text) > maxTokenBytes:
		r.add(n.GetToken(), path, hidden,
			fmt.Sprintf("must have from %d to %d characters", minTokenBytes, maxTokenBytes))
	case !tokenSyntax.MatchString(text):
		r.add(n.GetToken(), path, hidden,
			"must be letters, digits and any of . _ ~ + / -, with any = at the end")
	}
	return sha256.Sum256([]byte(text))
}

func (r *tokenReader) hash(n ast.Node, path, text string) tokenDigest {
	digest, err := hex.DecodeString(text)
	if err != nil || len(digest) != sha256.Size {
		r.add(n.GetToken(), path, hidden, "must be 64 hexadecimal digits")
		return tokenDigest{}
	}
	if tokenDigest(digest) == sha256.Sum256(nil) {
		r.add(n.GetToken(), path, hidden,
			"is the SHA-256 of an empty text, which is not a bearer token")
	}
	return tokenDigest(digest)
}

// fields calls set for each field of a mapping, and refuses unknown and repeated ones. It reports
// whether n is a mapping.
func (r *tokenReader) fields(
	n ast.Node, path string, known []string, set func(string, ast.Node),
) bool {
	var entries []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		entries = n.Values
	case *ast.MappingValueNode:
		entries = []*ast.MappingValueNode{n}
	default:
		r.add(n.GetToken(), path, "", "must be a mapping of "+strings.Join(known, ", "))
		return false
	}
	seen := map[string]bool{}
	for _, e := range entries {
		at := e.Key.GetToken()
		field := at.Value
		switch {
		case !slices.Contains(known, field):
			r.add(at, joinPath(path, hideSecret(field)), hidden,
				"is unknown: the fields here are "+strings.Join(known, ", "))
		case seen[field]:
			r.add(at, joinPath(path, field), hidden, "is given twice")
		default:
			seen[field] = true
			set(field, e.Value)
		}
	}
	return true
}

// text returns a scalar as it is written.
func (r *tokenReader) text(n ast.Node, path string) (string, bool) {
	switch n.(type) {
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value, true
	}
	r.add(n.GetToken(), path, "", "must be text on one line")
	return "", false
}

// joinPath returns the path of a field.
func joinPath(path, field string) string {
	if path == "" {
		return field
	}
	return path + "." + field
}

// hideSecret returns text unless it is long enough to be a bearer token, which may be anywhere in
// the file.
func hideSecret(text string) string {
	if len(text) >= minTokenBytes {
		return hidden
	}
	return text
}

// add adds a mistake at a token, or at the beginning of the file.
func (r *tokenReader) add(at *token.Token, field, value, reason string) {
	value = hideSecret(value)
	m := &tokenMistake{file: r.file, line: 1, column: 1, err: &weir.Error{
		Code: weir.Invalid, Field: field, Value: value, Reason: reason,
	}}
	if at != nil && at.Position != nil {
		m.line, m.column = max(at.Position.Line, 1), max(at.Position.Column, 1)
	}
	r.found = append(r.found, m)
}

// nesting returns how deep brackets nest, with those in comments and quotes.
func nesting(data []byte) int {
	deepest, depth := 0, 0
	for _, b := range data {
		switch b {
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		}
		deepest = max(deepest, depth)
	}
	return deepest
}
