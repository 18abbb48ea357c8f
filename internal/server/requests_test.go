package server

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestObserved checks that a request is counted by its status, even if the handler panicked.
func TestObserved(t *testing.T) {
	t.Parallel()
	w := start(t, nil)
	h := w.server.instrument(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Pattern = r.Method + " /" + r.URL.Query().Get("do")
		switch r.URL.Query().Get("do") {
		case "nothing":
		case "write":
			_, _ = io.WriteString(w, "text") // a recorder takes all
		case "early":
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusTeapot)
			w.WriteHeader(http.StatusOK) // too late
		case "abort":
			panic(http.ErrAbortHandler)
		case "flush":
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
		}
	}))
	for _, c := range []struct{ method, do, want string }{
		{http.MethodGet, "nothing", `{code="200",method="GET",route="/nothing"}`},
		{http.MethodGet, "write", `{code="200",method="GET",route="/write"}`},
		{http.MethodPut, "early", `{code="418",method="PUT",route="/early"}`},
		{http.MethodGet, "abort", `{code="none",method="GET",route="/abort"}`},
		{http.MethodGet, "flush", `{code="200",method="GET",route="/flush"}`},
		{"BREW", "nothing", `{code="200",method="other",route="/nothing"}`},
	} {
		func() {
			defer func() {
				if cause := recover(); (cause != nil) != (c.do == "abort") {
					t.Errorf("%s: panic %v", c.do, cause)
				}
			}()
			r := httptest.NewRequestWithContext(t.Context(), c.method, "/?do="+c.do, nil)
			h.ServeHTTP(httptest.NewRecorder(), r)
		}()
		if got := w.figures(t, "")["weir_requests_total"+c.want]; got != 1 {
			t.Errorf("%s %s: got %v of %s, want 1", c.method, c.do, got, c.want)
		}
	}
	if got := w.figures(t, "")["weir_requests_in_flight"]; got != 1 {
		t.Errorf("got %v in flight, want only this one", got)
	}
}

func TestRouteLabel(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]string{
		"": "other", "/": "other", "GET /v1/status": "/v1/status", "/v1/status": "/v1/status",
		"GET /v1/entities/{entity}/children": "/v1/entities/{entity}/children", "GET /{$}": "/{$}",
	} {
		if got := routeLabel(pattern); got != want {
			t.Errorf("%q: got %q, want %q", pattern, got, want)
		}
	}
}

// TestUnknownRoutesAreProblems checks that the handler answers unknown methods and paths, with
// problems.
func TestUnknownRoutesAreProblems(t *testing.T) {
	t.Parallel()
	w := start(t, nil)
	for request, want := range map[string]string{
		"OPTIONS * HTTP/1.1":         "HTTP/1.1 404 ",
		"BREW /v1/reserve HTTP/1.1":  "HTTP/1.1 405 ",
		"GET //metrics HTTP/1.1":     "HTTP/1.1 404 ",
		"GET /metrics/ HTTP/1.1":     "HTTP/1.1 404 ",
		"DELETE /metrics HTTP/1.1":   "HTTP/1.1 405 ",
		"GET /metrics?x=1 HTTP/1.1":  "HTTP/1.1 200 ",
		"HEAD /metrics HTTP/1.1":     "HTTP/1.1 200 ",
		"GET /v1/nothing HTTP/1.1":   "HTTP/1.1 404 ",
		"GET /v1/reserve HTTP/1.1":   "HTTP/1.1 405 ",
		"GET /x/../metrics HTTP/1.1": "HTTP/1.1 404 ",
	} {
		said := say(t, w.dial(t), request+"\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		if !strings.HasPrefix(said, want) {
			t.Errorf("%s: got %q, want %s", request, said, want)
		}
		head, err := http.ReadResponse(bufio.NewReader(strings.NewReader(said)), nil)
		if err != nil {
			t.Errorf("%s: %v", request, err)
			continue
		}
		_ = head.Body.Close() // all of it is here
		if got := head.Header.Get("Content-Type"); head.StatusCode >= 400 && got != "application/problem+json" {
			t.Errorf("%s: got %d as %s, want a problem", request, head.StatusCode, got)
		}
	}
}
