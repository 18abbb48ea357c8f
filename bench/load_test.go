package main

import (
	"io"
	"net"
	"strings"
	"testing"
)

// TestCallerRefuses shows that the load counts nothing but whole answers with what it needs.
func TestCallerRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, answer, want string }{
		{"a refusal", "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n", "429"},
		{"no length", "HTTP/1.1 200 OK\r\n\r\n", "want 200"},
		{"no number", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "answer"},
		{"no lease", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "no lease_id"},
		{"half an answer", "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{}", "EOF"},
		{"nothing", "", "EOF"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			here, there := net.Pipe()
			defer func() { _ = here.Close() }()
			go func() {
				defer func() { _ = there.Close() }()
				request := make([]byte, len(requestBytes("x", reservePath, reserveBody)))
				if _, err := io.ReadFull(there, request); err == nil {
					_, _ = io.WriteString(there, c.answer)
				}
			}()
			tally, err := newCaller(here, "x").loop(2)
			if err == nil || !strings.Contains(err.Error(), c.want) || tally.admitted != 0 {
				t.Errorf("got %+v, %v, want nothing counted and an error with %q", tally, err, c.want)
			}
		})
	}
}
