package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/memory"
)

// configStore is a store whose configuration is replaced only as a whole, and that is ready or not.
type configStore struct {
	driver.Store
	driver.ConfigReader
	written atomic.Int64
	why     atomic.Pointer[error]
}

func newConfigStore(t *testing.T) *configStore {
	t.Helper()
	b, err := memory.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &configStore{Store: b, ConfigReader: b}
}

func (e *configStore) WriteConfig(ctx context.Context, now time.Time, d *weir.Definitions) error {
	e.written.Add(1)
	return e.Store.(driver.ConfigWriter).WriteConfig(ctx, now, d)
}

func (e *configStore) Ready(context.Context) error {
	if why := e.why.Load(); why != nil {
		return *why
	}
	return nil
}

func (w *world) health(t *testing.T, path string) (status int, detail string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := w.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	var body struct{ Detail string }
	if err := json.NewDecoder(answer.Body).Decode(&body); err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, body.Detail
}

// TestReadyAsksTheStore checks that the server is not ready if its store is not, and that the
// process still counts as alive. The answer has the reason only if the error was made for callers.
func TestReadyAsksTheStore(t *testing.T) {
	t.Parallel()
	b := newConfigStore(t)
	w := startOver(t, b, nil)
	stale := error(&weir.Error{Code: weir.Unavailable, Reason: "other limits are in force"})
	other := errors.New("10.0.0.1 is down")
	for _, tc := range []struct {
		why    *error
		status int
		detail string
	}{{nil, 200, ""}, {&stale, 503, "other limits are in force"}, {&other, 503, "not ready"}, {nil, 200, ""}} {
		b.why.Store(tc.why)
		status, detail := w.health(t, "/readyz")
		if status != tc.status || !strings.Contains(detail, tc.detail) || strings.Contains(detail, "10.0.0.1") {
			t.Errorf("got %d %q, want %d %q", status, detail, tc.status, tc.detail)
		}
		if got := w.figures(t, "")["weir_ready"]; (got == 1) != (tc.status == 200) {
			t.Errorf("%d: got weir_ready %v", tc.status, got)
		}
		if status, _ := w.health(t, "/healthz"); status != http.StatusOK {
			t.Errorf("healthz: got %d", status)
		}
	}
}

// TestLimitsOfTheOpenedStore checks that the file with which the store was opened is not put in
// force at the start, but with a reload; another file is put in force at once.
func TestLimitsOfTheOpenedStore(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		opened string
		want   int64
	}{
		"with the file":     {limitsOf(100), 0},
		"with another file": {limitsOf(99), 1},
		"with nothing":      {"", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newConfigStore(t)
			stale := error(&weir.Error{Code: weir.Unavailable, Reason: "other limits are in force"})
			b.why.Store(&stale)
			o := &Options{LimitsFile: write(t, t.TempDir(), "limits.yaml", limitsOf(100))}
			if tc.opened != "" {
				o.LimitsOpened = []byte(tc.opened)
			}
			w := startOver(t, b, o)
			if got := b.written.Load(); got != tc.want {
				t.Errorf("at the start: put in force %d times, want %d", got, tc.want)
			}
			if err := w.server.Reload(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := b.written.Load(); got != tc.want+1 {
				t.Errorf("after a reload: put in force %d times, want %d", got, tc.want+1)
			}
			if err := w.stop(); err != nil {
				t.Fatal(err)
			}
			if text := w.log.String(); !strings.Contains(text, `msg="not ready"`) {
				t.Errorf("the log does not say so: %s", text)
			}
		})
	}
}
