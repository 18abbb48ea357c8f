package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir/internal/console"
)

// wireServer is `weir serve`, run in this process on a free loopback port.
type wireServer struct {
	url, addr string
	said      *serverOutput
	// stop ends the server as a signal would, and returns its exit code.
	stop func() int
}

// startWireServer starts a server; it ends with the test at the latest.
func startWireServer(t *testing.T, args ...string) *wireServer {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	s := &wireServer{said: &serverOutput{heard: make(chan string, 1), ended: make(chan struct{})}}
	exit := -1
	go func() {
		defer close(s.said.ended)
		exit = Run(ctx, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...),
			console.Streams{In: strings.NewReader(""), Out: s.said, Err: s.said}, func(string) string { return "" })
	}()
	s.stop = func() int {
		cancel()
		<-s.said.ended
		return exit
	}
	t.Cleanup(func() {
		s.stop()
		if t.Failed() {
			t.Logf("weir serve said:\n%s", s.said)
		}
	})
	select {
	case s.url = <-s.said.heard:
	case <-s.said.ended:
		t.Fatalf("weir serve %q ended with %d before it listened", args, exit)
	case <-time.After(wireStart):
		t.Fatalf("weir serve does not listen after %v", wireStart)
	}
	s.addr = strings.TrimPrefix(s.url, "http://")
	return s
}

// wireFile writes a file that only its owner may read, and returns its name.
func wireFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// wireSent is a request whose bytes the test chooses.
type wireSent struct {
	method, target string
	// head has header lines that are added to the usual ones, or replace them.
	head []string
	body string
	// raw is sent instead of all of the above.
	raw string
	// half closes the sender's half of the connection after all has been sent.
	half bool
	// slow sends only raw, which may be empty, and then waits for the server to end the connection.
	slow bool
}

func wirePost(target, body string) wireSent {
	return wireSent{method: http.MethodPost, target: target, body: body}
}

func wireGet(target string) wireSent { return wireSent{method: http.MethodGet, target: target} }

func (w wireSent) as(method string) wireSent {
	w.method = method
	return w
}

// with adds header lines to the request; one that ends with a colon removes the usual line.
func (w wireSent) with(lines ...string) wireSent {
	w.head = append(w.head[:len(w.head):len(w.head)], lines...)
	return w
}

// bytes returns the bytes to send.
func (w wireSent) bytes(host string) []byte {
	if w.raw != "" || w.slow {
		return []byte(strings.ReplaceAll(w.raw, "HOST", host))
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\n", w.method, w.target)
	usual := []string{"Host: " + host, "Connection: close", "Authorization: Bearer " + wireCaller}
	if w.body != "" || w.method == http.MethodPost || w.method == http.MethodPut {
		usual = append(usual, "Content-Type: application/json", fmt.Sprint("Content-Length: ",
			len(w.body)))
	}
	given := map[string]bool{}
	for _, line := range w.head {
		name, value, _ := strings.Cut(line, ":")
		given[strings.ToLower(name)] = true
		if value != "" {
			fmt.Fprintf(&b, "%s\r\n", line)
		}
	}
	for _, line := range usual {
		if name, _, _ := strings.Cut(line, ":"); !given[strings.ToLower(name)] {
			fmt.Fprintf(&b, "%s\r\n", line)
		}
	}
	fmt.Fprintf(&b, "\r\n%s", w.body)
	return b.Bytes()
}

// wireAnswer is an answer; status 0 means that the server closed the connection without one.
type wireAnswer struct {
	status int
	head   http.Header
	body   []byte
	// more are the statuses of further answers on the same connection.
	more []int
}

// wireTimeout bounds one exchange. It is far above every timeout of a server under test.
const wireTimeout = 60 * time.Second

// send sends a request on a new connection and reads until the server closes it.
func (s *wireServer) send(w wireSent) (*wireAnswer, error) {
	var d net.Dialer
	ctx, cancel := context.WithTimeout(context.Background(), wireTimeout)
	defer cancel()
	conn, err := d.DialContext(ctx, "tcp", s.addr)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(wireTimeout)); err != nil {
		return nil, err
	}
	go func() {
		_, _ = conn.Write(w.bytes(s.addr)) // the server may close the connection early
		if w.half {
			_ = conn.(*net.TCPConn).CloseWrite() // the same
		}
	}()
	data, err := io.ReadAll(conn)
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		return nil, fmt.Errorf("the connection is still open after %q: %w", data, err)
	}
	return readAnswers(data, w.method)
}

func readAnswers(data []byte, method string) (*wireAnswer, error) {
	answer := &wireAnswer{}
	r := bufio.NewReader(bytes.NewReader(data))
	for {
		if rest, _ := r.Peek(1); len(rest) == 0 {
			return answer, nil
		}
		got, err := http.ReadResponse(r, &http.Request{Method: method})
		if err != nil {
			return nil, fmt.Errorf("%q: %w", data, err)
		}
		body, err := io.ReadAll(got.Body)
		_ = got.Body.Close() // it is in memory
		if err != nil {
			return nil, fmt.Errorf("%q: %w", data, err)
		}
		switch {
		case got.StatusCode == http.StatusContinue:
		case answer.status == 0:
			answer.status, answer.head, answer.body = got.StatusCode, got.Header, body
		default:
			answer.more = append(answer.more, got.StatusCode)
		}
	}
}
