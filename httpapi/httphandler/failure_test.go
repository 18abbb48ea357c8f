package httphandler_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi/httphandler"
	"github.com/weir-limiter/weir/internal/server/statuspage"
)

// logLines is a log that several requests may write.
type logLines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// failingHandler returns a handler whose service answers every verb with an error.
func failingHandler(t *testing.T, err error) (h *httphandler.Handler, log *logLines) {
	t.Helper()
	log = &logLines{}
	logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	service := serviceFunc(func(context.Context) error { return err })
	return httphandler.New(service, &httphandler.Options{Logger: logger}), log
}

// serviceRequests returns valid requests of every verb.
func serviceRequests() []sent {
	const lease = `{"lease_id":"01ARZ3NDEKTSV4RRFFQ69G5FAV"`
	return []sent{
		{method: "POST", target: "/v1/reserve", body: `{"entity":"a","resource":"b"}`},
		{method: "POST", target: "/v1/adjust", body: lease + `,"seq":1,"totals":[]}`},
		{method: "POST", target: "/v1/complete", body: lease + `}`},
		{method: "POST", target: "/v1/cancel", body: lease + `}`},
		{method: "POST", target: "/v1/extend", body: lease + `}`},
		{method: "GET", target: "/v1/status?entity=a"},
		{method: "GET", target: "/v1/explain?entity=a&resource=b"},
	}
}

func TestServiceErrors(t *testing.T) {
	t.Parallel()
	fault := func(code weir.Code) *weir.Error {
		return &weir.Error{Code: code, Field: "costs.tpm", Value: "7", Reason: "is so"}
	}
	hidden := fmt.Errorf("dial tcp 10.1.2.3:8000: refused")
	caused := &weir.Error{Code: weir.Unavailable, Field: "lease_id", Value: "x", Reason: "no answer",
		Err: hidden}
	for _, c := range []struct {
		name   string
		err    error
		status int
		kind   string
		code   any
		field  any
		logged string
	}{
		{"invalid", fault(weir.Invalid), 400, "urn:weir:problem:invalid", "invalid", "costs.tpm", ""},
		{"unsupported", fault(weir.Unsupported), 400, "urn:weir:problem:unsupported", "unsupported",
			"costs.tpm", ""},
		{"permission", fault(weir.PermissionDenied), 403, "urn:weir:problem:permission-denied",
			"permission denied", "costs.tpm", ""},
		{"unknown limit", fault(weir.UnknownLimit), 404, "urn:weir:problem:unknown-limit",
			"unknown limit", "costs.tpm", ""},
		{"no limits", fault(weir.NoLimits), 404, "urn:weir:problem:no-limits-configured",
			"no limits configured", "costs.tpm", ""},
		{"not found", fault(weir.NotFound), 404, "urn:weir:problem:not-found", "not found", "costs.tpm", ""},
		{"unknown lease", fault(weir.UnknownLease), 404, "urn:weir:problem:unknown-lease",
			"unknown lease", "costs.tpm", ""},
		{"conflict", fault(weir.Conflict), 409, "urn:weir:problem:conflict", "conflict", "costs.tpm", ""},
		{"ended", fault(weir.Ended), 409, "urn:weir:problem:ended", "ended", "costs.tpm", ""},
		{"never", fault(weir.NeverSatisfiable), 422, "urn:weir:problem:never-satisfiable",
			"never satisfiable", "costs.tpm", ""},
		{"unavailable", fault(weir.Unavailable), 503, "urn:weir:problem:unavailable", "unavailable",
			"costs.tpm", ""},
		{"superseded", fault(weir.Superseded), 503, "urn:weir:problem:superseded", "superseded",
			"costs.tpm", ""},
		{"overloaded", fault(weir.Overloaded), 503, "urn:weir:problem:overloaded", "overloaded",
			"costs.tpm", ""},
		{"with a cause", caused, 503, "urn:weir:problem:unavailable", "unavailable", "lease_id",
			"10.1.2.3"},
		{"wrapped", fmt.Errorf("weir: x: %w", fault(weir.Ended)), 409, "urn:weir:problem:ended", "ended",
			"costs.tpm", ""},
		{"joined", errors.Join(fault(weir.Ended), fault(weir.Invalid)), 409, "urn:weir:problem:ended",
			"ended", "costs.tpm", ""},
		{"foreign", hidden, 503, "urn:weir:problem:unavailable", "unavailable", nil, "10.1.2.3"},
		{"gone", context.Canceled, 503, "urn:weir:problem:unavailable", "unavailable", nil, "canceled"},
		{"late", context.DeadlineExceeded, 503, "urn:weir:problem:unavailable", "unavailable", nil, "deadline"},
		{"unheard of", fault("odd code"), 503, "urn:weir:problem:odd-code", "odd code", "costs.tpm", ""},
	} {
		h, log := failingHandler(t, c.err)
		for _, s := range serviceRequests() {
			a := askHandler(t, h, s)
			a.want(t, c.status, "type", c.kind, "code", c.code, "field", c.field, "allowed", nil)
			if strings.Contains(a.text, "10.1.2.3") || strings.Contains(a.text, "canceled") {
				t.Errorf("%s: the cause leaks: %s", c.name, a.text)
			}
			if got := len(listOf(a.body["errors"])); got != 0 && c.name != "joined" {
				t.Errorf("%s: %d errors listed", c.name, got)
			}
			if a.header.Get("Retry-After") != "" && !errors.Is(c.err, weir.Overloaded) {
				t.Errorf("%s: Retry-After in what is no denial", c.name)
			}
		}
		if got := strings.Count(log.String(), "\n"); c.logged == "" && got != 0 ||
			c.logged != "" && (got != len(serviceRequests()) || !strings.Contains(log.String(), c.logged)) {
			t.Errorf("%s: log has %d lines: %s", c.name, got, log)
		}
	}
}

// TestCausesAreLogged checks that a cause is logged once, whatever the code, and never shown to the
// caller. Only the operator can act on it, for example if the store refuses the server's
// credentials.
func TestCausesAreLogged(t *testing.T) {
	t.Parallel()
	caused := func(code weir.Code) error {
		return &weir.Error{Code: code, Reason: "the store refused", Err: errors.New("AccessDeniedException")}
	}
	for _, c := range []struct {
		err    error
		status int
	}{
		{caused(weir.PermissionDenied), 403},
		{caused(weir.Unsupported), 400},
		{caused(weir.NotFound), 404},
		{errors.Join(caused(weir.Conflict), caused(weir.Invalid)), 409},
		{fmt.Errorf("weir: do: %w", caused(weir.Unavailable)), 503},
	} {
		h, log := failingHandler(t, c.err)
		requests := serviceRequests()
		requests = append(requests, sent{method: "POST", target: "/v1/reserve",
			body: `{"requirements":[{"key":"k1","amount":1}]}`})
		for _, s := range requests {
			if a := askHandler(t, h, s); a.status != c.status || strings.Contains(a.text, "AccessDenied") {
				t.Errorf("%v: answered %d %s, want %d", c.err, a.status, a.text, c.status)
			}
		}
		if got := strings.Count(log.String(), "level=WARN"); got != len(requests) ||
			strings.Count(log.String(), "AccessDeniedException") != got {
			t.Errorf("%v: %d warnings for %d requests: %s", c.err, got, len(requests), log)
		}
	}
}

func listOf(v any) []any {
	list, _ := v.([]any)
	return list
}

// TestContended checks the answer to a contended denial, which has no exceeded limit.
func TestContended(t *testing.T) {
	t.Parallel()
	h, _ := failingHandler(t,
		fmt.Errorf("weir: do: %w", &weir.DeniedError{Contended: true, AtLeast: true}))
	a := askHandler(t, h, serviceRequests()[0])
	a.want(t, 429, "allowed", false, "contended", true, "retry_after_at_least", true,
		"retry_after_ms", 0,
		"limits", nil, "violated-policies", nil, "lease_id", nil)
	if a.header.Get("Retry-After") != "1" {
		t.Errorf("Retry-After %q, want 1", a.header.Get("Retry-After"))
	}
}

func TestPanic(t *testing.T) {
	t.Parallel()
	log := &logLines{}
	var broken atomic.Bool
	service := serviceFunc(func(context.Context) error {
		if broken.Load() {
			panic("a secret of the service")
		}
		return nil
	})
	h := httphandler.New(service, &httphandler.Options{
		Logger: slog.New(slog.NewTextHandler(log, nil)), MaxConcurrent: 2,
	})
	broken.Store(true)
	for range 5 { // more than MaxConcurrent
		for _, s := range serviceRequests() {
			a := askHandler(t, h, s)
			a.want(t, 503, "type", "urn:weir:problem:unavailable", "code", "unavailable",
				"reason", "the server failed, the outcome is unknown", "allowed", nil)
			if a.header.Get("Retry-After") != "" {
				t.Error("Retry-After where something may have been charged")
			}
			if strings.Contains(a.text, "secret") {
				t.Errorf("the panic leaks: %s", a.text)
			}
		}
	}
	if !strings.Contains(log.String(), "a secret of the service") ||
		!strings.Contains(log.String(), "failure_test.go") {
		t.Errorf("no cause or no stack in the log: %s", log)
	}
	broken.Store(false)
	askHandler(t, h, serviceRequests()[0]).want(t, 200)
}

// TestAbort checks that the handler passes on a panic with http.ErrAbortHandler.
func TestAbort(t *testing.T) {
	t.Parallel()
	service := serviceFunc(func(context.Context) error { panic(http.ErrAbortHandler) })
	h := httphandler.New(service, nil)
	defer func() {
		if err, ok := recover().(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
			t.Errorf("recovered %v", err)
		}
	}()
	h.ServeHTTP(httptest.NewRecorder(),
		httptest.NewRequestWithContext(t.Context(), "GET", "/v1/status?entity=a", nil))
	t.Error("the panic was held")
}

// TestMaxConcurrent checks that a request above the bound is refused, and that a later one is
// served.
func TestMaxConcurrent(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}, 2), make(chan struct{})
	calls := atomic.Int64{}
	service := serviceFunc(func(context.Context) error {
		calls.Add(1)
		entered <- struct{}{}
		<-leave
		return nil
	})
	h := httphandler.New(service, &httphandler.Options{MaxConcurrent: 2})
	var wait sync.WaitGroup
	for range 2 {
		wait.Go(func() { askHandler(t, h, serviceRequests()[0]).want(t, 200) })
		<-entered
	}
	for _, s := range serviceRequests() {
		a := askHandler(t, h, s)
		a.want(t, 503, "type", "urn:weir:problem:overloaded", "title", "Too busy, nothing was reserved",
			"code", "overloaded", "reason", "too many requests at once; nothing was reserved")
		if a.header.Get("Retry-After") != "1" {
			t.Errorf("Retry-After %q", a.header.Get("Retry-After"))
		}
	}
	if calls.Load() != 2 {
		t.Errorf("%d calls reached the service, want 2", calls.Load())
	}
	for _, target := range []string{"/healthz", "/readyz", "/openapi.json"} {
		askHandler(t, h, sent{method: "GET", target: target}).want(t, 200)
	}
	close(leave)
	wait.Wait()
	askHandler(t, h, serviceRequests()[0]).want(t, 200)
}

// TestContext checks that the service gets the context of the request, with the values that a
// middleware added.
func TestContext(t *testing.T) {
	t.Parallel()
	type key struct{}
	var got any
	service := serviceFunc(func(ctx context.Context) error {
		got = ctx.Value(key{})
		return ctx.Err()
	})
	h := httphandler.New(service, nil)
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "here"))
	serve := func() int {
		r := httptest.NewRequestWithContext(ctx, "GET", "/v1/status?entity=a", nil)
		recorder := httptest.NewRecorder()
		h.ServeHTTP(recorder, r)
		return recorder.Code
	}
	if status := serve(); status != 200 || got != "here" {
		t.Errorf("%d with %v", status, got)
	}
	cancel()
	if status := serve(); status != 503 {
		t.Errorf("%d for a caller that has gone, want anything but 200", status)
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	var trouble error
	h := httphandler.New(serviceFunc(func(context.Context) error { return nil }), &httphandler.Options{
		Authenticate: roleTokens, Ready: func(context.Context) error { return trouble },
	})
	ask := func(target string) *answered {
		t.Helper()
		return askHandler(t, h, sent{method: "GET", target: target})
	}
	ask("/readyz").want(t, 200, "status", "ok")
	trouble = errors.New("dial tcp 10.1.2.3: refused")
	a := ask("/readyz")
	a.want(t, 503, "type", "about:blank", "code", "unavailable", "reason", "not ready", "field", nil)
	if strings.Contains(a.text, "10.1.2.3") {
		t.Errorf("the cause leaks: %s", a.text)
	}
	ask("/healthz").want(t, 200, "status", "ok")
	trouble = fmt.Errorf("x: %w",
		&weir.Error{Code: weir.Unavailable, Field: "limits", Reason: "are older than the store's"})
	ask("/readyz").want(t, 503, "field", "limits", "reason", "are older than the store's")
	trouble = fmt.Errorf("x: %w", &weir.Error{Code: weir.Superseded, Reason: "version 3 is in force"})
	ask("/readyz").want(t, 503, "type", "urn:weir:problem:superseded", "code", "superseded",
		"title", "The server's limits are not the ones in force", "reason", "version 3 is in force")
	trouble = &weir.Error{Code: weir.NotFound, Reason: "the namespace is gone"}
	ask("/readyz").want(t, 503, "type", "about:blank", "code", "unavailable")
	if a := ask("/openapi.json"); a.body["openapi"] == nil {
		t.Errorf("no OpenAPI document: %.80s", a.text)
	}
}

func TestStatusPage(t *testing.T) {
	t.Parallel()
	service := serviceFunc(func(context.Context) error { return nil })
	get := func(h http.Handler, target string) (int, string) {
		recorder := httptest.NewRecorder()
		h.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), "GET", target, nil))
		return recorder.Code, recorder.Header().Get("Content-Type")
	}
	with := httphandler.New(service, &httphandler.Options{StatusPage: statuspage.Page(), Authenticate: roleTokens})
	if status, kind := get(with, "/"); status != 200 || !strings.HasPrefix(kind, "text/html") {
		t.Errorf("page: %d %s", status, kind)
	}
	if status, kind := get(with, "/x"); status != 404 || kind != "application/problem+json" {
		t.Errorf("beside the page: %d %s", status, kind)
	}
	without := httphandler.New(service, nil)
	if status, _ := get(without, "/"); status != 404 {
		t.Errorf("page that was not asked for: %d", status)
	}
}
