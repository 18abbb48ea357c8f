package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
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

// loadTally counts the outcomes of the callers of a test.
type loadTally struct {
	mu       sync.Mutex
	admitted []weir.LeaseID
	// cutBefore counts requests that were sent whole before the shutdown began, and had no answer;
	// lost counts those of any time.
	cutBefore, lost int
	other           []string
}

// TestShutdownUnderLoad checks that every request that was sent before the shutdown began is
// answered, and that every lease in an answer is in the store after the shutdown.
func TestShutdownUnderLoad(t *testing.T) {
	t.Parallel()
	for _, reuse := range []bool{true, false} {
		t.Run(map[bool]string{true: "kept connections", false: "new connections"}[reuse], func(t *testing.T) {
			t.Parallel()
			shutDownUnderLoad(t, reuse)
		})
	}
}

func shutDownUnderLoad(t *testing.T, reuse bool) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "state")
	store, err := memory.OpenSnapshot(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	// The delay covers the time that a slow machine takes to read what has been sent.
	w := startOver(t, store, &Options{Bounds: Bounds{ShutdownDelay: time.Second}})
	w.client.Transport.(*http.Transport).DisableKeepAlives = !reuse
	const workers = 16
	var tally loadTally
	var began atomic.Bool // the shutdown
	enough := make(chan struct{})
	var answered atomic.Int64
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for tally.reserveOnce(w, &began) {
				if answered.Add(1) == 500 {
					close(enough)
				}
			}
		})
	}
	select {
	case <-enough:
	case <-time.After(patience):
		t.Fatalf("got %d answers within %v", answered.Load(), patience)
	}
	began.Store(true)
	if err := w.stop(); err != nil {
		t.Errorf("run: %v", err)
	}
	all.Wait()
	t.Logf("%d answered 200, %d without an answer, %d of them sent before the shutdown; other: %v",
		len(tally.admitted), tally.lost, tally.cutBefore, tally.other)
	if tally.cutBefore > 0 || len(tally.other) > 0 || len(tally.admitted) < 500 {
		t.Errorf("got %d requests cut and others %v, want none", tally.cutBefore, tally.other)
	}
	checkLeases(t, file, tally.admitted)
}

// reserveOnce sends one request and counts its outcome. It returns false when the server is gone.
func (l *loadTally) reserveOnce(w *world, began *atomic.Bool) bool {
	var early bool // the request was sent whole before the shutdown began
	ctx := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{
		WroteRequest: func(i httptrace.WroteRequestInfo) { early = i.Err == nil && !began.Load() },
	})
	got, err := ask(ctx, w.client, w.url+"/v1/reserve", askRPM, "")
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.lost++
		if early {
			l.cutBefore++
		}
		return false
	}
	var body lease
	if err := json.Unmarshal(got.body, &body); got.status != http.StatusOK || err != nil || !body.Allowed {
		l.other = append(l.other, string(got.body))
		return false
	}
	l.admitted = append(l.admitted, body.LeaseID)
	return true
}

// checkLeases opens the snapshot that the server left, and checks that every lease is live in it.
func checkLeases(t *testing.T, file string, want []weir.LeaseID) {
	t.Helper()
	store, err := memory.OpenSnapshot(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer closeQuietly(store)
	missing := 0
	for _, id := range want {
		record, err := store.RecoverLease(t.Context(), time.Now(), id)
		if err != nil || record == nil || record.State != driver.LeaseLive {
			missing++
		}
	}
	t.Logf("%d of %d leases are in the store", len(want)-missing, len(want))
	if missing > 0 {
		t.Errorf("%d leases were answered for and are not in the store", missing)
	}
	unknown, err := store.RecoverLease(t.Context(), time.Now(), weir.NewLeaseID(time.Now()))
	if err != nil || unknown != nil {
		t.Errorf("a lease that was never reserved: got %v and error %v", unknown, err)
	}
}

// slowStore is a store whose reservations wait until the test releases them.
type slowStore struct {
	*memory.Store
	entered chan struct{}
	release chan struct{}
}

func newSlowStore(t *testing.T) *slowStore {
	t.Helper()
	store, err := memory.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &slowStore{store, make(chan struct{}, 16), make(chan struct{})}
}

func (s *slowStore) Reserve(
	ctx context.Context, now time.Time, p *driver.Plan, out *driver.Outcome,
) error {
	s.entered <- struct{}{}
	<-s.release
	return s.Store.Reserve(ctx, now, p, out)
}

// endsUnderway sends a reservation, and begins the shutdown while the store works on it. It returns
// channels for the answer and for the result of the server.
func (w *world) endsUnderway(t *testing.T, store *slowStore) (<-chan *answer, <-chan error) {
	t.Helper()
	answers := make(chan *answer, 1)
	go func() {
		got, err := ask(context.Background(), w.client, w.url+"/v1/reserve", askRPM, "")
		if err != nil {
			got = &answer{body: []byte(err.Error())}
		}
		answers <- got
	}()
	<-store.entered
	stopped := make(chan error, 1)
	go func() { stopped <- w.stop() }()
	eventually(t, "the server is shutting down", w.server.ending.Load)
	return answers, stopped
}

// TestShutdownWaits checks that a request in progress is answered, that /readyz meanwhile reports
// the shutdown, and that the answer is the last one on its connection.
func TestShutdownWaits(t *testing.T) {
	t.Parallel()
	store := newSlowStore(t)
	// The delay gives a slow machine time to ask /readyz.
	w := startOver(t, store, &Options{Bounds: Bounds{ShutdownDelay: 2 * time.Second}})
	if got := w.ask(t, "/readyz", "", ""); got.status != http.StatusOK || got.header.Get("Connection") != "" {
		t.Errorf("before: got %d and Connection %q", got.status, got.header.Get("Connection"))
	}
	answers, stopped := w.endsUnderway(t, store)
	got := w.ask(t, "/readyz", "", "")
	if got.status != http.StatusServiceUnavailable || !strings.Contains(string(got.body), "shutting down") {
		t.Errorf("while it ends: got %d %s", got.status, got.body)
	}
	close(store.release)
	if got := <-answers; got.status != http.StatusOK || !got.lease(t).Allowed {
		t.Errorf("the request under way: got %d %s", got.status, got.body)
	}
	if err := <-stopped; err != nil {
		t.Errorf("run: %v", err)
	}
	if said := w.log.String(); strings.Contains(said, "level=WARN") || !strings.Contains(said, "route=/readyz status=503") {
		t.Errorf("want the answer of /readyz, and no warning of it: %s", said)
	}
	if _, err := ask(t.Context(), w.client, w.url+"/healthz", "", ""); err == nil {
		t.Error("the server still answers")
	}
}

// TestShutdownCutsOffRequests checks that requests that do not end in time are cut off, and counted
// in the log.
func TestShutdownCutsOffRequests(t *testing.T) {
	t.Parallel()
	store := newSlowStore(t)
	w := startOver(t, store, &Options{Bounds: Bounds{ShutdownTimeout: 50 * time.Millisecond}})
	failed := make(chan error, 1)
	go func() {
		_, err := ask(context.Background(), w.client, w.url+"/v1/reserve", askRPM, "")
		failed <- err
	}()
	<-store.entered
	if err := w.stop(); err != nil {
		t.Errorf("run: %v", err)
	}
	if err := <-failed; err == nil {
		t.Error("the request that took too long was answered")
	}
	close(store.release)
	if said := w.log.String(); !strings.Contains(said, "cut off") || !strings.Contains(said, "requests=1 connections=1") {
		t.Errorf("the log does not say that one request was cut: %s", said)
	}
}

// failingStore fails to close.
type failingStore struct{ *memory.Store }

func (failingStore) Close() error { return errors.New("the disk is full") }

// TestShutdownFails checks that Run returns the error of a store that cannot be closed.
func TestShutdownFails(t *testing.T) {
	t.Parallel()
	store, err := memory.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	limits := write(t, t.TempDir(), "limits.yaml", plenty)
	s, err := New(t.Context(), failingStore{store}, &Options{
		LimitsFile: limits, Bounds: Bounds{ShutdownDelay: time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Run(ended); err == nil || !strings.Contains(err.Error(), "the disk is full") {
		t.Errorf("got %v, want that the disk is full", err)
	}
}

// TestShutdownIncompleteRequests checks that connections without a complete request do not delay
// the shutdown, although net/http would wait five seconds for them, and that a connection that is
// accepted too late is closed as well.
func TestShutdownIncompleteRequests(t *testing.T) {
	t.Parallel()
	w := start(t, &Options{Bounds: Bounds{ShutdownTimeout: 3 * time.Second}})
	silent, half := w.dial(t), w.dial(t)
	if _, err := io.WriteString(half, "GET /healthz HTTP/1.1\r\nHost: local"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "both are accepted", func() bool { return w.server.Connections() == 2 })
	if err := w.stop(); err != nil {
		t.Errorf("run: %v", err)
	}
	for what, conn := range map[string]net.Conn{"silent": silent, "half a request": half} {
		if got, err := io.ReadAll(conn); err == nil && len(got) > 0 {
			t.Errorf("%s: got %q", what, got)
		}
	}
	if said := w.log.String(); strings.Contains(said, "cut off") {
		t.Errorf("they were waited for: %s", said)
	}
	ours, theirs := net.Pipe()
	defer closeQuietly(theirs)
	late := newBoundedListener(onlyListener{ours}, 1)
	late.closeUnused()
	if conn, err := late.Accept(); err == nil || conn != nil || late.open.Load() != 0 || late.taken != 0 {
		t.Errorf("late: got %v and error %v, with %d open", conn, err, late.open.Load())
	}
	if _, err := theirs.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("late: got %v, want that it is closed", err)
	}
}

// onlyListener has one connection.
type onlyListener struct{ conn net.Conn }

func (l onlyListener) Accept() (net.Conn, error) { return l.conn, nil }
func (l onlyListener) Close() error              { return nil }
func (l onlyListener) Addr() net.Addr            { return l.conn.LocalAddr() }

// TestShutdownStuckFiles checks that the store is closed although the file system does not answer.
func TestShutdownStuckFiles(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "state")
	store, err := memory.OpenSnapshot(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := startOver(t, store, &Options{Watch: LeastWatch})
	asked, release := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(release) })
	w.server.reloading.Lock()
	of := w.server.sources[0]
	of.tried = fileDigest{} // so that it is loaded
	of.inForce = fileDigest{}
	of.load = func(context.Context, []fileContent) ([]slog.Attr, error) {
		close(asked)
		<-release
		return nil, nil
	}
	w.server.reloading.Unlock()
	select {
	case <-asked:
	case <-time.After(patience):
		t.Fatalf("the file was not read again within %v", patience)
	}
	got := w.ask(t, "/v1/reserve", askRPM, "").lease(t)
	if err := w.stop(); err != nil {
		t.Errorf("run: %v", err)
	}
	if said := w.log.String(); !strings.Contains(said, "the files are still being read") {
		t.Errorf("the log does not say so: %s", said)
	}
	checkLeases(t, file, []weir.LeaseID{got.LeaseID})
}
