// Package program runs the real program in tests of what is deployed, with the arguments that a
// deployment has, on loopback ports and in folders of the test.
package program

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-limiter/weir/internal/cli"
	"github.com/weir-limiter/weir/internal/console"
)

// patience bounds each wait for the program.
const patience = 60 * time.Second

// Server is weir serve, in this process.
type Server struct {
	// URL is the address on which it listens.
	URL string
	// Caller calls it.
	Caller

	log chan string
	end func()
}

// Caller calls a server.
type Caller struct {
	// Bearer is the bearer token. Default: none
	Bearer string
	// Host is the name by which it calls the server. Default: that of a URL
	Host string
	// Transport sends the requests. Default: http.DefaultTransport
	Transport http.RoundTripper
}

// Start runs the program with arguments, which must have --log-format=json and an address with
// port 0. It ends with the test, and must then have the exit code 0.
func Start(t *testing.T, args []string, env func(string) string) *Server {
	t.Helper()
	s := &Server{log: make(chan string, 1000)}
	ctx, stop := context.WithCancel(t.Context())
	out, outWriter := io.Pipe()
	logs, logWriter := io.Pipe()
	exit := make(chan int, 1)
	go func() {
		streams := console.Streams{In: strings.NewReader(""), Out: outWriter, Err: logWriter}
		exit <- cli.Run(ctx, args, streams, env)
		_ = outWriter.Close()
		_ = logWriter.Close()
	}()
	go func() {
		defer close(s.log)
		for lines := bufio.NewScanner(logs); lines.Scan(); {
			select {
			case s.log <- lines.Text():
			case <-ctx.Done():
			}
		}
	}()
	s.end = sync.OnceFunc(func() {
		stop()
		if code := <-exit; code != 0 {
			t.Errorf("exit code %d", code)
		}
	})
	t.Cleanup(s.end)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		for said := range s.log {
			t.Log(said)
		}
		t.Fatalf("%q does not start: %v", args, err)
	}
	s.URL = strings.TrimSpace(strings.TrimPrefix(line, "weir: listening on "))
	return s
}

// End ends the program, and waits for it.
func (s *Server) End() { s.end() }

// Run runs one command, which must succeed.
func Run(t *testing.T, args []string, env func(string) string) {
	t.Helper()
	if code, said := Try(t, args, env); code != 0 {
		t.Fatalf("%q: exit code %d: %s", args, code, said)
	}
}

// Try runs one command, and returns its exit code and all that it prints.
func Try(t *testing.T, args []string, env func(string) string) (code int, said string) {
	t.Helper()
	var b strings.Builder
	streams := console.Streams{In: strings.NewReader(""), Out: &b, Err: &b}
	code = cli.Run(t.Context(), args, streams, env)
	return code, b.String()
}

// NoEnv is an environment without variables.
func NoEnv(string) string { return "" }

// WaitFor reads the log up to a line, and returns its fields.
func (s *Server) WaitFor(t *testing.T, message string) map[string]any {
	t.Helper()
	late := time.After(patience)
	var before []string
	for {
		select {
		case line, ok := <-s.log:
			var fields map[string]any
			if err := json.Unmarshal([]byte(line), &fields); ok && err == nil && fields["msg"] == message {
				return fields
			}
			before = append(before, line)
			if ok {
				continue
			}
		case <-late:
		}
		t.Fatalf("no line %q in the log:\n%s", message, strings.Join(before, "\n"))
	}
}

// Expect sends a request, and reports an answer that has another status. It returns the answer.
func (c *Caller) Expect(t *testing.T, status int, method, url, body string) (answer string) {
	t.Helper()
	got, answer := c.Ask(t, method, url, body)
	if got != status {
		t.Errorf("%s %s: got %d, want %d: %s", method, url, got, status, answer)
	}
	return answer
}

// Ask sends a request, and returns the status and the answer.
func (c *Caller) Ask(t *testing.T, method, url, body string) (status int, answer string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Host = c.Host
	r.Header.Set("Content-Type", "application/json")
	if c.Bearer != "" {
		r.Header.Set("Authorization", "Bearer "+c.Bearer)
	}
	got, err := (&http.Client{Timeout: patience, Transport: c.Transport}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close() //nolint:errcheck // It was only read.
	text, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	return got.StatusCode, string(text)
}
