package server

import (
	"bytes"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/weir-limiter/weir/memory"
)

// discarded is a response writer that keeps only the latest answer.
type discarded struct {
	header http.Header
	status int
	body   []byte
}

func (d *discarded) Header() http.Header { return d.header }

func (d *discarded) WriteHeader(status int) { d.status = status }

func (d *discarded) Write(p []byte) (int, error) {
	d.body = append(d.body[:0], p...)
	return len(p), nil
}

// BenchmarkServed measures a reservation and its completion through the whole server, without a
// network.
func BenchmarkServed(b *testing.B) {
	store, err := memory.Open(nil)
	if err != nil {
		b.Fatal(err)
	}
	file := filepath.Join(b.TempDir(), "limits.yaml")
	const limits = "version: 1\nsystem:\n  limits: {rpm: {capacity: 1000000000000}, tpm: {capacity: 1000000000000}}\n"
	if err := os.WriteFile(file, []byte(limits), 0o600); err != nil {
		b.Fatal(err)
	}
	s, err := New(b.Context(), store, &Options{
		LimitsFile: file, Watch: -1, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { closeQuietly(s.listener) })
	h, _ := s.handlers()
	w := &discarded{header: http.Header{}}
	send := func(path string, body []byte) []byte {
		r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, path, bytes.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		r.Host = "127.0.0.1"
		r.Header.Set("Content-Type", "application/json")
		clear(w.header)
		if h.ServeHTTP(w, r); w.status != http.StatusOK {
			b.Fatalf("status is %d: %s", w.status, w.body)
		}
		return w.body
	}
	asked := []byte(`{"entity":"acme","resource":"openai/gpt-4o","costs":{"rpm":1,"tpm":500}}`)
	const before = `{"lease_id":"`
	settled := []byte(before + "00000000000000000000000000" + `","actuals":{"tpm":321}}`)
	b.ReportAllocs()
	for b.Loop() {
		_, after, _ := bytes.Cut(send("/v1/reserve", asked), []byte(`"lease_id":"`))
		copy(settled[len(before):], after[:26])
		send("/v1/complete", settled)
	}
}
