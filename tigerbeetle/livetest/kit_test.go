//go:build cgo

package livetest

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/internal/testkit"
)

// callers is the number of concurrent calls of a test.
const callers = 8

// storeURL returns the URL of an unused namespace on the given TigerBeetle server. If none is
// given, it skips the test.
func storeURL(t *testing.T) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("there are no signals there")
	}
	return testkit.TigerBeetleURL(t, freshName())
}

// freshName returns the name of an unused namespace.
func freshName() string { return "l" + strings.ToLower(weir.NewLeaseID(time.Now()).String()) }

// seeded prints the seed of a test's random choices.
func seeded(t *testing.T) uint64 {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return seed
}

// dice returns the random choices of one step of a test. They do not depend on which goroutine
// takes the step.
func dice(seed uint64, step int) *rand.Rand { return rand.New(rand.NewPCG(seed, uint64(step))) }

// program builds the weir command from this module and returns its path.
func program(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "weir")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", name,
		"github.com/weir-limiter/weir/cmd/weir")
	testkit.Run(t, build)
	return name
}

// served is a weir server in a process of its own.
type served struct {
	*httpapi.Client
	cmd     *exec.Cmd
	process *testkit.Process
	url     string
}

// serve starts a server and waits until it listens. The server reads the limits file now, and again
// after hangUp.
func serve(t *testing.T, program, store, limits string) *served {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program, "serve", "--store", store,
		"--limits", limits, "--listen", "127.0.0.1:0", "--watch", "0", "--store-timeout", "5s")
	s := &served{cmd: cmd, process: testkit.Start(t, cmd)}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	line, err := s.process.WaitLine(ctx, regexp.MustCompile(`^weir: listening on (\S+)$`))
	if err != nil {
		t.Fatal(err)
	}
	s.url = line[1]
	s.Client, err = httpapi.NewClient(s.url, &httpapi.ClientOptions{Attempts: 1, Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Client.Close() })
	return s
}

// kill kills the server.
func (s *served) kill(t *testing.T) {
	t.Helper()
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = s.process.Wait(t.Context()) // the error says that it was killed
}

// hangUp makes the server reload its files.
func (s *served) hangUp(t *testing.T) {
	t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
}

// get requests a page.
func (s *served) get(t *testing.T, path string) (status int, body string) {
	t.Helper()
	return s.send(t, http.MethodGet, path, "")
}

// send sends a body as it is.
func (s *served) send(t *testing.T, method, path, body string) (status int, answer string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = got.Body.Close() }()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	return got.StatusCode, string(text)
}

// write writes a limits file.
func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// until waits for an instant.
func until(t *testing.T, at time.Time) {
	t.Helper()
	select {
	case <-time.After(time.Until(at)):
	case <-t.Context().Done():
	}
}

// within waits until done returns true, and returns how long that took.
func within(t *testing.T, most time.Duration, what string, done func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	for !done() {
		if time.Since(began) > most {
			t.Fatalf("not within %v: %s", most, what)
		}
		until(t, time.Now().Add(10*time.Millisecond))
	}
	return time.Since(began)
}

// together runs a step n times, some of them concurrently.
func together(n int, step func(i int)) {
	var wait sync.WaitGroup
	for caller := range callers {
		wait.Go(func() {
			for i := caller; i < n; i += callers {
				step(i)
			}
		})
	}
	wait.Wait()
}
