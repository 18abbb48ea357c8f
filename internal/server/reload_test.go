package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptrace"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-limiter/weir/memory"
)

func limitsOf(rpm int) string {
	return fmt.Sprintf("version: 1\nsystem:\n  limits:\n    rpm: {capacity: %d}\n", rpm)
}

// TestReloadLimits checks that a valid file is in force after the reload, and that an invalid or
// missing one changes nothing.
func TestReloadLimits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := write(t, dir, "limits.yaml", limitsOf(100))
	w := start(t, &Options{LimitsFile: file})
	for _, c := range []struct {
		name, text string
		want       int64
		err        string // a pattern; empty if the file is valid
	}{
		{"a change", limitsOf(200), 200, ""},
		{"the same again", limitsOf(200), 200, ""},
		{"cut short", limitsOf(300)[:40], 200, `limits\.yaml:4:\d+: `},
		{"empty", "", 200, `limits\.yaml:1:1: `},
		{"a mistake", limitsOf(0), 200, `limits\.yaml:4:21: .*rpm\.capacity "0"`},
		{
			"what the limiter does not allow",
			limitsOf(300) + "entities:\n  a: {}\n  b: {parent: a, cascade: true}\n  c: {parent: b, cascade: true}\n",
			200, `limits\.yaml:8:\d+: .*entities\.c\.cascade`,
		},
		{"gone", "-", 200, `^limits ".*limits\.yaml": no such file`},
		{"good again", limitsOf(50), 50, ""},
	} {
		if c.text == "-" {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		} else {
			write(t, dir, "limits.yaml", c.text)
		}
		err := w.server.Reload(t.Context())
		switch {
		case c.err == "" && err != nil:
			t.Errorf("%s: got %v", c.name, err)
		case c.err != "" && (err == nil || !regexp.MustCompile(c.err).MatchString(err.Error())):
			t.Errorf("%s: got %v, want a match of %s", c.name, err, c.err)
		case c.err != "" && !strings.Contains(w.log.String(), "reload refused"):
			t.Errorf("%s: the log does not say so: %s", c.name, w.log)
		}
		if got := w.capacity(t, ""); got != c.want {
			t.Errorf("%s: got capacity %d, want %d", c.name, got, c.want)
		}
		if got := w.figures(t, "")[`weir_reload_last_successful{what="limits"}`]; (got == 1) != (c.err == "") {
			t.Errorf("%s: got last successful %v", c.name, got)
		}
	}
	figures := w.figures(t, "")
	for series, want := range map[string]float64{
		`weir_reloads_total{outcome="ok",what="limits"}`:      3,
		`weir_reloads_total{outcome="refused",what="limits"}`: 5,
	} {
		if figures[series] != want {
			t.Errorf("%s: got %v, want %v", series, figures[series], want)
		}
	}
	if at := figures[`weir_reload_last_success_timestamp_seconds{what="limits"}`]; at == 0 {
		t.Error("the metrics do not say when the last reload was")
	}
}

// TestWatch checks that a change takes effect once two looks have found the same contents, and that
// an invalid file is reported once. The looks use the clock of the test's bubble.
func TestWatch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := write(t, dir, "limits.yaml", limitsOf(100))
	synctest.Test(t, func(t *testing.T) {
		store, err := memory.Open(nil)
		if err != nil {
			t.Fatal(err)
		}
		s := &Server{options: Options{LimitsFile: file, Watch: time.Second}, metrics: newMetrics("")}
		log := &logBuffer{}
		s.options.Logger = newTestLogger(log)
		s.options, err = s.options.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		if err := s.openLimiter(store); err != nil {
			t.Fatal(err)
		}
		if err := s.openSources(t.Context(), nil, nil); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go s.watch(ctx)
		time.Sleep(500 * time.Millisecond) // between two looks from now on
		look := func(what string, want int64) {
			t.Helper()
			time.Sleep(time.Second)
			synctest.Wait()
			got, err := s.limiter.Status(t.Context(), "acme", "llm")
			if err != nil || len(got) != 1 || got[0].Capacity != want {
				t.Errorf("%s: got %v and error %v, want capacity %d", what, got, err, want)
			}
		}
		look("nothing changed", 100)
		write(t, dir, "limits.yaml", limitsOf(200))
		look("seen once", 100)
		look("seen twice", 200)
		write(t, dir, "limits.yaml", limitsOf(300))
		look("seen once", 200)
		write(t, dir, "limits.yaml", limitsOf(400))
		look("still being written", 200)
		look("done", 400)
		write(t, dir, "limits.yaml", "version: 2\n")
		look("bad, once", 400)
		look("bad, twice", 400)
		look("bad, still", 400)
		if n := strings.Count(log.String(), "reload refused"); n != 1 {
			t.Errorf("got %d lines about the bad file, want 1: %s", n, log)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		look("gone, once", 400)
		look("gone, twice", 400)
		write(t, dir, "limits.yaml", limitsOf(500))
		look("back, once", 400)
		look("back, twice", 500)
		if n := strings.Count(log.String(), "reload refused"); n != 2 {
			t.Errorf("got %d lines about bad files, want 2: %s", n, log)
		}
	})
}

// TestTokenRemoved checks that a bearer token that was removed from the file is refused with the
// next request, on open connections too, and that an invalid file changes nothing.
func TestTokenRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := write(t, dir, "tokens.yaml", threeTokens())
	w := start(t, &Options{TokensFile: file})
	var reused atomic.Bool
	onOneConnection := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		GotConn: func(i httptrace.GotConnInfo) { reused.Store(i.Reused) },
	})
	reserve := func(bearer string) int {
		t.Helper()
		got, err := ask(onOneConnection, w.client, w.url+"/v1/reserve", askRPM, bearer)
		if err != nil {
			t.Fatal(err)
		}
		return got.status
	}
	for bearer, want := range map[string]int{
		adminToken: http.StatusOK, callToken: http.StatusOK, readToken: http.StatusForbidden,
		"": http.StatusUnauthorized, adminToken + "x": http.StatusUnauthorized,
	} {
		if got := reserve(bearer); got != want {
			t.Errorf("before, %q: got %d, want %d", bearer, got, want)
		}
	}
	write(t, dir, "tokens.yaml", tokensFile("{name: checkout, role: king, token: "+callToken+"}"))
	if err := w.server.Reload(t.Context()); err == nil {
		t.Error("a file with a mistake was taken")
	}
	if got := reserve(callToken); got != http.StatusOK {
		t.Errorf("after a bad file: got %d, want 200", got)
	}
	write(t, dir, "tokens.yaml", tokensFile("{name: ops, role: admin, token: "+adminToken+"}"))
	if err := w.server.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	for bearer, want := range map[string]int{
		adminToken: http.StatusOK, callToken: http.StatusUnauthorized, readToken: http.StatusUnauthorized,
	} {
		if got := reserve(bearer); got != want || !reused.Load() {
			t.Errorf("after, %q: got %d on an open connection %t, want %d on one", bearer, got, reused.Load(), want)
		}
	}
	if said := w.log.String(); strings.Contains(said, callToken) || strings.Contains(said, adminToken) {
		t.Errorf("the log has a bearer token: %s", said)
	}
}

// TestReloadUnderLoad checks that, while the limits alternate between two definitions, every answer
// is by exactly one of them and no request fails.
func TestReloadUnderLoad(t *testing.T) {
	t.Parallel()
	const flips, workers = 50, 8
	definition := func(n int) string {
		return fmt.Sprintf("version: 1\nsystem:\n  limits:\n    rpm: {capacity: %d}\n    tpm: {capacity: %d}\n", n, 2*n)
	}
	dir := t.TempDir()
	file := write(t, dir, "limits.yaml", definition(1000000))
	w := start(t, &Options{LimitsFile: file})
	var mu sync.Mutex
	seen := map[int64]int{}
	var wrong []string
	done := make(chan struct{})
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				got, err := ask(t.Context(), w.client, w.url+"/v1/reserve",
					`{"entity":"acme","resource":"llm","costs":{"rpm":1,"tpm":1}}`, "")
				capacity := int64(-1)
				if err == nil && got.status == http.StatusOK {
					limits := got.lease(t).Limits
					if len(limits) == 2 && 2*limits[0].Capacity == limits[1].Capacity {
						capacity = limits[0].Capacity
					}
				}
				mu.Lock()
				seen[capacity]++
				if capacity != 1000000 && capacity != 2000000 {
					wrong = append(wrong, fmt.Sprintf("%v %v", got, err))
				}
				mu.Unlock()
			}
		})
	}
	for i := range flips {
		next := write(t, dir, "next.yaml", definition(1000000*(1+(i+1)%2)))
		if err := os.Rename(next, file); err != nil {
			t.Fatal(err)
		}
		if err := w.server.Reload(t.Context()); err != nil {
			t.Errorf("flip %d: %v", i, err)
		}
		got := w.ask(t, "/v1/reserve", `{"entity":"other","resource":"llm","costs":{"rpm":1}}`, "")
		if want := int64(1000000 * (1 + (i+1)%2)); got.lease(t).Limits[0].Capacity != want {
			t.Errorf("flip %d: got %s, want capacity %d at once", i, got.body, want)
		}
	}
	close(done)
	all.Wait()
	t.Logf("%d flips; answers by the definition that they show: %v", flips, seen)
	if len(wrong) > 0 || seen[1000000] == 0 || seen[2000000] == 0 {
		t.Errorf("got %d answers that are of neither definition, such as %v", len(wrong), wrong[:min(3, len(wrong))])
	}
}

// setRPM sets a limit as an administrator, and returns the answer.
func (w *world) setRPM(t *testing.T, capacity int) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, w.url+"/v1/admin/system/limits",
		strings.NewReader(fmt.Sprintf(`{"limits":{"rpm":{"capacity":%d}}}`, capacity)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	got, err := w.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(got.Body)
	_ = got.Body.Close() // it has been read
	if err != nil || got.StatusCode != http.StatusOK {
		t.Fatalf("got %s %s and error %v", got.Status, body, err)
	}
	return string(body)
}

// TestAdminWrites checks that a change by an administrator takes effect at once, that the answer
// says how long it holds, and that it stays until the contents of the limits file change. A file
// that cannot be read for a while, is refused, is touched, gets another mode or is read again on a
// signal does not end it.
func TestAdminWrites(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := write(t, dir, "limits.yaml", limitsOf(100))
	w := start(t, &Options{LimitsFile: file})
	const note = "applies until the limits file changes or the server restarts"
	if got := w.setRPM(t, 7); !strings.Contains(got, note) {
		t.Errorf("got %s, want the note %q", got, note)
	}
	for _, c := range []struct {
		what   string
		change func() error
		want   int64
		fine   bool
	}{
		{"nothing", func() error { return nil }, 7, true},
		{"written again", func() error { return os.WriteFile(file, []byte(limitsOf(100)), 0o600) }, 7, true},
		{"another mode", func() error { return os.Chmod(file, 0o400) }, 7, true},
		{"gone", func() error { return os.Rename(file, file+".old") }, 7, false},
		{"back", func() error { return os.Rename(file+".old", file) }, 7, true},
		{"a mistake", func() error { return replace(file, limitsOf(0)) }, 7, false},
		{"mended", func() error { return replace(file, limitsOf(100)) }, 7, true},
		{"other contents", func() error { return replace(file, limitsOf(200)) }, 200, true},
		{"the first ones again", func() error { return replace(file, limitsOf(100)) }, 100, true},
	} {
		if err := c.change(); err != nil {
			t.Fatal(err)
		}
		if err := w.server.Reload(t.Context()); c.fine != (err == nil) {
			t.Errorf("%s: got %v, want accepted %t", c.what, err, c.fine)
		}
		w.server.checkFiles(t.Context())
		w.server.checkFiles(t.Context())
		if got := w.capacity(t, ""); got != c.want {
			t.Errorf("%s: got capacity %d, want %d", c.what, got, c.want)
		}
	}
	figures := w.figures(t, "")
	if got := figures[`weir_reloads_total{outcome="refused",what="limits"}`]; got != 2 {
		t.Errorf("got %v refused, want the file that was gone and the mistake", got)
	}
	if said := w.log.String(); !strings.Contains(said, "nothing has changed") ||
		strings.Count(said, "limits are in force") != 3 {
		t.Errorf("want three times that limits are in force, and that nothing has changed: %s", said)
	}
}

// replace replaces a file in one step.
func replace(file, text string) error {
	if err := os.WriteFile(file+".next", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(file+".next", file)
}

// TestReloadAfterModeChange checks that a new mode is a change of the file of bearer tokens, but
// not of the limits file.
func TestReloadAfterModeChange(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("files have no modes there")
	}
	dir := t.TempDir()
	limits := write(t, dir, "limits.yaml", limitsOf(100))
	bearers := write(t, dir, "tokens.yaml", threeTokens())
	w := start(t, &Options{LimitsFile: limits, TokensFile: bearers})
	for _, file := range []string{limits, bearers} {
		if err := os.Chmod(file, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		w.server.checkFiles(t.Context())
	}
	figures := w.figures(t, adminToken)
	for series, want := range map[string]float64{
		`weir_reloads_total{outcome="ok",what="limits"}`:      0,
		`weir_reloads_total{outcome="refused",what="limits"}`: 0,
		`weir_reloads_total{outcome="refused",what="tokens"}`: 1,
	} {
		if figures[series] != want {
			t.Errorf("%s: got %v, want %v", series, figures[series], want)
		}
	}
}

// TestFileChangesDuringReload checks that a file that changes while it is loaded, and back
// afterwards, is in force with its last contents.
func TestFileChangesDuringReload(t *testing.T) {
	t.Parallel()
	file := write(t, t.TempDir(), "limits.yaml", limitsOf(100))
	w := start(t, &Options{LimitsFile: file})
	of := w.server.sources[0]
	load := of.load
	of.load = func(ctx context.Context, read []fileContent) ([]slog.Attr, error) {
		err := replace(file, limitsOf(22))
		changes, failed := load(ctx, read)
		return changes, errors.Join(err, failed, replace(file, limitsOf(11)))
	}
	if err := replace(file, limitsOf(11)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		w.server.checkFiles(t.Context())
	}
	of.load = load
	if got := w.capacity(t, ""); got != 11 {
		t.Errorf("other contents while it was loaded: got capacity %d, want 11 as in the file", got)
	}
	if err := replace(file, limitsOf(22)); err != nil {
		t.Fatal(err)
	}
	if err := w.server.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := replace(file, limitsOf(11)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		w.server.checkFiles(t.Context())
	}
	if got := w.capacity(t, ""); got != 11 {
		t.Errorf("other contents for a moment: got capacity %d, want 11 as in the file", got)
	}
}

// TestNote checks the note for each origin of the configuration, which decides how long a write
// holds.
func TestNote(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		volatile bool
		file     string
		want     string
	}{
		{true, "limits.yaml", "applies until the limits file changes or the server restarts"},
		{true, "", "applies until the next restart"},
		{false, "", ""},
	} {
		s := &Server{options: Options{LimitsFile: c.file}, volatile: c.volatile}
		if got := s.adminNote(); got != c.want {
			t.Errorf("%+v: got %q", c, got)
		}
		s.limits = &memory.SnapshotStore{} // keeps what no limits file gives
		if got := s.adminNote(); c.file == "" && got != "" || c.file != "" && got != c.want {
			t.Errorf("%+v, with a snapshot file: got %q", c, got)
		}
	}
}
