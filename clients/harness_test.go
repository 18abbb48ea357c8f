// Package clients_test runs the tests of the clients in other languages against `weir serve` on
// each store.
package clients_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/cli"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/store"
)

// patience bounds the start of a server, and the run of a client's tests, on a busy machine.
const patience = 5 * time.Minute

// limitsFile has the limits of each server. On the resource `llm` a test can watch a bucket refill,
// and slots time out soon, so that an extend past the timeout is tested quickly. On `counted`
// nothing changes by itself while a test runs: a bucket gets back one unit a day, and slots last an
// hour. So the status shows exactly what was charged, and each leak.
const limitsFile = `version: 1
resources:
  llm:
    limits:
      rpm: {capacity: 60}
      tpm: {capacity: 100000}
SLOTS 2}
  counted:
    limits:
      calls: {capacity: 100000, refill_amount: 1, refill_period: 86400}
      tokens: {capacity: 100000000, refill_amount: 1, refill_period: 86400}
SLOTS 3600}
`

// slotsLine is the limit of slots, without its timeout. DynamoDB has only buckets.
const slotsLine = "      parallel: {kind: concurrency, capacity: 5, timeout:"

// eachStore runs a test for each store against `weir serve` with the limits above. The variables
// for the process of the client's test are:
//
//	WEIR_SERVER        URL of the server
//	WEIR_LOSING_SERVER URL of a [losingProxy] before the server
//	WEIR_STORE         memory, dynamodb or tigerbeetle
//
// The DynamoDB store has no slots. Each test uses entities of its own.
func eachStore(t *testing.T, run func(t *testing.T, env []string)) {
	t.Helper()
	for name, address := range map[string]func(t *testing.T) string{
		"memory":      func(*testing.T) string { return "memory:" },
		"dynamodb":    newTable,
		"tigerbeetle": emulator,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := address(t)
			server := startServer(t, at, writeLimits(t, name != "dynamodb"))
			run(t, []string{
				"WEIR_SERVER=" + server, "WEIR_LOSING_SERVER=" + startLosingProxy(t, server),
				"WEIR_STORE=" + name, "NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1",
			})
		})
	}
}

// writeLimits writes the limits to a file and returns its path.
func writeLimits(t *testing.T, slots bool) string {
	t.Helper()
	text := strings.ReplaceAll(limitsFile, "SLOTS", slotsLine)
	if !slots {
		text = regexp.MustCompile(`(?m)^SLOTS.*\n`).ReplaceAllString(limitsFile, "")
	}
	file := filepath.Join(t.TempDir(), "limits.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// emulator returns the URL of a TigerBeetle in this process. The test is skipped in a build without
// cgo, which has none.
func emulator(t *testing.T) string {
	t.Helper()
	const at = "tigerbeetle://emulator"
	s, err := store.Open(t.Context(), at, &store.Options{ReadOnly: true})
	if errors.Is(err, weir.Unsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return at
}

// newTable returns the URL of a new table, which is deleted when the test ends.
func newTable(t *testing.T) string {
	t.Helper()
	at := "dynamodb://clients." + rand.Text()[:16] + "?region=us-east-1&endpoint=" +
		testkit.DynamoDB(t).Endpoint()
	runWeir(t, "table", "create", "--store", at)
	t.Cleanup(func() {
		table, err := store.Table(at)
		if err == nil {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
			defer cancel()
			err = table.Delete(ctx)
		}
		if err != nil {
			t.Error(err)
		}
	})
	return at
}

// runWeir runs a command that must succeed.
func runWeir(t *testing.T, args ...string) {
	t.Helper()
	var out, errs bytes.Buffer
	streams := console.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}
	if code := cli.Run(t.Context(), args, streams, noVariables); code != 0 {
		t.Fatalf("weir %s ended with %d: %s", strings.Join(args, " "), code, errs.String())
	}
}

func noVariables(string) string { return "" }

// startServer runs `weir serve` on a store until the test ends, and returns its URL. A table keeps
// its limits itself, so they are applied to it first.
func startServer(t *testing.T, at, limits string) string {
	t.Helper()
	args := []string{"serve", "--listen", "127.0.0.1:0", "--store", at}
	if strings.HasPrefix(at, "dynamodb:") {
		runWeir(t, "limits", "apply", limits, "--store", at)
		args = append(args, "--store-timeout", "1m") // the machine may be busy
	} else {
		args = append(args, "--limits", limits)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	output, out := io.Pipe()
	ended := make(chan int, 1)
	var errs bytes.Buffer
	go func() {
		code := cli.Run(ctx, args, console.Streams{In: strings.NewReader(""), Out: out, Err: &errs}, noVariables)
		_ = out.Close()
		ended <- code
	}()
	t.Cleanup(func() {
		cancel()
		if code := <-ended; code != 0 || t.Failed() {
			t.Errorf("weir serve ended with %d: %s", code, errs.String())
		}
	})
	line := make([]byte, 256)
	n, _ := output.Read(line) // nothing is read if the command ends
	go func() { _, _ = io.Copy(io.Discard, output) }()
	server := regexp.MustCompile(`http://\S+`).FindString(string(line[:n]))
	if server == "" {
		t.Fatalf("weir serve wrote %q, want its URL", line[:n])
	}
	return server
}

// losingProxy forwards requests to a server. It closes the connection instead of returning the
// first answer about each path and lease ID.
type losingProxy struct {
	next *httputil.ReverseProxy

	mu   sync.Mutex
	seen map[string]bool // by path and lease ID
}

func startLosingProxy(t *testing.T, server string) string {
	t.Helper()
	target, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	next := httputil.NewSingleHostReverseProxy(target)
	next.ErrorLog = log.New(io.Discard, "", 0) // clients that give up are part of the tests
	front := httptest.NewServer(&losingProxy{next: next, seen: map[string]bool{}})
	t.Cleanup(front.Close)
	return front.URL
}

// ServeHTTP forwards a request, or loses its answer after the server has answered.
func (p *losingProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var sent struct {
		LeaseID string `json:"lease_id"`
	}
	if json.Unmarshal(body, &sent) != nil || sent.LeaseID == "" {
		p.next.ServeHTTP(w, r)
		return
	}
	p.mu.Lock()
	key := r.URL.Path + " " + sent.LeaseID
	lost := !p.seen[key]
	p.seen[key] = true
	p.mu.Unlock()
	if lost {
		p.next.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler) // closes the connection without an answer
	}
	p.next.ServeHTTP(w, r)
}
