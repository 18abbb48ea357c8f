package server

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"
)

// statusRecorder records the status of an answer.
type statusRecorder struct {
	http.ResponseWriter
	status int
}

// WriteHeader records the first final status.
func (r *statusRecorder) WriteHeader(status int) {
	if r.status == 0 && status >= http.StatusOK {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write writes, with status 200 if there was no other.
func (r *statusRecorder) Write(p []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(p)
}

// Unwrap returns the wrapped writer, for [http.ResponseController].
func (r *statusRecorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// instrument counts, traces and logs the requests to a handler. While the server shuts down it
// closes each connection after the answer.
func (s *Server) instrument(next http.Handler) http.Handler {
	//nolint:contextcheck // The context of a traced request is derived from its own.
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		s.metrics.inFlight.Inc()
		defer s.metrics.inFlight.Dec()
		if s.ending.Load() {
			w.Header().Set("Connection", "close")
		}
		traced, span := s.traces.startSpan(r)
		ctx := traced.Context()
		rec := &statusRecorder{ResponseWriter: w}
		ended := false
		defer func() {
			if ended && rec.status == 0 {
				rec.status = http.StatusOK // as net/http answers for a handler that writes nothing
			}
			served := servedRequest{
				method: methodLabel(r.Method), route: routeLabel(traced.Pattern),
				status: rec.status, took: time.Since(began), left: r.Context().Err() != nil,
			}
			span.end(&served)
			s.metrics.observeRequest(&served)
			s.logRequest(ctx, &served)
		}()
		next.ServeHTTP(rec, traced)
		markRefused(rec, r)
		ended = true
	})
}

// servedRequest has the properties of a request that metrics, traces and logs record. Callers
// cannot choose any of them freely, so labels and log lines made of them are bounded.
type servedRequest struct {
	method, route string
	status        int // 0 without an answer
	took          time.Duration
	// left is true if the client hung up before the answer.
	left bool
}

// methodLabel returns a method as a label, without those that HTTP does not have.
func methodLabel(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete,
		http.MethodPatch, http.MethodOptions:
		return method
	}
	return otherLabel
}

// routeLabel returns the path of a pattern such as "GET /v1/status", with the names of its
// parameters.
func routeLabel(pattern string) string {
	if _, path, ok := strings.Cut(pattern, " "); ok {
		return path
	}
	if pattern == "" || pattern == "/" { // the pattern of unknown paths
		return otherLabel
	}
	return pattern
}

func (m *metrics) observeRequest(r *servedRequest) {
	if r.left {
		m.left.Inc()
	}
	told := m.answered.of(requestLabels{r.method, r.route, r.status})
	told.count.Inc()
	told.took.Observe(r.took.Seconds())
}

func (s *Server) logRequest(ctx context.Context, r *servedRequest) {
	level := slog.LevelDebug
	expected := r.route == "/readyz" && s.ending.Load() // 503 is the right answer
	if r.status >= http.StatusInternalServerError && !expected && !r.left {
		level = slog.LevelWarn
	}
	s.requestLog.LogAttrs(ctx, level, "request", slog.String("method", r.method),
		slog.String("route", r.route), slog.Int("status", r.status), slog.Duration("took", r.took))
}
