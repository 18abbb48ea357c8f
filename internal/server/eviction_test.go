package server

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patientBounds have timeouts that do not pass during a test.
func patientBounds(connections int) Bounds {
	return Bounds{
		MaxConnections: connections, HeaderTimeout: time.Hour, ReadTimeout: time.Hour,
		WriteTimeout: time.Hour, IdleTimeout: time.Hour,
	}
}

// opening is a way to hold a connection without a request in progress.
type opening struct {
	name string
	open func(t *testing.T, w *world) net.Conn
}

// send opens a connection and sends text on it.
func (w *world) send(t *testing.T, text string) net.Conn {
	t.Helper()
	conn := w.dial(t)
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	return conn
}

// request is a request for a status, with a bearer token unless that is empty.
func request(bearer string) string {
	header := ""
	if bearer != "" {
		header = "Authorization: Bearer " + bearer + "\r\n"
	}
	return "GET /v1/status?entity=acme&resource=llm HTTP/1.1\r\nHost: localhost\r\n" + header + "\r\n"
}

// exchange sends a request on an open connection and returns the status of the answer.
func exchange(t *testing.T, conn net.Conn, text string) int {
	t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	got, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	defer closeQuietly(got.Body)
	if _, err := io.Copy(io.Discard, got.Body); err != nil {
		t.Fatal(err)
	}
	return got.StatusCode
}

// TestIdleConnectionsAreEvicted checks that a new client is served at once if no open connection
// has a request in progress, for each way to hold a connection open. One of them is closed.
func TestIdleConnectionsAreEvicted(t *testing.T) {
	t.Parallel()
	for _, o := range []opening{
		{"silent", func(t *testing.T, w *world) net.Conn { return w.dial(t) }},
		{"half a request line", func(t *testing.T, w *world) net.Conn { return w.send(t, "GET /heal") }},
		{"headers that never end", func(t *testing.T, w *world) net.Conn {
			return w.send(t, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n")
		}},
		{"idle after an answer", func(t *testing.T, w *world) net.Conn {
			conn := w.dial(t)
			greet(t, conn)
			return conn
		}},
		{"half a second request", func(t *testing.T, w *world) net.Conn {
			conn := w.dial(t)
			greet(t, conn)
			_, _ = io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost:")
			return conn
		}},
		{"a slow body without a bearer token", func(t *testing.T, w *world) net.Conn {
			return w.send(t, "POST /v1/reserve HTTP/1.1\r\nHost: localhost\r\n"+
				"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
		}},
		{"a slow body that the route does not read", func(t *testing.T, w *world) net.Conn {
			return w.send(t, "POST /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
		}},
		{"idle with a bearer token", func(t *testing.T, w *world) net.Conn {
			conn := w.dial(t)
			if status := exchange(t, conn, request(readToken)); status != http.StatusOK {
				t.Fatalf("got %d", status)
			}
			return conn
		}},
	} {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			const most = 4
			w := start(t, &Options{
				Bounds: patientBounds(most), TokensFile: write(t, t.TempDir(), "tokens.yaml", threeTokens()),
			})
			for n := range most {
				o.open(t, w)
				eventually(t, "it is accepted", func() bool { return w.server.Connections() == n+1 })
			}
			if status := exchange(t, w.dial(t), request(readToken)); status != http.StatusOK {
				t.Errorf("the new client: got %d", status)
			}
			if got := w.server.Connections(); got != most {
				t.Errorf("got %d connections, want %d", got, most)
			}
			if got := w.server.listener.evicted.Load(); got != 1 {
				t.Errorf("got %d connections closed, want 1", got)
			}
		})
	}
}

// TestUnauthenticatedAreEvictedFirst checks that connections on which no caller was authenticated
// are closed before those of known callers, although these have been idle longer, and in the order
// in which they became idle.
func TestUnauthenticatedAreEvictedFirst(t *testing.T) {
	t.Parallel()
	const most = 4
	w := start(t, &Options{
		Bounds: patientBounds(most), TokensFile: write(t, t.TempDir(), "tokens.yaml", threeTokens()),
	})
	known := w.dial(t)
	if status := exchange(t, known, request(callToken)); status != http.StatusOK {
		t.Fatalf("got %d", status)
	}
	refused, answered, silent := w.dial(t), w.dial(t), w.dial(t)
	eventually(t, "all are accepted", func() bool { return w.server.Connections() == most })
	if status := exchange(t, refused, request("unknown-token-0123456789")); status != http.StatusUnauthorized {
		t.Fatalf("got %d", status)
	}
	eventually(t, "it is idle", func() bool { return w.server.listener.active.Load() == 0 })
	greet(t, answered)
	eventually(t, "it is idle", func() bool { return w.server.listener.active.Load() == 0 })
	for _, next := range []struct {
		what string
		conn net.Conn
	}{{"silent", silent}, {"refused", refused}, {"answered", answered}} {
		fresh := w.dial(t)
		if status := exchange(t, fresh, request(readToken)); status != http.StatusOK {
			t.Fatalf("got %d", status)
		}
		if got, err := io.ReadAll(next.conn); err != nil && !errors.Is(err, syscall.ECONNRESET) {
			t.Fatalf("%s: got %q and error %v, want that it is closed", next.what, got, err)
		}
	}
	if status := exchange(t, known, request(callToken)); status != http.StatusOK {
		t.Errorf("the known caller: got %d", status)
	}
	if got := w.figures(t, readToken)["weir_connections_evicted_total"]; got < 3 {
		t.Errorf("the metrics count %v connections, want at least 3", got)
	}
}

// TestRequestsInProgressAreNotEvicted checks that a connection with a request in progress is not
// closed, so that a new one waits for an answer.
func TestRequestsInProgressAreNotEvicted(t *testing.T) {
	t.Parallel()
	store := newSlowStore(t)
	w := startOver(t, store, &Options{Bounds: patientBounds(2)})
	reserve := fmt.Sprintf("POST /v1/reserve HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"+
		"Content-Length: %d\r\n\r\n%s", len(askRPM), askRPM)
	var busy []net.Conn
	for range 2 {
		busy = append(busy, w.send(t, reserve))
		<-store.entered
	}
	served := make(chan string, 1)
	third := w.send(t, hello)
	go func() {
		line, err := bufio.NewReader(third).ReadString('\n')
		served <- fmt.Sprint(line, err)
	}()
	select {
	case got := <-served:
		t.Fatalf("the third got %s", got)
	case <-time.After(2 * graceUnknown): // wait, to see that no answer comes
	}
	close(store.release)
	for _, conn := range busy {
		got, err := http.ReadResponse(bufio.NewReader(conn), nil) //nolint:bodyclose // closeQuietly does.
		if err != nil || got.StatusCode != http.StatusOK {
			t.Fatalf("a request under way: got %v and error %v", got, err)
		}
		closeQuietly(got.Body)
	}
	if got := <-served; !strings.HasPrefix(got, "HTTP/1.1 200 OK") {
		t.Errorf("the third got %s", got)
	}
}

const settingsFrame = "\x00\x00\x00\x04\x00\x00\x00\x00\x00"

// sendFrames opens an HTTP/2 connection and sends frames on it.
func (w *world) sendFrames(t *testing.T, frames string) net.Conn {
	t.Helper()
	conn := tls.Client(w.dial(t), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if _, err := io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+frames); err != nil {
		t.Fatal(err)
	}
	return conn
}

// TestTLSConnectionsAreEvicted checks that an unfinished handshake and an HTTP/2 connection without
// streams count as idle.
func TestTLSConnectionsAreEvicted(t *testing.T) {
	t.Parallel()
	for _, o := range []opening{
		{"no handshake", func(t *testing.T, w *world) net.Conn { return w.dial(t) }},
		{"half a handshake", func(t *testing.T, w *world) net.Conn { return w.send(t, "\x16\x03\x01\x02") }},
		{"HTTP/2 without a request", func(t *testing.T, w *world) net.Conn { return w.sendFrames(t, settingsFrame) }},
		{"HTTP/2 with headers that never end", func(t *testing.T, w *world) net.Conn {
			return w.sendFrames(t, settingsFrame+"\x00\x00\x01\x01\x00\x00\x00\x00\x01\x82")
		}},
	} {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			const most = 3
			w, _ := startTLS(t, &Options{Bounds: patientBounds(most)})
			for n := range most {
				o.open(t, w)
				eventually(t, "it is accepted", func() bool { return w.server.Connections() == n+1 })
			}
			for range 2 {
				if got := w.ask(t, "/v1/status?entity=acme&resource=llm", "", ""); got.status != http.StatusOK {
					t.Errorf("the new client: got %d %s", got.status, got.body)
				}
				w.client.CloseIdleConnections()
			}
		})
	}
}

// fullListener fails to accept once, like the system if the process has too many files open, and
// then accepts the connections that are sent to its channel.
type fullListener struct {
	onlyListener

	conns chan net.Conn
	fail  chan error
}

func (l fullListener) Accept() (net.Conn, error) {
	select {
	case err := <-l.fail:
		return nil, err
	case conn := <-l.conns:
		return conn, nil
	}
}

// TestTooManyFiles checks that an idle connection is closed too if the system allows fewer files
// than connections; if none is idle, the error is passed on.
func TestTooManyFiles(t *testing.T) {
	t.Parallel()
	full := fullListener{conns: make(chan net.Conn, 1), fail: make(chan error, 1)}
	l := newBoundedListener(full, 100)
	failure := &net.OpError{Op: "accept", Err: syscall.EMFILE}
	full.fail <- failure
	if _, err := l.Accept(); !errors.Is(err, syscall.EMFILE) {
		t.Errorf("without connections: got %v", err)
	}
	ours, theirs := net.Pipe()
	full.conns <- ours
	if _, err := l.Accept(); err != nil {
		t.Fatal(err)
	}
	accepted := make(chan error, 1)
	full.fail <- failure
	go func() {
		_, err := l.Accept()
		accepted <- err
	}()
	if _, err := theirs.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the idle connection: got %v, want that it is closed", err)
	}
	next, far := net.Pipe()
	defer closeQuietly(far)
	full.conns <- next
	if err := <-accepted; err != nil {
		t.Errorf("the new connection: got %v", err)
	}
}

// TestRefusedConnectionsAreEvicted checks that a connection whose caller was refused is idle
// although its body has not arrived, and that later connections are kept until it is closed.
func TestRefusedConnectionsAreEvicted(t *testing.T) {
	t.Parallel()
	const most = 4
	w := start(t, &Options{
		Bounds: patientBounds(most), TokensFile: write(t, t.TempDir(), "tokens.yaml", threeTokens()),
	})
	for range most {
		w.send(t, slowBody)
	}
	l := w.server.listener
	eventually(t, "all are refused", func() bool { return strings.Count(w.log.String(), "status=401 took=") == most })
	l.mu.Lock()
	if l.pending.head != nil {
		t.Error("a connection whose caller was refused has a request under way")
	}
	l.mu.Unlock()
	good := w.dial(t)
	for range most - 2 {
		w.dial(t)
	}
	for _, conn := range []net.Conn{w.dial(t), good} { // earlier ones are accepted before it
		if status := exchange(t, conn, request(readToken)); status != http.StatusOK {
			t.Errorf("a new connection: got %d", status)
		}
	}
}

// TestAnsweredConnectionsAreEvicted checks that a connection with its last answer is evicted at
// once. net/http keeps such a connection for half a second if the client has not sent its whole
// body.
func TestAnsweredConnectionsAreEvicted(t *testing.T) {
	t.Parallel()
	full := fullListener{conns: make(chan net.Conn, 2), fail: make(chan error)}
	l := newBoundedListener(full, 1)
	ours, theirs := net.Pipe()
	full.conns <- ours
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	l.track(conn, http.StateActive)
	recordAuthenticated(connContext(t.Context(), conn))
	next, far := net.Pipe()
	defer closeQuietly(far)
	full.conns <- next
	accepted := make(chan error, 1)
	go func() {
		_, err := l.Accept()
		accepted <- err
	}()
	eventually(t, "the new one waits", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.waiting
	})
	if err := conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-accepted:
		if err != nil || l.evicted.Load() != 1 || l.active.Load() != 0 {
			t.Errorf("got %v, %d closed, %d active", err, l.evicted.Load(), l.active.Load())
		}
	case <-time.After(patience):
		t.Fatal("the new connection waits for one that has its answer")
	}
	if _, err := theirs.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the answered one: got %v, want that it is closed", err)
	}
}

// TestProbes checks that the listener for probes serves only health and metrics, and answers while
// the other listener is busy.
func TestProbes(t *testing.T) {
	t.Parallel()
	store := newSlowStore(t)
	bounds := patientBounds(1)
	bounds.MaxConcurrent = 1
	w := startOver(t, store, &Options{
		Bounds: bounds, ProbeListen: "127.0.0.1:0",
		TokensFile: write(t, t.TempDir(), "tokens.yaml", threeTokens()),
	})
	w.send(t, fmt.Sprintf("POST /v1/reserve HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"+
		"Authorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s", callToken, len(askRPM), askRPM))
	<-store.entered
	defer close(store.release)
	base := "http://" + w.server.ProbeAddr().String()
	for _, c := range []struct {
		path, bearer string
		want         int
		has          string
	}{
		{"/healthz", "", 200, `"ok"`},
		{"/readyz", "", 200, `"ok"`},
		{"/metrics", readToken, 200, "weir_connections 1"},
		{"/metrics", "", 401, "Authorization"},
		{"/v1/status?entity=acme&resource=llm", readToken, 404, "is not a path of this server"},
		{"/openapi.json", "", 404, "is not a path of this server"},
		{"/", "", 404, "is not a path of this server"},
	} {
		got, err := ask(t.Context(), w.client, base+c.path, "", c.bearer)
		if err != nil || got.status != c.want || !bytes.Contains(got.body, []byte(c.has)) {
			t.Errorf("%s: got %+v and error %v, want %d and %s", c.path, got, err, c.want, c.has)
		}
	}
}
