package server

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"
)

// recorder remembers the status that was answered.
type recorder struct {
	http.ResponseWriter
	status int
}

// WriteHeader notes the first final status.
func (r *recorder) WriteHeader(status int) {
	if r.status == 0 && status >= http.StatusOK {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write writes, with 200 where nothing else was said.
func (r *recorder) Write(p []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(p)
}

// Unwrap lets [http.ResponseController] reach what it needs.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// observed counts, traces and logs the requests to a handler. While the server shuts down, each
// answer is the last one on its connection.
func (s *Server) observed(next http.Handler) http.Handler {
	//nolint:contextcheck // A traced request has a context that comes from its own.
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		s.metrics.inFlight.Inc()
		defer s.metrics.inFlight.Dec()
		if s.ending.Load() {
			w.Header().Set("Connection", "close")
		}
		traced, span := s.traces.begin(r)
		ctx := traced.Context()
		rec := &recorder{ResponseWriter: w}
		ended := false
		defer func() {
			if ended && rec.status == 0 {
				rec.status = http.StatusOK // as net/http says for who says nothing
			}
			served := servedRequest{
				method: methodLabel(r.Method), route: routeLabel(traced.Pattern),
				status: rec.status, took: time.Since(began), left: r.Context().Err() != nil,
			}
			span.end(&served)
			s.metrics.served(&served)
			s.logRequest(ctx, &served)
		}()
		next.ServeHTTP(rec, traced)
		refused(rec, r)
		ended = true
	})
}

// servedRequest is what is told of a request once it was served. It has nothing that callers choose
// freely.
type servedRequest struct {
	method, route string
	status        int // 0 where it was given up without an answer
	took          time.Duration
	// left is true if the client hung up before the answer.
	left bool
}

// methodLabel keeps invented methods out of the labels.
func methodLabel(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete,
		http.MethodPatch, http.MethodOptions:
		return method
	}
	return otherLabel
}

// routeLabel is the path of a pattern such as "GET /v1/status", with parameters by name.
func routeLabel(pattern string) string {
	if _, path, ok := strings.Cut(pattern, " "); ok {
		return path
	}
	if pattern == "" || pattern == "/" { // the pattern of what is no path here
		return otherLabel
	}
	return pattern
}

func (m *metrics) served(r *servedRequest) {
	if r.left {
		m.left.Inc()
	}
	told := m.answered.of(requestLabels{r.method, r.route, r.status})
	told.count.Inc()
	told.took.Observe(r.took.Seconds())
}

func (s *Server) logRequest(ctx context.Context, r *servedRequest) {
	level := slog.LevelDebug
	asked := r.route == "/readyz" && s.ending.Load() // the answer is what it should be
	if r.status >= http.StatusInternalServerError && !asked && !r.left {
		level = slog.LevelWarn
	}
	s.requestLog.LogAttrs(ctx, level, "request", slog.String("method", r.method),
		slog.String("route", r.route), slog.Int("status", r.status), slog.Duration("took", r.took))
}
