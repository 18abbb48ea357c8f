package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// dial opens a bare connection to the server.
func (w *world) dial(t *testing.T) net.Conn {
	t.Helper()
	var d net.Dialer
	conn, err := d.DialContext(t.Context(), "tcp", w.server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeQuietly(conn) })
	return conn
}

// say sends text and returns everything that the server sends until it closes the connection.
func say(t *testing.T, conn net.Conn, text string) string {
	t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(conn)
	if err != nil {
		t.Fatalf("after %q: %v", got, err)
	}
	return string(got)
}

const hello = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"

// greet sends a request and reads the status of the answer, on a connection that stays open.
func greet(t *testing.T, conn net.Conn) {
	t.Helper()
	if _, err := io.WriteString(conn, hello); err != nil {
		t.Fatal(err)
	}
	got, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer closeQuietly(got.Body)
	if got.StatusCode != http.StatusOK {
		t.Fatalf("got %s", got.Status)
	}
	if _, err := io.ReadAll(got.Body); err != nil {
		t.Fatal(err)
	}
}

// TestBounds checks that requests that are too slow, too large or not HTTP are refused, and that no
// connection stays open.
func TestBounds(t *testing.T) {
	t.Parallel()
	w := start(t, &Options{Bounds: Bounds{
		HeaderTimeout: 100 * time.Millisecond, ReadTimeout: 300 * time.Millisecond,
		IdleTimeout: 200 * time.Millisecond, MaxHeader: 4096, MaxBody: 1000,
	}})
	post := "POST /v1/reserve HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
	for _, c := range []struct{ what, text, want string }{
		{"nothing", "", ""},
		{"half a request line", "GET /heal", "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain"},
		{"headers that never end", "GET /healthz HTTP/1.1\r\nHost: localhost\r\n", ""},
		{"garbage", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain"},
		{"large headers", "GET /healthz HTTP/1.1\r\nX: " + strings.Repeat("x", 10000) + "\r\n\r\n", "HTTP/1.1 431 "},
		{"a body that never comes", post + "Content-Length: 10\r\n\r\n{", "HTTP/1.1 408 "},
		{"a body that is too large", post + fmt.Sprintf("Content-Length: 1001\r\n\r\n%1001d", 1), "HTTP/1.1 413 "},
		{"idle after an answer", hello, "HTTP/1.1 200 OK"},
	} {
		got := say(t, w.dial(t), c.text)
		if !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: got %q, want %q first", c.what, got, c.want)
		}
	}
	eventually(t, "no connection is open", func() bool { return w.server.Connections() == 0 })
}

// TestCloseWrite checks that the wrapper keeps CloseWrite, which net/http needs so that a client
// can read the last answer.
func TestCloseWrite(t *testing.T) {
	t.Parallel()
	inner, err := listen(t.Context(), "listen", "127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	l := newBoundedListener(inner, 1)
	defer closeQuietly(l)
	accepted := make(chan net.Conn, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			t.Error(err)
		}
		accepted <- conn
	}()
	var d net.Dialer
	client, err := d.DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer closeQuietly(client)
	conn := <-accepted
	if err := conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(client); err != nil || len(got) > 0 {
		t.Errorf("the client read %q and error %v, want the end", got, err)
	}
	if _, err := io.WriteString(client, "still here"); err != nil {
		t.Errorf("the other half is closed too: %v", err)
	}
	for range 2 {
		_ = conn.Close() // it may be closed already
	}
	if got := l.open.Load(); got != 0 {
		t.Errorf("got %d connections open, want none", got)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := l.Accept(); err == nil {
		t.Error("a closed listener accepts")
	}
}
