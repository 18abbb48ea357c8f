package server

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// slowBody is the beginning of a reservation whose body never ends.
const slowBody = "POST /v1/reserve HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" +
	"Content-Length: 100\r\n\r\n{"

// TestSlowBodiesDoNotCount checks that requests whose bodies have not arrived do not count towards
// MaxConcurrent.
func TestSlowBodiesDoNotCount(t *testing.T) {
	t.Parallel()
	bounds := patientBounds(100)
	bounds.MaxConcurrent = 2
	w := start(t, &Options{Bounds: bounds})
	var slow []net.Conn
	for range 4 {
		slow = append(slow, w.send(t, slowBody))
	}
	eventually(t, "all are on their way", func() bool { return w.server.listener.active.Load() == 4 })
	for range 10 {
		if got := w.ask(t, "/v1/reserve", askRPM, ""); got.status != http.StatusOK {
			t.Fatalf("got %d %s", got.status, got.body)
		}
	}
	if status := exchange(t, slow[0], strings.Repeat(" ", 98)+"}"); status != http.StatusBadRequest {
		t.Errorf("a body that arrives after all: got %d", status)
	}
}

// TestSlowBodiesAreBounded checks that above four times MaxConcurrent, and above the bound on
// memory, the request that began first is refused; a request whose body arrives at once is served.
func TestSlowBodiesAreBounded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		bounds  Bounds
		begin   string
		senders int
	}{
		{"number", Bounds{MaxConcurrent: 2}, slowBody, 9},
		{"memory", Bounds{MaxBody: 40 << 20}, strings.Replace(slowBody, "100", "31000000", 1) +
			strings.Repeat(" ", 29<<20), 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			bounds := patientBounds(100)
			bounds.MaxConcurrent, bounds.MaxBody = c.bounds.MaxConcurrent, c.bounds.MaxBody
			w := start(t, &Options{Bounds: bounds})
			var slow []net.Conn
			for n := range c.senders {
				slow = append(slow, w.send(t, c.begin))
				eventually(t, "it is on its way", func() bool {
					return w.server.listener.active.Load() >= int64(min(n+1, c.senders-1))
				})
			}
			got, err := http.ReadResponse(bufio.NewReader(slow[0]), nil)
			if err != nil {
				t.Fatalf("the oldest: %v", err)
			}
			defer closeQuietly(got.Body)
			text, _ := io.ReadAll(got.Body)
			if got.StatusCode != http.StatusServiceUnavailable || got.Header.Get("Retry-After") != "1" ||
				!bytes.Contains(text, []byte(`"code":"overloaded"`)) {
				t.Errorf("the oldest: got %s and %s, want overloaded", got.Status, text)
			}
			if got := w.ask(t, "/v1/reserve", askRPM, ""); got.status != http.StatusOK {
				t.Errorf("a body that arrives at once: got %d %s", got.status, got.body)
			}
		})
	}
}

// TestSlowBodiesOfAnotherCaller checks that a caller's requests are not refused because of the slow
// bodies of another caller.
func TestSlowBodiesOfAnotherCaller(t *testing.T) {
	t.Parallel()
	bounds := patientBounds(100)
	bounds.MaxConcurrent = 2
	w := start(t, &Options{
		Bounds: bounds, TokensFile: write(t, t.TempDir(), "tokens.yaml", threeTokens()),
	})
	begin := func(token string) net.Conn {
		return w.send(t, strings.Replace(slowBody, "\r\n", "\r\nAuthorization: Bearer "+token+"\r\n", 1))
	}
	good := begin(callToken)
	eventually(t, "it is on its way", func() bool { return w.server.listener.active.Load() == 1 })
	for range 27 {
		begin(adminToken)
	}
	eventually(t, "all but eight are given up", func() bool {
		return w.figures(t, readToken)[`weir_requests_total{code="503",method="POST",route="/v1/reserve"}`] == 20
	})
	if status := exchange(t, good, strings.Repeat(" ", 98)+"}"); status != http.StatusBadRequest {
		t.Errorf("the other caller's body: got %d, want that it is read", status)
	}
}
