package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/memory"
)

// servePatience bounds every wait for a server in a separate process.
const servePatience = 60 * time.Second

// asServer is the variable that makes TestServeProcess a server. It has the arguments, one a line.
const asServer = "WEIR_TEST_AS_SERVER"

// TestServeProcess is not a test but the server process of other tests. It handles signals like the
// program.
func TestServeProcess(*testing.T) {
	args := os.Getenv(asServer)
	if args == "" {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	serve := []string{"serve", "--listen", "127.0.0.1:0", "--shutdown-delay", "1ms"}
	exit := Run(ctx, append(serve, strings.Split(args, "\n")...),
		console.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}, os.Getenv)
	stop()
	os.Exit(exit)
}

// TestServe runs a server from start to end: it serves, reads its limits again on a hangup signal,
// ends on a termination signal, and leaves the leases that it answered on the disk.
func TestServe(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("there are no signals there")
	}
	dir := t.TempDir()
	limits, state := filepath.Join(dir, "limits.yaml"), filepath.Join(dir, "state")
	writeLimits := func(capacity int) {
		t.Helper()
		text := fmt.Sprintf("version: 1\nsystem: {limits: {slots: {kind: concurrency, timeout: 3600, capacity: %d}}}\n", capacity)
		if err := os.WriteFile(limits, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	writeLimits(5)
	s := startServe(t, "--limits", limits, "--store", "memory:?snapshot="+state, "--watch", "0")
	lease := s.ask(t, "/v1/reserve", `{"entity":"acme","resource":"llm","costs":{"slots":5}}`, http.StatusOK)
	s.ask(t, "/v1/reserve", `{"entity":"acme","resource":"llm","costs":{"slots":1}}`, http.StatusTooManyRequests)

	writeLimits(7)
	s.ask(t, "/v1/reserve", `{"entity":"acme","resource":"llm","costs":{"slots":1}}`, http.StatusTooManyRequests)
	s.signal(t, syscall.SIGHUP)
	s.waitFor(t, "msg=reloaded what=limits")
	s.ask(t, "/v1/reserve", `{"entity":"acme","resource":"llm","costs":{"slots":1}}`, http.StatusOK)

	writeLimits(0)
	s.signal(t, syscall.SIGHUP)
	s.waitFor(t, `msg="reload refused" what=limits error="`+limits+":2:")
	s.ask(t, "/v1/reserve", `{"entity":"acme","resource":"llm","costs":{"slots":1}}`, http.StatusOK)

	s.signal(t, syscall.SIGTERM)
	s.waitFor(t, `msg="shut down"`)
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("got %v, want exit code 0", err)
	}
	checkSnapshot(t, state, lease)
}

// TestServeOwnLimits serves a snapshot file to which limits were applied. The server needs no
// limits file and keeps what administrators change; while it runs, the file can be compared, and
// not changed.
func TestServeOwnLimits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	limits, at := filepath.Join(dir, "limits.yaml"), "memory:?snapshot="+filepath.Join(dir, "state")
	text := "version: 1\nresources: {llm: {limits: {slots: {kind: concurrency, capacity: 5, timeout: 3600}}}}\n"
	if err := os.WriteFile(limits, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := runWeir(t, "limits", "apply", limits, "--store", at); got.code != console.ExitDone {
		t.Fatalf("apply: %+v", got)
	}
	s := startServe(t, "--store", at)
	s.ask(t, "/v1/reserve", `{"entity":"acme","resource":"llm","costs":{"slots":5}}`, http.StatusOK)
	s.ask(t, "/v1/reserve", `{"entity":"acme","resource":"llm","costs":{"slots":1}}`, http.StatusTooManyRequests)
	if got := runWeir(t, "limits", "diff", limits, "--store", at); got.code != console.ExitDone {
		t.Errorf("diff beside the server: %+v", got)
	}
	more := strings.Replace(text, "5", "6", 1)
	if err := os.WriteFile(limits, []byte(more), 0o600); err != nil {
		t.Fatal(err)
	}
	got := runWeir(t, "limits", "apply", limits, "--store", at)
	if got.code != console.ExitFailed || !strings.Contains(got.err, "name that server with --server") {
		t.Errorf("apply beside the server: got %+v, want a refusal that points to the server", got)
	}
	got = runWeir(t, "limits", "apply", limits, "--server", s.url)
	if got.code != console.ExitDone || got.err != "" {
		t.Errorf("apply through the server: got %+v, want no note that the change is lost", got)
	}
	s.signal(t, syscall.SIGTERM)
	s.waitFor(t, `msg="shut down"`)
	if err := s.cmd.Wait(); err != nil {
		t.Error(err)
	}
	if got := runWeir(t, "limits", "diff", limits, "--store", at); got.code != console.ExitDone {
		t.Errorf("after the server has ended: %+v", got)
	}
}

// checkSnapshot checks that the lease of an answer is live in the snapshot that a server left.
func checkSnapshot(t *testing.T, file, answer string) {
	t.Helper()
	var lease struct {
		ID weir.LeaseID `json:"lease_id"`
	}
	if err := json.Unmarshal([]byte(answer), &lease); err != nil {
		t.Fatal(err)
	}
	store, err := memory.OpenSnapshot(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	record, err := store.RecoverLease(t.Context(), time.Now(), lease.ID)
	if err != nil || record == nil || record.State != driver.LeaseLive {
		t.Errorf("lease %v: got %v and error %v, want it live", lease.ID, record, err)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}

// served is a server in a separate process.
type served struct {
	cmd    *exec.Cmd
	url    string
	stderr io.ReadCloser
	logs   chan string // line by line
}

// startServe runs `weir serve` on a free port. The process is killed when the test ends, if it
// still runs.
func startServe(t *testing.T, args ...string) *served {
	t.Helper()
	return startServeWith(t, nil, args...)
}

// startServeWith does the same with environment variables, each as NAME=value.
func startServeWith(t *testing.T, env []string, args ...string) *served {
	t.Helper()
	s := &served{logs: make(chan string, 1000)}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s.cmd = exec.CommandContext(t.Context(), program, "-test.run=^TestServeProcess$")
	s.cmd.Env = append(append(os.Environ(), asServer+"="+strings.Join(args, "\n")), env...)
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.stderr, err = s.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.logs)
		for lines := bufio.NewScanner(s.stderr); lines.Scan(); {
			s.logs <- lines.Text()
		}
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "weir: listening on ")
	if err != nil || !ok {
		t.Fatalf("got %q and error %v, want where it listens", line, err)
	}
	s.url = url
	return s
}

func (s *served) signal(t *testing.T, sig os.Signal) {
	t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// waitFor reads the log up to a line that has the text.
func (s *served) waitFor(t *testing.T, text string) {
	t.Helper()
	late := time.After(servePatience)
	var before []string
	for {
		select {
		case line, ok := <-s.logs:
			if strings.Contains(line, text) {
				return
			}
			if before = append(before, line); !ok {
				t.Fatalf("the log ended without %q: %q", text, before)
			}
		case <-late:
			t.Fatalf("the log has no %q within %v: %q", text, servePatience, before)
		}
	}
}

// ask posts a body and expects a status; it returns the answer's body.
func (s *served) ask(t *testing.T, path, body string, want int) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), servePatience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Close = true
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(got.Body)
	_ = got.Body.Close() // it has been read
	if err != nil || got.StatusCode != want {
		t.Errorf("%s %s: got %d %s and error %v, want %d", path, body, got.StatusCode, answer, err, want)
	}
	return string(answer)
}

// TestServeInterrupted checks that a server whose context ends before it listens still prints its
// address, and exits with code 0.
func TestServeInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, logs strings.Builder
	streams := console.Streams{In: strings.NewReader(""), Out: &out, Err: &logs}
	code := Run(ctx, []string{"serve", "--listen", "127.0.0.1:0", "--shutdown-delay", "1ms"}, streams,
		func(string) string { return "" })
	if code != console.ExitDone || !strings.HasPrefix(out.String(), "weir: listening on http://127.0.0.1:") {
		t.Errorf("got exit code %d, %q and %q", code, out.String(), logs.String())
	}
}

// TestServeTakenAddress checks that the error of an address that is in use names it once, with the
// flag as typed and with advice.
func TestServeTakenAddress(t *testing.T) {
	t.Parallel()
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	const inUse = "is already in use: choose another address, or stop the process that listens there"
	taken := l.Addr().String()
	for _, c := range []struct{ flag, address, want string }{
		{"--listen", taken, inUse},
		{"--probe-listen", taken, inUse},
		{"--listen", "127.0.0.1:99999", "cannot be opened for listening: address 99999: invalid port"},
	} {
		args := []string{"serve", "--listen", "127.0.0.1:0", "--log-level", "error", c.flag, c.address}
		want := fmt.Sprintf("weir: unavailable: %s %q: %s\n", c.flag, c.address, c.want)
		if r := runWeir(t, args...); r.code != console.ExitFailed || r.err != want {
			t.Errorf("%s %s: got exit code %d and %s, want %d and %s", c.flag, c.address, r.code, r.err,
				console.ExitFailed, want)
		}
	}
	// The log of a server that cannot listen does not say that its limits are in force.
	limits := filepath.Join(t.TempDir(), "limits.yaml")
	if err := os.WriteFile(limits, []byte("version: 1\nsystem: {limits: {rpm: {capacity: 1}}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := runWeir(t, "serve", "--listen", taken, "--limits", limits)
	if r.code != console.ExitFailed || !strings.Contains(r.err, inUse) || strings.Contains(r.err, "in force") {
		t.Errorf("got exit code %d and %s, want %d, the address, and nothing about limits", r.code, r.err,
			console.ExitFailed)
	}
}

// TestServeEnvironment checks that the store may come from the environment, and that the flag
// overrides it.
func TestServeEnvironment(t *testing.T) {
	t.Parallel()
	env := func(name string) string {
		if name == "WEIR_STORE" {
			return "tigerbeetle://host"
		}
		return ""
	}
	for flag, want := range map[string]int{"": console.ExitMisused, "memory:": console.ExitDone} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		args := []string{"serve", "--listen", "127.0.0.1:0", "--shutdown-delay", "1ms"}
		if flag != "" {
			args = append(args, "--store", flag)
		}
		var out, logs strings.Builder
		code := Run(ctx, args, console.Streams{In: strings.NewReader(""), Out: &out, Err: &logs}, env)
		if code != want {
			t.Errorf("--store %q: got exit code %d and %s, want %d", flag, code, logs.String(), want)
		}
	}
}

// TestServeCascade checks that a flag allows a deeper cascade than the default.
func TestServeCascade(t *testing.T) {
	t.Parallel()
	limits := filepath.Join(t.TempDir(), "limits.yaml")
	text := "version: 1\nentities:\n  a: {}\n  b: {parent: a, cascade: true}\n  c: {parent: b, cascade: true}\n"
	if err := os.WriteFile(limits, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for depth, want := range map[string]int{"1": console.ExitFailed, "2": console.ExitDone} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var out, logs strings.Builder
		code := Run(ctx, []string{"serve", "--listen", "127.0.0.1:0", "--shutdown-delay", "1ms",
			"--limits", limits, "--cascade-depth", depth, "--cache-ttl", "0"},
			console.Streams{In: strings.NewReader(""), Out: &out, Err: &logs}, func(string) string { return "" })
		if code != want {
			t.Errorf("depth %s: got exit code %d and %s, want %d", depth, code, logs.String(), want)
		}
	}
}

func TestTraceEndpoint(t *testing.T) {
	t.Parallel()
	const all, traces = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	for _, c := range []struct {
		env  map[string]string
		want string
	}{
		{nil, ""},
		{map[string]string{all: "http://c:4318"}, "http://c:4318/v1/traces"},
		{map[string]string{all: "http://c:4318/"}, "http://c:4318/v1/traces"},
		{map[string]string{traces: "http://t/x"}, "http://t/x"},
		{map[string]string{all: "http://c:4318", traces: "http://t/x"}, "http://t/x"},
		{map[string]string{all: "http://c:4318", "OTEL_SDK_DISABLED": "true"}, ""},
		{map[string]string{all: "http://c:4318", "OTEL_SDK_DISABLED": "false"}, "http://c:4318/v1/traces"},
		{map[string]string{traces: "http://t/x", "OTEL_TRACES_EXPORTER": "none"}, ""},
		{map[string]string{traces: "http://t/x", "OTEL_TRACES_EXPORTER": "otlp"}, "http://t/x"},
	} {
		if got := traceEndpoint(func(name string) string { return c.env[name] }); got != c.want {
			t.Errorf("%v: got %q, want %q", c.env, got, c.want)
		}
	}
}
