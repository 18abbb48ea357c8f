package httpapi_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/change"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/httpapi/httphandler"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// TestVersionsWithLostAnswers repeats changes on condition whose first answer is lost.
func TestVersionsWithLostAnswers(t *testing.T) {
	t.Parallel()
	store, err := memory.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	l, err := limiter.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	handler := httphandler.New(l, &httphandler.Options{Admin: l})
	var lose atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && lose.CompareAndSwap(true, false) {
			handler.ServeHTTP(httptest.NewRecorder(), r)
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	c, err := httpapi.NewClient(server.URL, &httpapi.ClientOptions{Backoff: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	named := func(name string) *change.Entity { return &change.Entity{Name: &name} }

	// Whether the entity was created by the first attempt or by somebody else is not known.
	lose.Store(true)
	_, err = c.ChangeEntity(ctx, "acme", named("first"), &change.Options{IfAbsent: true})
	if !errors.Is(err, weir.Unavailable) || !errors.Is(err, weir.Conflict) {
		t.Errorf("got %v, want unavailable because of a conflict", err)
	}
	e, err := c.Entity(ctx, "acme")
	if err != nil || e.Name != "first" || e.Version == "" {
		t.Fatalf("got %+v, %v", e, err)
	}
	lose.Store(true)
	version, err := c.ChangeEntity(ctx, "acme", named("second"), &change.Options{IfVersion: e.Version})
	if err != nil || version == "" || version == e.Version {
		t.Errorf("got %q, %v; want the change as made", version, err)
	}
	if _, err = c.ChangeEntity(ctx, "acme", named("third"), &change.Options{IfVersion: e.Version}); !errors.Is(err, weir.Conflict) ||
		errors.Is(err, weir.Unavailable) {
		t.Errorf("got %v, want a conflict", err)
	}
	lose.Store(true)
	if err := c.RemoveEntity(ctx, "acme", &change.Options{IfVersion: version}); err != nil {
		t.Errorf("got %v, want it removed", err)
	}
	at := weir.Subject{Resource: "gpt-4o"}
	if version, err = c.ChangeLimits(ctx, at, []weir.Limit{{Name: "rpm", Capacity: 1}}, nil); err != nil {
		t.Fatal(err)
	}
	lose.Store(true)
	if _, err := c.ChangeLimits(ctx, at, nil, &change.Options{IfVersion: version}); err != nil {
		t.Errorf("got %v, want the limits removed", err)
	}
	if err := c.RemoveEntity(ctx, "acme", &change.Options{IfVersion: "a b"}); !errors.Is(err, weir.Invalid) {
		t.Errorf("got %v, want an invalid version", err)
	}
}
