package cli

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// serveLimits admits five concurrent calls for an hour.
const serveLimits = "version: 1\nsystem: {limits: {slots: {kind: concurrency, timeout: 3600, capacity: 5}}}\n"

const askSlot = `{"entity":"acme","resource":"llm","costs":{"slots":1}}`

func writeServeLimits(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "limits.yaml")
	if err := os.WriteFile(file, []byte(serveLimits), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestServeWithClosedLog checks that a server whose log output is closed shuts down cleanly, and
// that the leases that it answered are on the disk.
func TestServeWithClosedLog(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("there are no signals there")
	}
	state := filepath.Join(t.TempDir(), "state")
	s := startServe(t, "--limits", writeServeLimits(t), "--store", "memory:?every=1h&snapshot="+state)
	s.waitFor(t, "msg=listening")
	lease := s.ask(t, "/v1/reserve", askSlot, http.StatusOK)
	if err := s.stderr.Close(); err != nil {
		t.Fatal(err)
	}
	s.signal(t, syscall.SIGTERM)
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("got %v, want exit code 0", err)
	}
	checkSnapshot(t, state, lease)
}

// TestServeSnapshotFails checks that a running server logs that a snapshot could not be written.
func TestServeSnapshotFails(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("a folder that has an open file in it cannot be moved there")
	}
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s := startServe(t, "--limits", writeServeLimits(t),
		"--store", "memory:?every=10ms&snapshot="+filepath.Join(dir, "snapshot"))
	if err := os.Rename(dir, dir+".gone"); err != nil {
		t.Fatal(err)
	}
	s.ask(t, "/v1/reserve", askSlot, http.StatusOK)
	s.waitFor(t, `level=ERROR msg="the store failed" error="memory: write snapshot: `)
	if err := os.Rename(dir+".gone", dir); err != nil { // so that the last snapshot succeeds
		t.Fatal(err)
	}
	s.end(t)
}

// end asks the server to shut down, and expects exit code 0.
func (s *served) end(t *testing.T) {
	t.Helper()
	s.signal(t, syscall.SIGTERM)
	s.waitFor(t, `msg="shut down"`)
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("got %v, want exit code 0", err)
	}
}

// TestServeTelemetry checks that OpenTelemetry's messages are in the log, in the log's form, and
// without secrets.
func TestServeTelemetry(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("there are no signals there")
	}
	s := startServeWith(t, []string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1", // no collector listens there
		"OTEL_EXPORTER_OTLP_HEADERS=Authorization very-secret",
		"OTEL_EXPORTER_OTLP_TIMEOUT=50",
	}, "--limits", writeServeLimits(t), "--log-format", "json")
	s.ask(t, "/v1/reserve", askSlot, http.StatusOK)
	s.signal(t, syscall.SIGTERM)
	var all []string
	for line := range s.logs {
		if all = append(all, line); !json.Valid([]byte(line)) {
			t.Errorf("a line that is not JSON: %s", line)
		}
	}
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("got %v, want exit code 0", err)
	}
	said := strings.Join(all, "\n")
	for _, want := range []string{"OTEL_EXPORTER_OTLP_HEADERS", "header 1 has no '='", "traces are lost"} {
		if !strings.Contains(said, want) {
			t.Errorf("the log has no %q: %s", want, said)
		}
	}
	if strings.Contains(said, "very-secret") {
		t.Errorf("the log has the secret: %s", said)
	}
}
