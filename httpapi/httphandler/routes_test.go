package httphandler

import (
	"net/http"
	"testing"
)

// TestDirectRoutes checks that directly finds a route if and only if the mux finds the same one.
func TestDirectRoutes(t *testing.T) {
	t.Parallel()
	h := New(nil, nil)
	found := 0
	for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodPut} {
		for _, target := range []string{
			"/v1/reserve", "/v1/adjust", "/v1/complete", "/v1/cancel", "/v1/extend", "/v1/reserve/", "/v1/Reserve",
			"//v1/reserve", "/v1/./reserve", "/v1/%72eserve", "/v1/reserve%2F", "/v1/reserve?a=b", "/", "/v1/status",
		} {
			r, err := http.NewRequestWithContext(t.Context(), method, target, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			_, want := h.mux.Handler(r)
			d := h.directly(r)
			if d == nil {
				continue
			}
			found++
			if d.pattern != want || r.URL.EscapedPath() != r.URL.Path {
				t.Errorf("%s %s is served by %s, by the mux with %s", method, target, d.pattern, want)
			}
		}
	}
	if found != 6 {
		t.Errorf("%d were found directly, want five verbs and one with a query", found)
	}
}
