package httphandler

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/weir-limiter/weir/internal/apijson"
)

// sabotage is a defect in one path of a handler, with the check that must find it.
type sabotage struct {
	finding, path string
	spoil         func(w http.ResponseWriter, r *http.Request, h http.Handler)
}

// says returns a handler with a fixed answer.
func says(status int, contentType, body string, header ...string) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", contentType)
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

// without removes a header from the answers of the handler.
func without(header string) func(http.ResponseWriter, *http.Request, http.Handler) {
	return with(func(h http.Header) { h.Del(header) })
}

func with(change func(http.Header)) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(w http.ResponseWriter, r *http.Request, h http.Handler) {
		h.ServeHTTP(&changedHeader{w, change}, r)
	}
}

type changedHeader struct {
	http.ResponseWriter

	change func(http.Header)
}

func (w *changedHeader) WriteHeader(status int) {
	w.change(w.Header())
	w.ResponseWriter.WriteHeader(status)
}

func sabotages() []sabotage {
	const (
		plain   = "application/json"
		problem = `{"type":"about:blank","title":"a","status":400,"detail":"b"}`
	)
	return []sabotage{
		{"UndefinedStatusCode", "/v1/extend", says(http.StatusTeapot, apijson.ProblemType, problem)},
		{"ServerError", "/v1/cancel", says(http.StatusInternalServerError, apijson.ProblemType, problem)},
		{"UndefinedContentType", "/v1/explain", says(http.StatusOK, "text/plain", "{}")},
		{"JsonSchemaError", "/readyz", says(http.StatusOK, plain, `{"status":"well"}`)},
		{"JsonSchemaError", "/v1/reserve", with(func(h http.Header) { h.Set("Ratelimit", "rpm;r=1") })},
		{"MissingHeaders", "/v1/activity", without("WWW-Authenticate")},
		{"IgnoredAuth", "/v1/admin/system", says(http.StatusOK, plain, `{"on_unavailable":"block","limits":{}}`)},
		{"AcceptedNegativeData", "/v1/admin/system/on_unavailable",
			says(http.StatusOK, plain, `{"on_unavailable":"block"}`)},
		{"RejectedPositiveData", "/v1/admin/entities", says(http.StatusBadRequest, apijson.ProblemType, problem)},
		{"UnsupportedMethodResponse", "/healthz", says(http.StatusOK, plain, `{"status":"ok"}`)},
		{"AllowHeaderMismatch", "/v1/status", with(func(h http.Header) {
			if h.Get("Allow") != "" {
				h.Set("Allow", "GET, HEAD, PATCH")
			}
		})},
	}
}

// TestSchemathesisFaults checks that each of eleven defects is found.
func TestSchemathesisFaults(t *testing.T) {
	t.Parallel()
	byPath := map[string]sabotage{}
	arguments := []string{"--seed", "1", "--max-examples", "3", "--phases", "examples,coverage"}
	for _, c := range sabotages() {
		byPath[c.path] = c
		arguments = append(arguments, "--include-path", c.path)
	}
	s := newFuzzedServer(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if c, ok := byPath[r.URL.Path]; ok {
				c.spoil(w, r, h)
				return
			}
			h.ServeHTTP(w, r)
		})
	})
	report, output := fuzz(t, s, arguments...)
	for _, c := range sabotages() {
		found := false
		for _, f := range report.Failures {
			// The finding also names methods that the path does not have.
			found = found || f.Type == c.finding && slices.ContainsFunc(f.Operations, func(o string) bool {
				_, path, _ := strings.Cut(o, " ")
				return path == c.path
			})
		}
		if !found {
			t.Errorf("%s on %s was not found: %+v", c.finding, c.path, report.Failures)
		}
	}
	if t.Failed() {
		t.Log(output)
	}
}
