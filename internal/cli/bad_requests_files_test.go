package cli

import (
	"bytes"
	"cmp"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir/internal/console"
)

// badServer is a server that must not start. In args and want, FILE is a file with the text and the
// mode, by default 0600, and DIR is its folder; GOOD is a limits file.
type badServer struct {
	what, args string
	text       string
	mode       os.FileMode
	want       string // a pattern, of the message
}

func badServers() []badServer {
	const secret = "token: " + wireNoToken
	tokens := func(what, text, want string) badServer {
		return badServer{what: what, args: "--tokens FILE", text: "tokens:\n" + text, want: want}
	}
	return []badServer{
		{"bearer tokens that the group can read", "--tokens FILE", badWireTokens, 0o640, `FILE.*0?640`},
		{"bearer tokens that all can read", "--tokens FILE", badWireTokens, 0o604, `FILE.*0?604`},
		{"bearer tokens that all can write", "--tokens FILE", badWireTokens, 0o602, `FILE.*0?602`},
		{"bearer tokens in a folder", "--tokens DIR", "", 0, `DIR.*regular file`},
		{"bearer tokens that are not there", "--tokens DIR/none", "", 0, `DIR/none`},
		{"no bearer tokens in the file", "--tokens FILE", "", 0, `FILE`},
		tokens("an unknown role", "  - {name: a, role: king, "+secret+"}\n", `FILE:2:\d+:.*king`),
		tokens("a short bearer token", "  - {name: a, role: call, token: short-secret}\n", `FILE:2:\d+:`),
		tokens("a bearer token twice",
			"  - {name: a, role: call, "+secret+"}\n  - {name: b, role: read, "+secret+"}\n", `FILE:3:\d+:`),
		tokens("a name twice", "  - {name: a, role: call, "+secret+"}\n"+
			"  - {name: a, role: read, token: "+wireReader+"}\n", `FILE:3:\d+:`),
		tokens("an unknown field", "  - {name: a, role: call, "+secret+", scope: x}\n",
			`FILE:2:\d+:.*scope`),
		tokens("a repeated field", "  - {name: a, role: call, role: admin, "+secret+"}\n",
			`FILE:2:\d+:.*role`),
		tokens("a bearer token and a digest", "  - {name: a, role: call, "+secret+", sha256: '"+
			strings.Repeat("0", 64)+"'}\n", `FILE:2:\d+:`),
		tokens("a digest that is none", "  - {name: a, role: call, sha256: "+wireNoToken+"}\n",
			`FILE:2:\d+:`),
		{"limits with an unknown field", "--limits FILE", "version: 1\nlimit: {}\n", 0,
			`FILE:2:1:.*limit`},
		{"limits that are not there", "--limits DIR/none", "", 0, `DIR/none`},
		{"limits from standard input", "--limits -", "", 0, `limits`},
		{"all addresses without bearer tokens", "--limits GOOD --listen 0.0.0.0:0", "", 0, `tokens`},
		{"all addresses of IPv6, the same", "--limits GOOD --listen [::]:0", "", 0, `tokens`},
		{"an address without a host, the same", "--limits GOOD --listen :0", "", 0, `tokens`},
		{"an address without a port", "--limits GOOD --listen 127.0.0.1", "", 0, `127\.0\.0\.1`},
		{"a certificate without a key", "--limits GOOD --tls-cert FILE", "", 0, `tls-(key|cert)`},
		{"a certificate that is none", "--limits GOOD --tls-cert FILE --tls-key FILE", "x", 0, `FILE`},
		{"a store that does not exist", "--limits GOOD --store tape:", "", 0, `tape`},
		{"a negative timeout", "--limits GOOD --read-timeout -1s", "", 0, `read-timeout`},
	}
}

// TestBadWireFiles checks that a server does not start if it would be open to others or if its
// files have mistakes, and that no message quotes a secret.
func TestBadWireFiles(t *testing.T) {
	t.Parallel()
	for _, row := range badServers() {
		if row.mode != 0 && runtime.GOOS == "windows" {
			continue // there are no such modes
		}
		file := wireFile(t, "file.yaml", row.text)
		if err := os.Chmod(file, cmp.Or(row.mode, 0o600)); err != nil {
			t.Fatal(err)
		}
		named := func(text string, quote func(string) string) string {
			good := wireFile(t, "good.yaml", "version: 1\nsystem: {limits: {rpm: {capacity: 1}}}\n")
			return strings.NewReplacer("FILE", quote(file), "DIR", quote(filepath.Dir(file)),
				"GOOD", quote(good)).Replace(text)
		}
		args := strings.Fields("serve " + named(row.args, func(s string) string { return s }))
		if !strings.Contains(row.args, "--listen") {
			args = append(args, "--listen", "127.0.0.1:0")
		}
		exit, said := runRefused(t, args)
		if exit != 1 && exit != 2 {
			t.Errorf("%s: got exit code %d, want 1, or 2 for a misuse", row.what, exit)
		}
		if want := named(row.want, regexp.QuoteMeta); !regexp.MustCompile(want).MatchString(said) {
			t.Errorf("%s: got %q, want a match of %s", row.what, said, want)
		}
		for _, secret := range []string{wireNoToken, wireReader, wireCaller, "short-secret"} {
			if strings.Contains(said, secret) {
				t.Errorf("%s: the message quotes the secret: %s", row.what, said)
			}
		}
		said = strings.ReplaceAll(said, filepath.Dir(file)+"/", "")
		t.Logf("%-40s → exit %d: %s", row.what, exit, strings.TrimSpace(said))
	}
}

// runRefused runs a server that must not start.
func runRefused(t *testing.T, args []string) (exit int, said string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wireTimeout)
	defer cancel()
	var out bytes.Buffer
	exit = Run(ctx, args, console.Streams{In: strings.NewReader(""), Out: &out, Err: &out},
		func(string) string { return "" })
	if listening.MatchString(out.String()) || ctx.Err() != nil {
		t.Errorf("weir %q: it listened: %s", args, out.String())
	}
	return exit, out.String()
}

// TestBadWireReload checks that an invalid file is refused while the server runs and that what was
// in force stays; a valid one is put in force.
func TestBadWireReload(t *testing.T) {
	t.Parallel()
	w := newBadWireWorld(t, "--watch", "100ms")
	before := w.state(t)
	for _, row := range []struct{ what, file, text, want string }{
		{"limits cut short", "limits", badWireLimits[:len(badWireLimits)/3], `limits\.yaml:\d+:\d+:`},
		{"limits with a mistake", "limits", "version: 1\nsystem: {limits: {rpm: {capacity: 0}}}\n",
			`limits\.yaml:2:\d+:.*capacity`},
		{"limits with a cycle", "limits", "version: 1\nentities:\n  a: {parent: b}\n  b: {parent: a}\n",
			`limits\.yaml:\d+:\d+:.*cycle`},
		{"no limits in the file", "limits", "", `limits\.yaml`},
		{"bearer tokens with a mistake", "tokens", "tokens:\n  - {name: a, role: king, token: " +
			wireNoToken + "}\n",
			`tokens\.yaml:2:\d+:.*king`},
		{"no bearer tokens in the file", "tokens", "", `tokens\.yaml`},
	} {
		heard := len(w.said.String())
		w.replace(t, row.file, row.text, 0o600)
		line := w.nextLine(t, heard, row.want)
		w.serves(t)
		if after := w.state(t); after != before {
			t.Errorf("%s: state: got\n%s\nwant\n%s", row.what, after, before)
		}
		t.Logf("%-32s → %s", row.what, line)
	}
	if runtime.GOOS != "windows" {
		heard := len(w.said.String())
		w.replace(t, "tokens", strings.Replace(badWireTokens, wireReader, wireNoToken, 1), 0o644)
		t.Logf("%-32s → %s", "bearer tokens that all can read", w.nextLine(t, heard, `tokens\.yaml.*0?644`))
		w.serves(t)
	}
	checkSecrets(t, w)
	w.replace(t, "limits", strings.ReplaceAll(strings.Replace(badWireLimits, "rpm: {capacity: 10",
		"rpm: {capacity: 20", 1),
		"@zone@", quietZone(time.Now())), 0o600)
	w.replace(t, "tokens", strings.Replace(badWireTokens, wireReader, "another-reader-1", 1), 0o600)
	w.waitFor(t, "the good limits", func() bool {
		got, err := lookUpJSON(w.must(t, wireGet("/v1/status?entity=acme&resource=llm")),
			"limits.rpm.capacity")
		return err == nil && got == "20"
	})
	w.waitFor(t, "the good bearer tokens", func() bool {
		got, err := w.send(wireGet("/v1/status?entity=acme").with("Authorization: Bearer " + wireReader))
		return err == nil && got.status == 401
	})
}

// replace replaces a file that the server reads, in one step.
func (w *badWireWorld) replace(t *testing.T, file, text string, mode os.FileMode) {
	t.Helper()
	name := w.files[file]
	next := name + ".next"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(next, mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, name); err != nil {
		t.Fatal(err)
	}
}

// nextLine waits until the server has printed, from an offset of its output on, a line that matches
// the pattern.
func (w *badWireWorld) nextLine(t *testing.T, after int, pattern string) string {
	t.Helper()
	line := regexp.MustCompile(`(?m)^.*` + pattern + `.*$`)
	found := ""
	w.waitFor(t, pattern, func() bool {
		found = line.FindString(w.said.String()[after:])
		return found != ""
	})
	return found
}

// waitFor checks a condition ten times a second, for a minute.
func (w *badWireWorld) waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wireTimeout)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not seen after %v; the server said:\n%s", what, wireTimeout, w.said)
		case <-tick.C:
		}
	}
}
