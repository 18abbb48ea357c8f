package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/weir-limiter/weir/internal/testkit"
)

// The program prints its endpoint, answers there, and ends with its context.
func TestRun(t *testing.T) {
	t.Parallel()
	testkit.DynamoDB(t) // or skip
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, []string{"-port", "0"}, w)
		ended <- err
		_ = w.CloseWithError(io.ErrUnexpectedEOF) // ends the wait for a line
	}()
	line := make([]byte, 256)
	n, err := r.Read(line)
	if err != nil {
		t.Fatalf("%v: %v", err, <-ended)
	}
	says := regexp.MustCompile(`^DynamoDB Local at (http://127\.0\.0\.1:\d+) \(.*\)\n$`)
	m := says.FindSubmatch(line[:n])
	if m == nil {
		t.Fatalf("got %q, want the endpoint", line[:n])
	}
	ask := func() error {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, string(m[1]), http.NoBody)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	}
	if err := ask(); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("got %v, want a clean end", err)
	}
	if err := ask(); err == nil {
		t.Error("the server is still there")
	}
}

func TestRunArguments(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := run(t.Context(), []string{"start"}, &out)
	if err == nil || !strings.Contains(err.Error(), `"start"`) || out.Len() > 0 {
		t.Errorf("got %v and %q, want an error that names the argument", err, out.String())
	}
}

// TestRunOnATakenPort checks that the error says so if another server has the port, even if that
// server is a DynamoDB Local, and that no endpoint is printed.
func TestRunOnATakenPort(t *testing.T) {
	t.Parallel()
	other := testkit.DynamoDB(t)
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	for what, address := range map[string]string{
		"DynamoDB Local": strings.TrimPrefix(other.Endpoint(), "http://"), "another server": l.Addr().String(),
	} {
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		err = run(t.Context(), []string{"-port", port}, &out)
		if err == nil || !strings.Contains(err.Error(), "port "+port+" is taken") ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want one line that says that port %s is taken", what, err, port)
		}
		if out.Len() > 0 {
			t.Errorf("%s: got %q, though it does not run", what, &out)
		}
	}
}
