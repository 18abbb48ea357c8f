package cli

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// badClientKind is a way in which a client misbehaves. It returns how the connection ended; a text
// that begins with "error" is a fault of the server.
type badClientKind struct {
	name   string
	behave func(ctx context.Context, c *net.TCPConn) string
}

// visitBadly connects and behaves badly.
func visitBadly(ctx context.Context, addr string, behave func(context.Context,
	*net.TCPConn) string) string {
	ctx, cancel := context.WithTimeout(ctx, wireTimeout)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return "error: connecting: " + err.Error()
	}
	defer func() { _ = conn.Close() }()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return "error: " + err.Error()
	}
	return behave(ctx, conn.(*net.TCPConn))
}

func badClientKinds() []badClientKind {
	half := strings.ReplaceAll(rawHead, "HOST", "server")
	body := half + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", 10*len(rawGood), rawGood)
	says := func(text string) func(context.Context, *net.TCPConn) string {
		return func(_ context.Context, c *net.TCPConn) string {
			_, _ = io.WriteString(c, text) // the server may close the connection early
			return untilClosed(c)
		}
	}
	return []badClientKind{
		{"says nothing", says("")},
		{"half a line, and waits", says("POST /v1/res")},
		{"half a head, and waits", says(half)},
		{"half a body, and waits", says(body)},
		{"half a head, and goes", func(_ context.Context, c *net.TCPConn) string {
			_, _ = io.WriteString(c, half) // the client leaves in any case
			return "left"
		}},
		{"half a body, and breaks off", func(_ context.Context, c *net.TCPConn) string {
			_, _ = io.WriteString(c, body) // the client breaks off in any case
			return breakOff(c)
		}},
		{"half a body, and hangs up its half", func(_ context.Context, c *net.TCPConn) string {
			_, _ = io.WriteString(c, body) // the same
			_ = c.CloseWrite()
			return untilClosed(c)
		}},
		{"connects and breaks off", func(_ context.Context,
			c *net.TCPConn) string {
			return breakOff(c)
		}},
		{"a byte of the head at a time", dripHead},
		{"garbage", says("\x00\xff\x16\x03 garbage\r\n\r\n" + strings.Repeat("\xfe", 4096))},
		{"a head without an end", says(half + strings.Repeat("X-Y: "+strings.Repeat("z", 1000)+"\r\n",
			2000))},
		{"chunks that are none", says(half + "Transfer-Encoding: chunked\r\n\r\nnonsense\r\n\r\n")},
		{"a wrong bearer token", says("GET /v1/status?entity=acme HTTP/1.1\r\nHost: server\r\n" +
			"Connection: close\r\nAuthorization: Bearer " + wireNoToken + "\r\n\r\n")},
		{"TLS", helloTLS},
		{"asks and never reads", neverRead},
	}
}

// untilClosed reads until the server closes the connection, and returns the first status.
func untilClosed(c *net.TCPConn) string {
	r := bufio.NewReader(c)
	outcome := "closed"
	if got, err := http.ReadResponse(r, nil); err == nil {
		outcome = fmt.Sprint(got.StatusCode)
		_, _ = io.Copy(io.Discard, got.Body) // the test needs only the end of the connection
		_ = got.Body.Close()
	}
	_, err := io.Copy(io.Discard, r)
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		return "error: still open"
	}
	return outcome
}

// breakOff resets the connection, so that the server's next write fails.
func breakOff(c *net.TCPConn) string {
	if err := c.SetLinger(0); err != nil {
		return "error: " + err.Error()
	}
	return "broke off"
}

// dripHead sends a head that never ends, slowly, until the server closes the connection.
func dripHead(ctx context.Context, c *net.TCPConn) string {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	const head = "GET /v1/status?entity=acme HTTP/1.1\r\nHost: server\r\nX-Y: "
	for i := 0; ; i++ {
		next := []byte{'x'}
		if i < len(head) {
			next[0] = head[i]
		}
		if _, err := c.Write(next); err != nil {
			return "closed"
		}
		select {
		case <-ctx.Done():
			return "error: still open"
		case <-tick.C:
		}
	}
}

// helloTLS begins a TLS handshake on a port without TLS.
func helloTLS(ctx context.Context, c *net.TCPConn) string {
	err := tls.Client(c, &tls.Config{ServerName: "server",
		MinVersion: tls.VersionTLS12}).HandshakeContext(ctx)
	if err == nil {
		return "error: the plain port speaks TLS"
	}
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		return "error: still open"
	}
	return "no handshake"
}

// neverRead asks for more than the buffers of both ends can hold, and never reads it, so that the
// server's write has to time out.
func neverRead(ctx context.Context, c *net.TCPConn) string {
	if err := c.SetReadBuffer(4096); err != nil {
		return "error: " + err.Error()
	}
	const ask = "GET /openapi.json HTTP/1.1\r\nHost: server\r\n\r\n"
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := io.WriteString(c, strings.Repeat(ask, 20)); err != nil {
			if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
				return "error: still open"
			}
			return "closed"
		}
		select {
		case <-ctx.Done():
			return "error: still open"
		case <-tick.C:
		}
	}
}
