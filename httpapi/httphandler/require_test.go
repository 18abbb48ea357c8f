package httphandler_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weir-limiter/weir/httpapi/httphandler"
)

// TestRequire: a handler beside the API is guarded as the API is.
func TestRequire(t *testing.T) {
	t.Parallel()
	known := map[string]httphandler.Identity{
		"reader": {Name: "r", Role: httphandler.RoleRead}, "caller": {Name: "c", Role: httphandler.RoleCall},
		"": {Name: "nobody", Role: httphandler.RoleAdmin}, // who has no bearer token is not asked about
	}
	w := newHandlerWorld(t, &httphandler.Options{
		Authenticate: func(bearer string) (httphandler.Identity, bool) {
			of, ok := known[bearer]
			return of, ok
		},
	})
	open := newHandlerWorld(t, nil)
	served := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
	})
	for _, c := range []struct {
		handler   *httphandler.Handler
		given     []string
		want      int
		challenge string
	}{
		{w.handler, []string{"Bearer caller"}, http.StatusTeapot, ""},
		{w.handler, []string{"Bearer reader"}, http.StatusForbidden, "insufficient_scope"},
		{w.handler, []string{"Bearer stranger"}, http.StatusUnauthorized, "invalid_token"},
		{w.handler, []string{"Bearer"}, http.StatusUnauthorized, "invalid_request"},
		{w.handler, []string{"Bearer caller", "Bearer caller"}, http.StatusUnauthorized, "invalid_request"},
		{w.handler, nil, http.StatusUnauthorized, "Bearer"},
		{open.handler, nil, http.StatusTeapot, ""},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/beside", nil)
		r.Header["Authorization"] = c.given
		got := httptest.NewRecorder()
		c.handler.Require(httphandler.RoleCall, served).ServeHTTP(got, r)
		said := got.Header().Get("WWW-Authenticate")
		if got.Code != c.want || !strings.Contains(said, c.challenge) || c.challenge == "" && said != "" {
			t.Errorf("%q: got %d and challenge %q, want %d and %q", c.given, got.Code, said, c.want, c.challenge)
		}
	}
}
