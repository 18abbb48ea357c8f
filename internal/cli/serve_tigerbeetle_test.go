//go:build cgo

package cli

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/testkit"
)

// slotsFile writes a limits file that gives every entity n slots.
func slotsFile(t *testing.T, file string, slots int) {
	t.Helper()
	text := fmt.Sprintf("version: 1\nsystem: {on_unavailable: allow, limits: {slots: {kind: concurrency, timeout: 3600, capacity: %d}}}\n", slots)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// get asks a server for a page.
func (s *served) get(t *testing.T, path string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// TestServeTigerBeetle checks that the file is the configuration, even after a hangup signal, and
// that the configuration cannot be changed in another way.
func TestServeTigerBeetle(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("there are no signals there")
	}
	limits := filepath.Join(t.TempDir(), "limits.yaml")
	slotsFile(t, limits, 5)
	s := startServe(t, "--limits", limits, "--store", "tigerbeetle://emulator", "--watch", "0")
	s.waitFor(t, "msg=listening")
	const five = `{"entity":"acme","resource":"llm","costs":{"slots":5}}`
	s.ask(t, "/v1/reserve", five, http.StatusOK)
	s.ask(t, "/v1/reserve", askSlot, http.StatusTooManyRequests)
	if status, body := s.get(t, "/readyz"); status != http.StatusOK {
		t.Errorf("readyz: got %d %s", status, body)
	}
	// The definitions, one that was admitted and one that was denied.
	if _, body := s.get(t, "/metrics"); !strings.Contains(body, "\nweir_store_transfer_calls_total 3\n") ||
		!strings.Contains(body, "\nweir_store_contended_total 0\n") {
		t.Errorf("metrics: got %s, want what the store counts", body)
	}

	slotsFile(t, limits, 6)
	s.signal(t, syscall.SIGHUP)
	s.waitFor(t, "msg=reloaded what=limits")
	s.ask(t, "/v1/reserve", askSlot, http.StatusOK)
	s.ask(t, "/v1/reserve", askSlot, http.StatusTooManyRequests)

	slotsFile(t, limits, 0)
	s.signal(t, syscall.SIGHUP)
	s.waitFor(t, `msg="reload refused" what=limits error="`+limits+":2:")
	s.ask(t, "/v1/reserve", askSlot, http.StatusTooManyRequests)
	s.end(t)
}

// TestServeTigerBeetleTwoServers checks that, of two servers with different files, the one whose
// limits are not in force reports that, until a flag or a hangup signal puts its own in force.
func TestServeTigerBeetleTwoServers(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("there are no signals there")
	}
	store := testkit.TigerBeetleURL(t, "serve-"+strconv.FormatInt(time.Now().UnixNano(), 36))
	dir := t.TempDir()
	older, newer := filepath.Join(dir, "older.yaml"), filepath.Join(dir, "newer.yaml")
	slotsFile(t, older, 5)
	slotsFile(t, newer, 6)
	ready := func(s *served, name string, want int) {
		t.Helper()
		status, body := s.get(t, "/readyz")
		if status != want || want != http.StatusOK && !strings.Contains(body, `"type":"urn:weir:problem:superseded"`) {
			t.Errorf("%s: readyz: got %d %s, want %d", name, status, body, want)
		}
		if status, _ := s.get(t, "/healthz"); status != http.StatusOK {
			t.Errorf("%s: healthz: got %d", name, status)
		}
	}
	one := startServe(t, "--limits", older, "--store", store)
	one.waitFor(t, "msg=listening")
	ready(one, "alone", http.StatusOK)
	two := startServe(t, "--limits", newer, "--store", store)
	two.waitFor(t, "msg=listening")
	ready(two, "the newer file", http.StatusOK)
	ready(one, "the older file", http.StatusServiceUnavailable)
	if answer := one.ask(t, "/v1/reserve", askSlot, http.StatusServiceUnavailable); !strings.Contains(
		answer, `"urn:weir:problem:superseded"`) {
		t.Errorf("the older file: reserve: got %s", answer)
	}
	for s, want := range map[*served]bool{one: true, two: false} {
		r := runWeir(t, "status", "acme", "llm", "--server", s.url)
		if r.code != 0 || strings.Contains(r.out, "of limits that are not in force") != want {
			t.Errorf("status: got %d %s%s", r.code, r.out, r.err)
		}
	}
	again := startServe(t, "--limits", older, "--store", store)
	again.waitFor(t, `msg="limits of the file are not in force: the store has others"`)
	again.waitFor(t, `msg="not ready"`)
	ready(again, "the older file, started again", http.StatusServiceUnavailable)
	again.signal(t, syscall.SIGHUP)
	again.waitFor(t, "msg=reloaded what=limits")
	ready(again, "the older file, reloaded", http.StatusOK)
	again.ask(t, "/v1/reserve", askSlot, http.StatusOK)
	ready(two, "the newer file, after that", http.StatusServiceUnavailable)
	// Go back to the newer file with a flag.
	forced := startServe(t, "--limits", newer, "--store", store, "--put-in-force")
	forced.waitFor(t, `msg="limits are in force"`)
	ready(forced, "the newer file, put in force", http.StatusOK)
	ready(again, "the older file, after that", http.StatusServiceUnavailable)
	ready(two, "the newer file, which is in force again", http.StatusOK)
	for _, s := range []*served{one, two, again, forced} {
		s.end(t)
	}
}

// TestServeOtherNamespace checks that a limits file that names another namespace is refused when
// the server starts, when it reads the file again, and by a command.
func TestServeOtherNamespace(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("there are no signals there")
	}
	limits := filepath.Join(t.TempDir(), "limits.yaml")
	write := func(namespace string) {
		t.Helper()
		text := "version: 1\nnamespace: " + namespace + "\nsystem: {limits: {rpm: {capacity: 5}}}\n"
		if err := os.WriteFile(limits, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("staging")
	const at = "tigerbeetle://emulator?namespace=prod"
	const refusal = `:2:1: invalid: namespace "staging": is not the store's namespace, which is "prod"`
	for _, args := range [][]string{
		{"serve", "--listen", "127.0.0.1:0", "--limits", limits, "--store", at},
		{"status", "acme", "llm", "--limits", limits, "--store", "tigerbeetle://127.0.0.1:1?namespace=prod"},
	} {
		if r := runWeir(t, args...); r.code != 1 || !strings.Contains(r.err, refusal) {
			t.Errorf("%s: got %d %s", args[0], r.code, r.err)
		}
	}
	write("prod")
	s := startServe(t, "--limits", limits, "--store", at, "--watch", "0")
	s.waitFor(t, "msg=listening")
	write("staging")
	s.signal(t, syscall.SIGHUP)
	s.waitFor(t, `msg="reload refused"`)
	s.end(t)
}

// TestPutInForceOnOtherStores checks that the flag is refused on stores other than TigerBeetle, and
// that the error names the store for which it is meant.
func TestPutInForceOnOtherStores(t *testing.T) {
	t.Parallel()
	const want = "weir: --put-in-force needs a store whose servers share one limits file: " +
		"--store tigerbeetle://HOST:PORT (see weir serve --help)\n"
	limits := filepath.Join(t.TempDir(), "limits.yaml")
	slotsFile(t, limits, 5)
	for _, args := range [][]string{
		{"--limits", limits}, {"--limits", limits, "--store", "memory:"}, {"--store", "dynamodb://limits"},
	} {
		r := runWeir(t, append([]string{"serve", "--listen", "127.0.0.1:0", "--put-in-force"}, args...)...)
		if r.code != console.ExitMisused || r.err != want {
			t.Errorf("%q: got exit code %d and %s, want %d and %s", args, r.code, r.err, console.ExitMisused, want)
		}
	}
}
