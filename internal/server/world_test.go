package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/memory"
)

// patience bounds every wait of a test. It is long because the machine may be slow, and finite so
// that a hang fails the test.
const patience = 60 * time.Second

// plenty is a limits file that admits everything.
const plenty = "version: 1\nsystem:\n  limits:\n    rpm: {capacity: 1000000}\n"

// world is a server of a test, with a client for it.
type world struct {
	server *Server
	url    string
	client *http.Client
	dir    string
	log    *logBuffer
	// stop ends the server and returns the result of Run. It may be called again.
	stop func() error
}

// logBuffer is a log that may be read while it is written.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// start runs a server over an empty store in memory, with the limits of plenty unless the options
// name a file.
func start(t *testing.T, o *Options) *world {
	t.Helper()
	b, err := memory.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	return startOver(t, b, o)
}

func startOver(t *testing.T, b driver.Store, o *Options) *world {
	t.Helper()
	w := &world{dir: t.TempDir(), log: &logBuffer{}}
	var options Options
	if o != nil {
		options = *o
	}
	if options.LimitsFile == "" {
		options.LimitsFile = write(t, w.dir, "limits.yaml", plenty)
	}
	if options.Watch == 0 {
		options.Watch = -1 // tests call Reload
	}
	if options.Bounds.ShutdownDelay == 0 {
		options.Bounds.ShutdownDelay = time.Millisecond
	}
	if options.Logger == nil {
		options.Logger = newTestLogger(w.log)
	}
	s, err := New(t.Context(), b, &options)
	if err != nil {
		t.Fatal(err)
	}
	w.server, w.url = s, s.URL()
	w.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: patience}
	w.run(t)
	return w
}

// Addr returns the address that the server listens on.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// ProbeAddr returns the address of the listener for probes, or nil.
func (s *Server) ProbeAddr() net.Addr {
	if s.probes == nil {
		return nil
	}
	return s.probes.Addr()
}

// Connections returns how many connections are open.
func (s *Server) Connections() int { return int(s.listener.open.Load()) }

// run begins serving; the test's end stops it.
func (w *world) run(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.server.Run(ctx) }()
	var once sync.Once
	var result error
	w.stop = func() error {
		once.Do(func() {
			cancel()
			select {
			case result = <-ended:
			case <-time.After(patience):
				t.Errorf("the server did not end within %v", patience)
			}
		})
		return result
	}
	t.Cleanup(func() {
		w.client.CloseIdleConnections()
		if err := w.stop(); err != nil {
			t.Errorf("run: %v", err)
		}
	})
}

// closeQuietly closes c and ignores the error.
func closeQuietly(c io.Closer) { _ = c.Close() }

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	late := time.After(patience)
	for !is() {
		select {
		case <-ticker.C:
		case <-late:
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// write writes a private file and returns its path.
func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// answer is an answer of the server.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// ask sends a request and reads the whole answer. A body makes it a POST of JSON.
func (w *world) ask(t *testing.T, path, body, bearer string) *answer {
	t.Helper()
	got, err := ask(t.Context(), w.client, w.url+path, body, bearer)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func ask(ctx context.Context, client *http.Client, url, body, bearer string) (*answer, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if bearer != "" {
		r.Header.Set("Authorization", "Bearer "+bearer)
	}
	got, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer closeQuietly(got.Body)
	data, err := io.ReadAll(got.Body)
	if err != nil {
		return nil, err
	}
	return &answer{got.StatusCode, got.Header, data}, nil
}

// lease is the part of a reservation's answer that tests look at.
type lease struct {
	Allowed bool         `json:"allowed"`
	LeaseID weir.LeaseID `json:"lease_id"`
	Limits  []struct {
		Limit     string `json:"limit"`
		Capacity  int64  `json:"capacity"`
		Available int64  `json:"available"`
	} `json:"limits"`
}

func (a *answer) lease(t *testing.T) *lease {
	t.Helper()
	var l lease
	if err := json.Unmarshal(a.body, &l); err != nil {
		t.Fatalf("%s: %v", a.body, err)
	}
	return &l
}

const askRPM = `{"entity":"acme","resource":"llm","costs":{"rpm":1}}`

// capacity returns the capacity of the only limit, as the server reports it.
func (w *world) capacity(t *testing.T, bearer string) int64 {
	t.Helper()
	got := w.ask(t, "/v1/status?entity=acme&resource=llm", "", bearer)
	limits := got.lease(t).Limits
	if got.status != http.StatusOK || len(limits) != 1 {
		t.Fatalf("status: got %d %s", got.status, got.body)
	}
	return limits[0].Capacity
}

func newTestLogger(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// brokenStore does not answer reservations.
type brokenStore struct{ *memory.Store }

func (brokenStore) Reserve(context.Context, time.Time, *driver.Plan, *driver.Outcome) error {
	return errors.New("no route to the store")
}

// stuckStore does not answer until the caller has left, or fails at once.
type stuckStore struct {
	*memory.Store

	fails atomic.Bool
}

// Traits are those of a store outside the process, whose calls end with their context.
func (s *stuckStore) Traits() driver.Traits {
	t := s.Store.Traits()
	t.Local = false
	return t
}

func (s *stuckStore) Reserve(
	ctx context.Context, _ time.Time, _ *driver.Plan, _ *driver.Outcome,
) error {
	if !s.fails.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	return errors.New("no route to the store")
}
