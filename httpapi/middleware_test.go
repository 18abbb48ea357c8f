package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/httpapi/httphandler"
)

func askFour(*http.Request) (*weir.Request, error) { return askFourUnits(), nil }

// through sends a request through the middleware to a handler. The result panicked is the recovered
// value of a panic.
func through(
	a *countingLimiter, o *httpapi.MiddlewareOptions, next http.HandlerFunc,
) (w *httptest.ResponseRecorder, panicked any) {
	w = httptest.NewRecorder()
	defer func() { panicked = recover() }()
	httpapi.Middleware(a, askFour, o)(next).ServeHTTP(w, chat(a.t, ""))
	return w, nil
}

// chat returns a request to the handler behind the middleware.
func chat(t *testing.T, body string) *http.Request {
	t.Helper()
	return httptest.NewRequestWithContext(
		t.Context(),
		http.MethodPost,
		"/chat",
		strings.NewReader(body),
	)
}

// middlewareCase is what a handler does, and what is used then.
type middlewareCase struct {
	name string
	next func(w http.ResponseWriter, l *weir.Lease)
	used int64
	up   any
}

func middlewareCases() []middlewareCase {
	zero, three := weir.Costs{"n": 0}, weir.Costs{"n": 3}
	return []middlewareCase{
		{"nothing said", func(http.ResponseWriter, *weir.Lease) {}, 4, nil},
		{
			"an error status",
			func(w http.ResponseWriter, _ *weir.Lease) { w.WriteHeader(http.StatusInternalServerError) },
			0,
			nil,
		},
		{
			"an error status after the call was sent",
			func(w http.ResponseWriter, l *weir.Lease) { l.Sent(); w.WriteHeader(http.StatusInternalServerError) },
			4,
			nil,
		},
		{
			"an error status after a report",
			func(w http.ResponseWriter, l *weir.Lease) { l.Report(three); w.WriteHeader(http.StatusBadRequest) },
			3,
			nil,
		},
		{"nothing used", func(_ http.ResponseWriter, l *weir.Lease) { l.GiveBack() }, 0, nil},
		{"a report", func(_ http.ResponseWriter, l *weir.Lease) { l.Report(three) }, 3, nil},
		{"a report of nothing", func(_ http.ResponseWriter, l *weir.Lease) { l.Report(zero) }, 0, nil},
		{"a panic", func(http.ResponseWriter, *weir.Lease) { panic("ouch") }, 0, "ouch"},
		{
			"a panic after a report",
			func(_ http.ResponseWriter, l *weir.Lease) { l.Report(three); panic("ouch") },
			3,
			"ouch",
		},
		{
			"a panic after the call was sent",
			func(_ http.ResponseWriter, l *weir.Lease) { l.Sent(); panic("ouch") },
			4,
			"ouch",
		},
		{
			"a panic after the answer has begun",
			func(w http.ResponseWriter, _ *weir.Lease) { w.WriteHeader(http.StatusOK); panic("ouch") },
			4,
			"ouch",
		},
		{
			"a panic after an early hint",
			func(w http.ResponseWriter, _ *weir.Lease) { w.WriteHeader(http.StatusEarlyHints); panic("ouch") },
			0,
			"ouch",
		},
		{
			"an abort",
			func(http.ResponseWriter, *weir.Lease) { panic(http.ErrAbortHandler) },
			0,
			http.ErrAbortHandler,
		},
	}
}

func TestMiddlewareSettles(t *testing.T) {
	t.Parallel()
	for _, test := range middlewareCases() {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			a := newCountingLimiter(t)
			a.used("before", 0, 0)
			_, up := through(a, nil, func(w http.ResponseWriter, r *http.Request) {
				a.used("meanwhile", 4, 1)
				test.next(w, httpapi.LeaseFrom(r.Context()))
			})
			if up != test.up {
				t.Errorf("came up: got %v, want %v", up, test.up)
			}
			a.used("after", test.used, 0)
		})
	}
}

// TestMiddlewareClientGone checks that the reservation of a client that hangs up is refunded,
// unless the call was sent or the answer has begun.
func TestMiddlewareClientGone(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		do   func(w http.ResponseWriter, l *weir.Lease)
		used int64
	}{
		{"before anything", func(http.ResponseWriter, *weir.Lease) {}, 0},
		{"after the call was sent", func(_ http.ResponseWriter, l *weir.Lease) { l.Sent() }, 4},
		{"after the first byte", func(w http.ResponseWriter, _ *weir.Lease) { _, _ = w.Write([]byte("h")) }, 4},
	} {
		a := newCountingLimiter(t)
		ctx, cancel := context.WithCancel(t.Context())
		next := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			test.do(w, httpapi.LeaseFrom(r.Context()))
			cancel()
			<-r.Context().Done()
		})
		r := httptest.NewRequestWithContext(ctx, "POST", "/chat", nil)
		httpapi.Middleware(a, askFour, nil)(next).ServeHTTP(httptest.NewRecorder(), r)
		a.used(test.name, test.used, 0)
	}
}

// TestMiddlewareAnswersAsHandler checks that denied and admitted requests have the headers and the
// problem that a Handler writes.
func TestMiddlewareAnswersAsHandler(t *testing.T) {
	t.Parallel()
	now := time.Date(2025, 6, 18, 12, 0, 0, 0, time.UTC)
	a := newCountingLimiter(t)
	handler := httphandler.New(a, &httphandler.Options{Now: func() time.Time { return now }})
	o := &httpapi.MiddlewareOptions{Now: func() time.Time { return now }}
	for _, status := range []int{200, 200, 429} {
		w, _ := through(a, o, func(http.ResponseWriter, *http.Request) {})
		want := httptest.NewRecorder()
		if status != http.StatusOK {
			r := chat(t, `{"entity":"a","resource":"m","costs":{"n":4}}`)
			r.URL.Path = "/v1/reserve"
			r.Header.Set("Content-Type", jsonType)
			handler.ServeHTTP(want, r)
			got, problem := plainProblem(t, w.Body.Bytes()), plainProblem(t, want.Body.Bytes())
			if !reflect.DeepEqual(got, problem) {
				t.Errorf("got %v, the handler says %v", got, problem)
			}
			for _, name := range []string{"Content-Type", "Cache-Control", "RateLimit", "RateLimit-Policy"} {
				if got, want := w.Header().Get(name), want.Header().Get(name); got != want || got == "" {
					t.Errorf("%s: got %q, the handler says %q", name, got, want)
				}
			}
		}
		if w.Code != status {
			t.Errorf("got status %d, want %d", w.Code, status)
		}
		if (w.Header().Get("Retry-After") != "") != (status == 429) {
			t.Errorf("status %d has Retry-After %q", status, w.Header().Get("Retry-After"))
		}
		if got := w.Header().Get("Ratelimit"); !strings.Contains(got, `"n";r=`) {
			t.Errorf("RateLimit: got %q, want one of n", got)
		}
	}
	a.used("after", 8, 0)
}

// plainProblem returns a problem without the members that differ between two equal denials.
func plainProblem(t *testing.T, body []byte) map[string]any {
	t.Helper()
	var p map[string]any
	if err := json.Unmarshal(body, &p); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	for _, name := range []string{"lease_id", "retry_after_ms", "detail"} {
		if p[name] == nil {
			t.Errorf("%s is missing", name)
		}
		delete(p, name)
	}
	for _, l := range p["limits"].([]any) {
		delete(l.(map[string]any), "retry_after_ms")
	}
	return p
}

func TestMiddlewareRefusals(t *testing.T) {
	t.Parallel()
	wrong := &weir.Error{Code: weir.Invalid, Field: "model", Value: "gpt-0", Reason: "is not served"}
	tests := []struct {
		name   string
		ask    error
		fail   error
		status int
		member string
	}{
		{"a mistake", wrong, nil, 400, `"field":"model"`},
		{"no limits", &weir.Error{Code: weir.NoLimits}, nil, 404, `"code":"no limits configured"`},
		{"not weir's", errors.New("secret"), nil, 503, `"code":"unavailable"`},
		{
			"unavailable",
			nil,
			&weir.Error{Code: weir.Unavailable, Err: errGone},
			503,
			`"code":"unavailable"`,
		},
		{"forbidden", nil, &weir.Error{Code: weir.PermissionDenied}, 403, `"code":"permission denied"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			a := newCountingLimiter(t)
			a.fail["reserve"] = test.fail
			ask := func(*http.Request) (*weir.Request, error) { return askFourUnits(), test.ask }
			w := httptest.NewRecorder()
			ran := false
			httpapi.Middleware(
				a,
				ask,
				nil,
			)(
				http.HandlerFunc(func(http.ResponseWriter, *http.Request) { ran = true }),
			).
				ServeHTTP(
					w,
					chat(t, ""),
				)
			if ran {
				t.Error("the handler ran")
			}
			if w.Code != test.status || !strings.Contains(w.Body.String(), test.member) {
				t.Errorf("got %d %s, want %d with %s", w.Code, w.Body, test.status, test.member)
			}
			if got := w.Header().Get("Content-Type"); got != problemType {
				t.Errorf("content type: got %q", got)
			}
			if strings.Contains(w.Body.String(), "secret") ||
				strings.Contains(w.Body.String(), errGone.Error()) {
				t.Errorf("the answer shows a cause: %s", w.Body)
			}
			a.used("after", 0, 0)
		})
	}
}

func TestMiddlewareWithoutRequest(t *testing.T) {
	t.Parallel()
	a := newCountingLimiter(t)
	ask := func(*http.Request) (*weir.Request, error) { return nil, nil }
	w := httptest.NewRecorder()
	next := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if l := httpapi.LeaseFrom(r.Context()); l != nil {
			t.Errorf("got lease %+v", l)
		}
		w.WriteHeader(http.StatusTeapot)
	})
	httpapi.Middleware(a, ask, nil)(next).ServeHTTP(w, chat(t, ""))
	if w.Code != http.StatusTeapot || w.Header().Get("Ratelimit") != "" {
		t.Errorf("got %d with %v", w.Code, w.Header())
	}
	if n := a.count("reserve"); n != 0 {
		t.Errorf("%d reservations, want none", n)
	}
}

func TestMiddlewareWithoutHeaders(t *testing.T) {
	t.Parallel()
	a := newCountingLimiter(t)
	for range 3 { // two are admitted
		w, _ := through(
			a,
			&httpapi.MiddlewareOptions{NoRateLimits: true},
			func(http.ResponseWriter, *http.Request) {},
		)
		if w.Header().Get("Ratelimit") != "" || w.Header().Get("Ratelimit-Policy") != "" {
			t.Errorf("status %d has %v", w.Code, w.Header())
		}
	}
	a.used("after", 8, 0)
}

// TestMiddlewareSettleFails checks that a failed settlement is reported, although the answer is
// already written.
func TestMiddlewareSettleFails(t *testing.T) {
	t.Parallel()
	a := newCountingLimiter(t)
	a.fail["complete"] = errGone
	var told error
	o := &httpapi.MiddlewareOptions{SettleFailed: func(r *http.Request, err error) {
		if r.URL.Path != "/chat" {
			t.Errorf("got request %v", r.URL)
		}
		told = err
	}}
	w, _ := through(
		a,
		o,
		func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) },
	)
	if !errors.Is(told, errGone) || w.Code != http.StatusAccepted {
		t.Errorf("got %v and status %d", told, w.Code)
	}
	a.used("after", 4, 1)
}

// TestMiddlewareExtends checks that the slot of a request does not time out while its handler runs.
func TestMiddlewareExtends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newCountingLimiter(t)
		through(a, nil, func(http.ResponseWriter, *http.Request) {
			time.Sleep(10 * time.Minute) // in a bubble
			a.used("after ten minutes", 4, 1)
		})
		a.used("after", 4, 0)
		if n := a.count("extend"); n < 20 {
			t.Errorf("extended %d times in ten minutes, want often", n)
		}
	})
}
