package server

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi/httphandler"
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
		traced, details := s.wantDetails(traced)
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
				details: details, request: traced,
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
// cannot choose any of them freely but the last two, so labels made of them are bounded.
type servedRequest struct {
	method, route string
	status        int // 0 without an answer
	took          time.Duration
	// left is true if the client hung up before the answer.
	left bool
	// details and request are only for a log at debug level, and chosen freely. details is nil if the
	// log has a higher level.
	details *httphandler.Details
	request *http.Request
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

// wantDetails returns the request with details for the handler to fill in, if the log is at debug
// level. At a higher level it costs nothing but the look at the level.
func (s *Server) wantDetails(r *http.Request) (*http.Request, *httphandler.Details) {
	if !s.requestLog.Enabled(r.Context(), slog.LevelDebug) {
		return r, nil
	}
	ctx, details := httphandler.ContextWithDetails(r.Context())
	return r.WithContext(ctx), details
}

// logRequest logs a request at debug level, and a failure as a warning.
func (s *Server) logRequest(ctx context.Context, r *servedRequest) {
	level := slog.LevelDebug
	expected := r.route == "/readyz" && s.ending.Load() // 503 is the right answer
	if r.status >= http.StatusInternalServerError && !expected && !r.left {
		level = slog.LevelWarn
	}
	if level == slog.LevelDebug && r.details == nil {
		return
	}
	attrs := []slog.Attr{
		slog.String("method", r.method), slog.String("route", r.route), slog.Int("status", r.status),
		slog.Duration("took", r.took),
	}
	if r.details != nil {
		attrs = append(attrs, detailAttrs(r)...)
	}
	s.requestLog.LogAttrs(ctx, level, "request", attrs...)
}

// detailAttrs returns the fields of a request that only the log at debug level has.
func detailAttrs(r *servedRequest) []slog.Attr {
	d := r.details
	who := askerOf(r.request, &d.By)
	attrs := append(who.attrs(), slog.String("path", safePath(r.request)))
	add := func(name, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(name, value))
		}
	}
	one := func(name string) string { return shown(withoutToken(r.request, name), mostName) }
	list := func(names []string) string {
		for i := range names {
			names[i] = withoutToken(r.request, names[i])
		}
		return shownList(names)
	}
	if !d.LeaseID.IsZero() {
		add("lease_id", d.LeaseID.String())
	}
	add("entity", one(d.Entity))
	add("resource", one(d.Resource))
	add("charges", list(subjectNames(d.Charges)))
	add("charged", list(d.Charged))
	add("denied", list(d.Denied))
	return attrs
}

// subjectNames returns the names of charges: the entity and the resource, with a '#' between them.
func subjectNames(charges []weir.Subject) []string {
	names := make([]string, len(charges))
	for i, c := range charges {
		names[i] = c.Entity + string(weir.NameSeparator) + c.Resource
	}
	return names
}
