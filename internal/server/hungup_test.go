//go:build unix

package server

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi/httphandler"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// TestHangUpAfterSending lets clients send a reserve and close before the server looks at the
// connection. The store answers without waiting, so the handler is done before net/http may have
// noticed.
func TestHangUpAfterSending(t *testing.T) {
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
	lim := s.limiter
	eventually(t, "every reserve is done", func() bool {
		done := 0.0
		for name, value := range w.figures(t, "") {
			if strings.HasPrefix(name, "weir_requests_total{") && strings.Contains(name, "/v1/reserve") {
				done += value
			}
		}
		return done == clients
	})
	status, err := lim.Status(t.Context(), "a", "m")
	if err != nil || len(status) != 1 || status[0].Available != slots {
		t.Errorf("got %+v, %v, want %d slots free", status, err, slots)
	}
	if _, err := lim.Reserve(t.Context(), &weir.Request{
		Entity: "a", Resource: "m", Costs: weir.Costs{"parallel": slots},
	}); err != nil {
		t.Errorf("all slots for one who stays: %v", err)
	}
}

// BenchmarkHungUp measures a reserve over a loopback connection with and without the check of the
// connection before the answer, and that check alone.
func BenchmarkHungUp(b *testing.B) {
	for name, look := range map[string]func(context.Context) bool{"without": nil, "with": hungUp} {
		b.Run(name, func(b *testing.B) { benchmarkReserve(b, look) })
	}
	b.Run("alone", func(b *testing.B) {
		plain, err := new(net.ListenConfig).Listen(b.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		defer closeQuietly(plain)
		far, err := new(net.Dialer).DialContext(b.Context(), "tcp", plain.Addr().String())
		if err != nil {
			b.Fatal(err)
		}
		defer closeQuietly(far)
		conn, err := newBoundedListener(plain, 1).Accept()
		if err != nil {
			b.Fatal(err)
		}
		defer closeQuietly(conn)
		ctx := connContext(b.Context(), conn)
		b.ReportAllocs()
		for b.Loop() {
			if hungUp(ctx) {
				b.Fatal("hungUp reported a client that is still connected")
			}
		}
	})
}

// benchmarkReserve reserves over a loopback connection.
func benchmarkReserve(b *testing.B, hungUp func(context.Context) bool) {
	const body = `{"entity":"a","resource":"m","costs":{"rpm":0}}`
	request := fmt.Sprintf("POST /v1/reserve HTTP/1.1\r\nHost: localhost\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	store, err := memory.Open(nil)
	if err != nil {
		b.Fatal(err)
	}
	lim, err := limiter.New(store, &limiter.Options{MaxLeases: 1 << 30, Limits: []weir.Limit{
		{Name: "rpm", Kind: weir.Bucket, Capacity: 10, RefillAmount: 10, RefillPeriod: time.Minute},
	}})
	if err != nil {
		b.Fatal(err)
	}
	plain, err := new(net.ListenConfig).Listen(b.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	l := newBoundedListener(plain, 10)
	h := &http.Server{
		Handler:   httphandler.New(lim, &httphandler.Options{HungUp: hungUp}),
		ConnState: l.track, ConnContext: connContext, ReadHeaderTimeout: patience,
	}
	go func() { _ = h.Serve(l) }() // until it is closed
	defer closeQuietly(h)
	conn, err := new(net.Dialer).DialContext(b.Context(), "tcp", plain.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer closeQuietly(conn)
	answer := make([]byte, 4096)
	for b.Loop() {
		if _, err := io.WriteString(conn, request); err != nil {
			b.Fatal(err)
		}
		if _, err := conn.Read(answer); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 200") {
			b.Fatalf("%v: %.500s", err, answer)
		}
	}
}
