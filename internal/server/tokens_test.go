package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi/httphandler"
	"github.com/weir-limiter/weir/limiter"
)

// The bearer tokens of the tests.
const (
	adminToken = "admin-token-0123456789"
	callToken  = "call-token-0123456789/+=="
	readToken  = "read-token-0123456789"
)

func digestOf(bearer string) string {
	sum := sha256.Sum256([]byte(bearer))
	return hex.EncodeToString(sum[:])
}

func tokensFile(entries ...string) string {
	return "tokens:\n  - " + strings.Join(entries, "\n  - ") + "\n"
}

// threeTokens has a token of each role, the last by its digest.
func threeTokens() string {
	return tokensFile(
		"{name: ops, role: admin, token: "+adminToken+"}",
		"name: checkout\n    role: call\n    token: '"+callToken+"'",
		"{name: grafana, role: read, sha256: "+strings.ToUpper(digestOf(readToken))+"}",
	)
}

// readTokens reads a file as the server does.
func readTokens(t *testing.T, file string) (*tokenSet, error) {
	t.Helper()
	held := &tokenSet{}
	_, err := (&source{
		files: []string{file}, options: []string{"tokens"}, most: maxTokenFile, modes: true,
		load: func(_ context.Context, read []fileContent) ([]slog.Attr, error) {
			return held.load(&read[0])
		},
	}).loadChanged(t.Context())
	return held, err
}

func TestTokens(t *testing.T) {
	t.Parallel()
	held, err := readTokens(t, write(t, t.TempDir(), "tokens.yaml", threeTokens()))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		bearer string
		want   httphandler.Identity
		ok     bool
	}{
		{adminToken, httphandler.Identity{Name: "ops", Role: httphandler.RoleAdmin}, true},
		{callToken, httphandler.Identity{Name: "checkout", Role: httphandler.RoleCall}, true},
		{readToken, httphandler.Identity{Name: "grafana", Role: httphandler.RoleRead}, true},
		{"", httphandler.Identity{}, false},
		{adminToken + "x", httphandler.Identity{}, false},
		{adminToken[:len(adminToken)-1], httphandler.Identity{}, false},
		{strings.ToUpper(adminToken), httphandler.Identity{}, false},
		{digestOf(adminToken), httphandler.Identity{}, false},
		{digestOf(readToken), httphandler.Identity{}, false},
		{"checkout", httphandler.Identity{}, false},
	} {
		if got, ok := held.authenticate(c.bearer); got != c.want || ok != c.ok {
			t.Errorf("%q: got %v and %t, want %v and %t", c.bearer, got, ok, c.want, c.ok)
		}
	}
}

// TestTokensOfAllNamespaces checks which owners may see all namespaces of a table.
func TestTokensOfAllNamespaces(t *testing.T) {
	t.Parallel()
	entries, err := parseTokens("f", []byte(tokensFile(
		"{name: one, role: admin, token: "+adminToken+"}",
		"{namespaces: all, name: all, role: admin, token: "+readToken+"}")))
	if err != nil || len(entries) != 2 {
		t.Fatalf("got %d bearer tokens and %v", len(entries), err)
	}
	for i, want := range []httphandler.Identity{
		{Name: "one", Role: httphandler.RoleAdmin},
		{Name: "all", Role: httphandler.RoleAdmin, AllNamespaces: true},
	} {
		if got := entries[i].identity; got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

// secret is a bearer token that no error may contain.
const secret = "very-secret-0123456789"

func oneToken(s string) string { return tokensFile("{name: a, role: call, " + s + "}") }

// badTokens are files with mistakes, and patterns for the lines of the error.
var badTokens = []struct {
	name, text string
	want       []string
}{
	{"nothing", "", []string{`^f:1:1: .*one mapping`}},
	{"only a comment", "# tokens: []\n", []string{`^f:1:1: .*mapping`}},
	{"no YAML", "tokens: [" + secret, []string{`^f:1:\d+: .*not YAML`}},
	{"no YAML, quotes", "tokens:\n  - token: '" + secret, []string{`^f:2:\d+: .*not YAML`}},
	{"two documents", threeTokens() + "---\n" + threeTokens(), []string{`^f:1:1: .*one mapping`}},
	{"text", secret, []string{`^f:1:1: .*must be a mapping`}},
	{"a list outside", "- {name: a}\n", []string{`^f:1:\d+: .*must be a mapping`}},
	{"another field", "version: 1\n" + oneToken("token: "+secret), []string{`^f:1:1: .*version "\(hidden\)": is unknown`}},
	{"a secret for a field", secret + ": 1\n", []string{`^f:1:1: .*: \(hidden\) "\(hidden\)": is unknown`}},
	{"no list", "tokens: " + secret, []string{`^f:1:9: .*tokens.*must be a list`}},
	{"a mapping", "tokens: {a: " + secret + "}", []string{`^f:1:9: .*must be a list`}},
	{"an empty list", "tokens: []", []string{`^f:1:9: .*is empty`}},
	{"no list at all", "tokens:\n", []string{`^f:1:\d+: .*must be a list`}},
	{"text in the list", tokensFile(secret), []string{`^f:2:5: .*tokens\[0\].*must be a mapping`}},
	{
		"nothing in an entry", tokensFile("{}"),
		[]string{`\.name.*is missing`, `\.role.*is missing`, `must have a token, or its sha256`},
	},
	{"no secret", tokensFile("{name: a, role: call}"), []string{`^f:2:\d+: .*must have a token`}},
	{"both", oneToken("token: " + secret + ", sha256: " + digestOf("x")), []string{`^f:2:\d+: .*sha256.*combined with token`}},
	{"short", oneToken("token: short-secret"), []string{`^f:2:34: .*\.token "\(hidden\)": must have from 16`}},
	{"long", oneToken("token: " + strings.Repeat("long-secret", 100)), []string{`^f:2:34: .*at most|1024`}},
	{"with a space", oneToken("token: 'very secret 0123456789'"), []string{`^f:2:34: .*must be letters`}},
	{"not ASCII", oneToken("token: very-sécret-0123456789"), []string{`^f:2:34: .*must be letters`}},
	{"padding inside", oneToken("token: very=secret-0123456789"), []string{`^f:2:34: .*must be letters`}},
	{"a folded text", tokensFile("name: a\n    role: call\n    token: |\n      " + secret), []string{`^f:4:12: .*on one line`}},
	{"a list for a token", oneToken("token: [" + secret + "]"), []string{`^f:2:34: .*on one line`}},
	{"nothing for a token", oneToken("token: "), []string{`^f:2:\d+: .*on one line`}},
	{"an alias", "tokens:\n  - {name: &x a, role: call, token: *x}\n", []string{`^f:2:.*on one line`, `^f:2:.*on one line`}},
	{"a digest that is none", oneToken("sha256: " + secret), []string{`^f:2:35: .*sha256.*64 hex`}},
	{"a short digest", oneToken("sha256: " + digestOf("x")[:62]), []string{`^f:2:35: .*64 hex`}},
	{"the digest of nothing", oneToken("sha256: " + digestOf("")), []string{`^f:2:35: .*sha256.*empty text`}},
	{"two byte order marks", "\uFEFF\uFEFF" + oneToken("token: "+secret), []string{`^f:1:1: .*is unknown`}},
	{"a role", tokensFile("{name: a, role: king, token: " + secret + "}"), []string{`^f:2:21: .*role "king": must be read, call or admin`}},
	{"a role in capitals", tokensFile("{name: a, role: Admin, token: " + secret + "}"), []string{`^f:2:21: .*"Admin"`}},
	{"a secret for a role", tokensFile("{name: a, role: " + secret + ", token: " + secret + "}"), []string{`^f:2:21: .*role "\(hidden\)"`}},
	{
		"one namespace", tokensFile("{name: a, role: admin, namespaces: prod, token: " + secret + "}"),
		[]string{`^f:2:40: .*\.namespaces "prod": must be all`},
	},
	{
		"a secret for namespaces",
		tokensFile("{name: a, role: admin, namespaces: " + secret + ", token: " + secret + "}"),
		[]string{`^f:2:40: .*\.namespaces "\(hidden\)"`},
	},
	{
		"all namespaces without admin",
		tokensFile("{name: a, role: call, namespaces: all, token: " + secret + "}"),
		[]string{`^f:2:39: .*\.namespaces "all": needs the role admin`},
	},
	{"role none", tokensFile("{name: a, role: none, token: " + secret + "}"), []string{`^f:2:21: .*"none"`}},
	{"a name with a space", tokensFile("{name: a b, role: call, token: " + secret + "}"), []string{`^f:2:12: .*name "a b"`}},
	{"an empty name", tokensFile("{name: '', role: call, token: " + secret + "}"), []string{`^f:2:12: .*name ""`}},
	{"a field twice", tokensFile("{name: a, role: call, role: admin, token: " + secret + "}"), []string{`^f:2:27: .*\.role .*: is given twice`}},
	{"a field unknown", oneToken("token: " + secret + ", scope: all"), []string{`^f:2:\d+: .*\.scope .*: is unknown`}},
	{
		"a name twice", tokensFile("{name: a, role: call, token: "+secret+"}", "{name: a, role: read, token: "+readToken+"}"),
		[]string{`^f:3:12: .*name "a": is given twice`},
	},
	{
		"a token twice", tokensFile("{name: a, role: call, token: "+secret+"}", "{name: b, role: read, token: "+secret+"}"),
		[]string{`^f:3:34: .*tokens\[1\].*same bearer token as "a"`},
	},
	{
		"a token and its digest", tokensFile("{name: a, role: call, token: "+secret+"}", "{name: b, role: read, sha256: "+digestOf(secret)+"}"),
		[]string{`^f:3:35: .*same bearer token as "a"`},
	},
	{
		"several, in order", tokensFile("{name: a, role: x, token: y}", "{name: b}"),
		[]string{`^f:2:.*role`, `^f:2:.*token`, `^f:3:.*role`, `^f:3:.*token`},
	},
	{"too deep", "tokens: " + strings.Repeat("[", 20), []string{`nested too deeply`}},
	{"too many", tokensFile(manyTokens(maxTokens + 1)...), []string{`^f:2:\d+: .*"1001": a file has at most 1000`}},
}

// TestBadTokens checks that each mistake is reported with its position, and that no error has a
// secret.
func TestBadTokens(t *testing.T) {
	t.Parallel()
	for _, c := range badTokens {
		entries, err := parseTokens("f", []byte(c.text))
		if err == nil {
			t.Errorf("%s: got %d bearer tokens and no error", c.name, len(entries))
			continue
		}
		lines := strings.Split(err.Error(), "\n")
		if len(lines) != len(c.want) {
			t.Errorf("%s: got %d mistakes, want %d:\n%v", c.name, len(lines), len(c.want), err)
			continue
		}
		for i, line := range lines {
			if !regexp.MustCompile(c.want[i]).MatchString(line) {
				t.Errorf("%s: got %s, want a match of %s", c.name, line, c.want[i])
			}
		}
		if e, ok := errors.AsType[*weir.Error](err); !ok || e.Code != weir.Invalid {
			t.Errorf("%s: got %v, want an invalid field", c.name, err)
		}
		if strings.Contains(err.Error(), "ecret") {
			t.Errorf("%s: the error has the secret: %v", c.name, err)
		}
	}
}

// TestTokensByteOrderMark checks that a byte order mark is accepted.
func TestTokensByteOrderMark(t *testing.T) {
	t.Parallel()
	entries, err := parseTokens("f", []byte("\uFEFF"+threeTokens()))
	if err != nil || len(entries) != 3 {
		t.Errorf("got %d bearer tokens and error %v, want 3", len(entries), err)
	}
}

func manyTokens(n int) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("{name: n%d, role: call, token: token-%020d}", i, i))
	}
	return all
}

// TestLargestTokenFile checks that a file of the largest allowed size is read, and that all its
// bearer tokens are accepted.
func TestLargestTokenFile(t *testing.T) {
	t.Parallel()
	entries, err := parseTokens("f", []byte(tokensFile(manyTokens(maxTokens)...)))
	if err != nil || len(entries) != maxTokens {
		t.Fatalf("got %d and error %v, want %d", len(entries), err, maxTokens)
	}
	held := &tokenSet{}
	held.current.Store(&entries)
	for i := range maxTokens {
		got, ok := held.authenticate(fmt.Sprintf("token-%020d", i))
		if want := fmt.Sprintf("n%d", i); !ok || got.Name != want {
			t.Fatalf("got %v and %t, want %s", got, ok, want)
		}
	}
}

// TestTokenFileModes checks that a file that others can read or change is refused, and so is
// anything but a regular file.
func TestTokenFileModes(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("files have no modes there")
	}
	file := write(t, t.TempDir(), "tokens.yaml", threeTokens())
	for mode, fine := range map[os.FileMode]bool{
		0o600: true, 0o400: true, 0o700: true,
		0o640: false, 0o604: false, 0o660: false, 0o644: false, 0o610: false, 0o602: false, 0o777: false,
	} {
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		_, err := readTokens(t, file)
		if fine != (err == nil) {
			t.Errorf("%04o: got %v, want accepted %t", mode, err, fine)
		}
		if err != nil && !strings.Contains(err.Error(), fmt.Sprintf("%s: its mode %04o", file, mode)) {
			t.Errorf("%04o: got %v, want the file and the mode", mode, err)
		}
	}
	for name, want := range map[string]string{
		filepath.Dir(file): "not a regular file", filepath.Join(filepath.Dir(file), "none"): "no such file",
		os.DevNull: "not a regular file",
		write(t, t.TempDir(), "large.yaml", strings.Repeat("#", maxTokenFile+1)): "more than 262144 bytes",
	} {
		if _, err := readTokens(t, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
	}
	link := filepath.Join(t.TempDir(), "link.yaml")
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	if _, err := readTokens(t, link); err != nil {
		t.Errorf("a link to a private file: got %v", err)
	}
}

// TestTokenFileOfRoot checks that a group may read, and not change, a file that root has lent to a
// server without privileges, as a secret is mounted.
func TestTokenFileOfRoot(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("files have no modes there")
	}
	for mode, fine := range map[os.FileMode]bool{
		0o440: true, 0o640: true, 0o600: true, 0o400: true,
		0o660: false, 0o450: false, 0o444: false, 0o442: false, 0o441: false,
	} {
		held := &tokenSet{}
		file := &fileContent{name: "tokens.yaml", data: []byte(threeTokens()), mode: mode, lent: true}
		if _, err := held.load(file); fine != (err == nil) || held.count() > 0 != fine {
			t.Errorf("%04o: got %v and %d, want accepted %t", mode, err, held.count(), fine)
		}
	}
}

// FuzzTokens checks that a file gives bearer tokens or mistakes at positions within it, and that no
// mistake contains text that is long enough to be a bearer token.
func FuzzTokens(f *testing.F) {
	f.Add(threeTokens())
	f.Add("tokens: [{name: a, role: king, token: very-secret-0123456789, x-very-secret-0123456789: 1}]")
	f.Add("tokens:\n- &a {name: *a}\n- !!x |\n very-secret-0123456789\n")
	secretLike := regexp.MustCompile(`[A-Za-z0-9._~+/-]{16,}`)
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<12 {
			return
		}
		entries, err := parseTokens("f", []byte(text))
		if err == nil {
			if len(entries) == 0 || len(entries) > maxTokens {
				t.Errorf("got %d bearer tokens and no error", len(entries))
			}
			return
		}
		for _, secret := range secretLike.FindAllString(text, -1) {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%q is in the error: %v", secret, err)
			}
		}
		lines := strings.Count(text, "\n") + 2
		for _, m := range flattenMistakes(t, err) {
			if m.line < 1 || m.line > lines || m.column < 1 {
				t.Errorf("a mistake at %d:%d of %d lines", m.line, m.column, lines)
			}
		}
	})
}

func flattenMistakes(t *testing.T, err error) []*tokenMistake {
	t.Helper()
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		t.Fatalf("%T is not joined", err)
	}
	var all []*tokenMistake
	for _, e := range joined.Unwrap() {
		m, ok := e.(*tokenMistake)
		if !ok {
			t.Fatalf("%T is not a mistake in a file", e)
		}
		all = append(all, m)
	}
	return all
}

// TestLeasesOfOneToken checks that a single token may have nearly all live leases, and that each of
// several tokens may have a tenth, even before the others have called.
func TestLeasesOfOneToken(t *testing.T) {
	t.Parallel()
	mine := "{name: checkout, role: call, token: '" + callToken + "'}"
	reader := "{name: grafana, role: read, token: '" + readToken + "'}"
	for _, c := range []struct {
		name   string
		tokens []string
		want   int
	}{
		{"one", []string{mine}, 27},
		{"one, and one that only reads", []string{mine, reader}, 27},
		{"several", []string{mine, "{name: ops, role: admin, token: '" + adminToken + "'}"}, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := start(t, &Options{
				TokensFile: write(t, t.TempDir(), "tokens.yaml", tokensFile(c.tokens...)),
				Limiter:    &limiter.Options{MaxLeases: 30},
			})
			got := 0
			for got <= 30 && w.ask(t, "/v1/reserve", askRPM, callToken).status == http.StatusOK {
				got++
			}
			if got != c.want {
				t.Errorf("got %d live leases, want %d", got, c.want)
			}
		})
	}
}
