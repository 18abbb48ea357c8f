//go:build unix

package server

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/memory"
)

// TestHangUpAtOnce lets clients send a reserve and close before the server looks at the connection.
// The store answers without waiting, so the handler is done before net/http may have noticed.
func TestHangUpAtOnce(t *testing.T) {
	t.Parallel()
	const slots, clients = 20, 60
	b, err := memory.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	limits := write(t, t.TempDir(), "limits.yaml", fmt.Sprintf(
		"version: 1\nsystem:\n  limits:\n    parallel: {kind: concurrency, capacity: %d, timeout: 300}\n", slots))
	log := &logBuffer{}
	s, err := New(t.Context(), b, &Options{LimitsFile: limits, Watch: -1, Logger: newTestLogger(log)})
	if err != nil {
		t.Fatal(err)
	}
	const body = `{"entity":"a","resource":"m","costs":{"parallel":1}}`
	request := fmt.Sprintf("POST /v1/reserve HTTP/1.1\r\nHost: localhost\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	address := strings.TrimPrefix(s.URL(), "http://")
	for range clients { // the server does not accept yet
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, request); err != nil {
			t.Fatal(err)
		}
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{server: s, url: s.URL(), log: log, client: &http.Client{Timeout: patience}}
	w.run(t)
	limiter := s.limiter
	eventually(t, "every reserve is done", func() bool {
		done := 0.0
		for name, value := range w.figures(t, "") {
			if strings.HasPrefix(name, "weir_requests_total{") && strings.Contains(name, "/v1/reserve") {
				done += value
			}
		}
		return done == clients
	})
	status, err := limiter.Status(t.Context(), "a", "m")
	if err != nil || len(status) != 1 || status[0].Available != slots {
		t.Errorf("got %+v, %v, want %d slots free", status, err, slots)
	}
	if _, err := limiter.Reserve(t.Context(), &weir.Request{
		Entity: "a", Resource: "m", Costs: weir.Costs{"parallel": slots},
	}); err != nil {
		t.Errorf("all slots for one who stays: %v", err)
	}
}
