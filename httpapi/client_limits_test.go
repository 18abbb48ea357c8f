package httpapi_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/httpapi/httphandler"
	"github.com/weir-limiter/weir/internal/declared"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// TestClientLimits plans, applies and exports through a client, with the answers and errors of the
// implementation that the server calls.
func TestClientLimits(t *testing.T) {
	t.Parallel()
	store, err := memory.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	lim, err := limiter.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lim.Close() })
	server := httptest.NewServer(httphandler.New(lim, &httphandler.Options{
		Admin: lim, Limits: declared.New(lim), AdminNote: "for now",
	}))
	t.Cleanup(server.Close)
	var notes []string
	c, err := httpapi.NewClient(server.URL, &httpapi.ClientOptions{
		Note: func(text string) { notes = append(notes, text) },
	})
	if err != nil {
		t.Fatal(err)
	}
	const text = "version: 1\nresources: {r: {limits: {day: {kind: window, capacity: 5, window: 60}}}}\n"
	f := &httpapi.LimitsFile{Name: "limits.yaml", Text: text}
	p, err := c.PlanLimits(t.Context(), f)
	if err != nil || len(p.Changes) != 1 || p.Changes[0].Is != "day:5:window/60s" || len(notes) > 0 {
		t.Fatalf("plan: %+v, %v, notes %q", p, err, notes)
	}
	p, err = c.ApplyLimits(t.Context(), f)
	if err != nil || p.Applied != 1 || strings.Join(notes, "") != "for now" {
		t.Fatalf("apply: %+v, %v, notes %q", p, err, notes)
	}
	e, err := c.ExportLimits(t.Context())
	if err != nil || !strings.Contains(e.Text, "day: {kind: window, capacity: 5, window: 60}") {
		t.Errorf("export: %+v, %v", e, err)
	}
	_, err = c.ApplyLimits(t.Context(), &httpapi.LimitsFile{Text: "version: 1\n"})
	if !errors.Is(err, weir.Conflict) || !strings.Contains(err.Error(), "--yes") {
		t.Errorf("a file that deletes all: got %v, want a conflict", err)
	}
	_, err = c.PlanLimits(t.Context(), &httpapi.LimitsFile{Text: "version: 2\n"})
	if !errors.Is(err, weir.Invalid) || !strings.Contains(err.Error(), "(line 1, column 10)") {
		t.Errorf("a file with a mistake: got %v", err)
	}
}

// TestClientLimitsAnswers lets something answer that is no weir server. An apply is sent once.
func TestClientLimitsAnswers(t *testing.T) {
	t.Parallel()
	sent := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		sent++
		_, _ = io.WriteString(w, `{"text":"","changes":null}`)
	}))
	t.Cleanup(server.Close)
	c, err := httpapi.NewClient(server.URL, &httpapi.ClientOptions{Attempts: 2})
	if err != nil {
		t.Fatal(err)
	}
	f := &httpapi.LimitsFile{Text: "version: 1\n"}
	if _, err := c.ApplyLimits(t.Context(), f); !errors.Is(err, weir.Unavailable) || sent != 1 {
		t.Errorf("apply: got %v after %d requests", err, sent)
	}
	if _, err := c.PlanLimits(t.Context(), f); !errors.Is(err, weir.Unavailable) || sent != 3 {
		t.Errorf("plan: got %v after %d requests", err, sent)
	}
	if _, err := c.ExportLimits(t.Context()); !errors.Is(err, weir.Unavailable) {
		t.Errorf("export: got %v", err)
	}
}
