package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/textproto"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/weir-limiter/weir"
)

// listening is the line that a server prints when it accepts requests.
var listening = regexp.MustCompile(`listening on (https?://[^\s"]+)`)

// wireStart bounds the start of a server, which may share two slow cores with other tests.
const wireStart = 60 * time.Second

// scriptServe is a command of the scripts: "serve [ARG...]" starts `weir serve` on a free port and
// sets URL and WEIR_SERVER. The server is stopped when the script ends.
func scriptServe(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: serve [ARG...]")
	}
	cmd := exec.CommandContext(context.Background(), "weir", append([]string{"serve", "--listen",
		"127.0.0.1:0"}, args...)...)
	cmd.Dir = ts.MkAbs(".")
	said := &serverOutput{heard: make(chan string, 1), ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = said, said
	ts.Check(cmd.Start())
	ts.Defer(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
		<-said.ended
		ts.Logf("weir serve %s: %v\n%s", strings.Join(args, " "), cmd.ProcessState, said)
	})
	go func() {
		_ = cmd.Wait() // the log of the script has the exit status
		close(said.ended)
	}()
	select {
	case url := <-said.heard:
		ts.Setenv("URL", url)
		ts.Setenv("WEIR_SERVER", url)
	case <-said.ended:
		ts.Fatalf("weir serve ended before it listened: %v", cmd.ProcessState)
	case <-time.After(wireStart):
		ts.Fatalf("weir serve does not listen after %v", wireStart)
	}
}

// serverOutput is the output of a server, with the address that it names.
type serverOutput struct {
	heard chan string
	ended chan struct{}

	mu   sync.Mutex
	text bytes.Buffer
	told bool
}

func (s *serverOutput) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.text.Write(p)
	if m := listening.FindSubmatch(s.text.Bytes()); m != nil && !s.told {
		s.told = true
		s.heard <- string(m[1])
	}
	return n, err
}

func (s *serverOutput) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// scriptLeaseID is a command of the scripts: "leaseid VAR..." sets each to a lease ID made now.
func scriptLeaseID(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: leaseid VAR...")
	}
	for _, name := range args {
		ts.Setenv(name, weir.NewLeaseID(time.Now()).String())
	}
}

// scriptJSON is a command of the scripts: "json FILE PATH VALUE" expects that value at the path, "!
// json FILE PATH" expects nothing there. A VALUE that begins with ~ is a regular expression for all
// of it. See [lookUpJSON] for paths.
func scriptJSON(ts *testscript.TestScript, neg bool, args []string) {
	if neg && len(args) != 2 || !neg && len(args) != 3 {
		ts.Fatalf("usage: json FILE PATH VALUE, or ! json FILE PATH")
	}
	text := ts.ReadFile(args[0])
	got, err := lookUpJSON(text, args[1])
	switch {
	case neg && err == nil:
		ts.Fatalf("%s: got %s, want nothing there, in %s", args[1], got, text)
	case neg:
		return
	case err != nil:
		ts.Fatalf("%v, in %s", err, text)
	}
	if pattern, ok := strings.CutPrefix(args[2], "~"); ok {
		whole, err := regexp.Compile("^(?:" + pattern + ")$")
		ts.Check(err)
		if !whole.MatchString(got) {
			ts.Fatalf("%s: got %s, want a match of %s, in %s", args[1], got, pattern, text)
		}
	} else if got != args[2] {
		ts.Fatalf("%s: got %s, want %s, in %s", args[1], got, args[2], text)
	}
}

// scriptSetJSON is a command of the scripts: "setjson VAR FILE PATH" sets VAR to the value at the
// path.
func scriptSetJSON(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: setjson VAR FILE PATH")
	}
	got, err := lookUpJSON(ts.ReadFile(args[1]), args[2])
	ts.Check(err)
	ts.Setenv(args[0], got)
}

// lookUpJSON finds a value in a JSON text. A path is made of steps with dots between them: a
// member's name, an index, or "*" for the number of elements. In a list of limits, a step may also
// be the "limit" of an element, or its "entity:limit" if several have that limit. Strings have no
// quotes.
func lookUpJSON(text, path string) (string, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return "", fmt.Errorf("no JSON: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return "", errors.New("more follows the JSON value")
	}
	for step := range strings.SplitSeq(path, ".") {
		next, err := takeJSON(v, step)
		if err != nil {
			return "", fmt.Errorf("%s: at %q: %w", path, step, err)
		}
		v = next
	}
	if s, ok := v.(string); ok {
		return s, nil
	}
	out, err := json.Marshal(v)
	return string(out), err
}

// takeJSON takes one step of a path into a JSON value.
func takeJSON(v any, step string) (any, error) {
	switch v := v.(type) {
	case map[string]any:
		if step == "*" {
			return len(v), nil
		}
		member, ok := v[step]
		if !ok {
			return nil, fmt.Errorf("no such member")
		}
		return member, nil
	case []any:
		if step == "*" {
			return len(v), nil
		}
		if i, err := strconv.Atoi(step); err == nil {
			if i < 0 || i >= len(v) {
				return nil, fmt.Errorf("has %d elements", len(v))
			}
			return v[i], nil
		}
		return takeLimit(v, step)
	}
	return nil, fmt.Errorf("%v has no parts", v)
}

func takeLimit(list []any, step string) (any, error) {
	entity, name, both := strings.Cut(step, ":")
	if !both {
		name = step
	}
	var found []any
	for _, e := range list {
		if m, ok := e.(map[string]any); ok && m["limit"] == name && (!both || m["entity"] == entity) {
			found = append(found, m)
		}
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("%d elements have that limit", len(found))
	}
	return found[0], nil
}

// scriptHeader is a command of the scripts: "header NAME PATTERN" expects exactly one field of that
// name in the last answer's head, all of which matches; "! header NAME" wants none.
func scriptHeader(ts *testscript.TestScript, neg bool, args []string) {
	if neg && len(args) != 1 || !neg && len(args) != 2 {
		ts.Fatalf("usage: header NAME PATTERN, or ! header NAME")
	}
	_, fields, _ := strings.Cut(ts.ReadFile("head"), "\r\n") // the first line is the status
	head, err := textproto.NewReader(bufio.NewReader(strings.NewReader(fields))).ReadMIMEHeader()
	ts.Check(err)
	got := head.Values(args[0])
	if neg {
		if len(got) > 0 {
			ts.Fatalf("%s: got %q, want none", args[0], got)
		}
		return
	}
	whole, err := regexp.Compile("^(?:" + args[1] + ")$")
	ts.Check(err)
	if len(got) != 1 || !whole.MatchString(got[0]) {
		ts.Fatalf("%s: got %q, want one that matches %s", args[0], got, args[1])
	}
}
