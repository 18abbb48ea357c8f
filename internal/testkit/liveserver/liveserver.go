// Package liveserver is a server on a loopback port for the tests of commands that call one.
package liveserver

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/weir-limiter/weir/httpapi/httphandler"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/manifest"
	"github.com/weir-limiter/weir/memory"
)

// Limits is a limits file under which the answers to equal calls do not depend on their order, nor
// on the time within an hour.
const Limits = `version: 1
resources:
  llm:
    limits:
      rpm: {capacity: 40, refill_amount: 1, refill_period: 86400}
      tpm: {kind: window, capacity: 100000, window: 86400}
entities:
  acme:
    resources: {llm: {limits: {parallel: {kind: concurrency, capacity: 1000, timeout: 600}}}}
  tenant-1: {parent: acme, cascade: true}
  tenant-2: {parent: acme, cascade: true}
`

// Start serves the limits on a loopback port until the test ends, and returns the server's URL and
// its limiter. If wrap is not nil, it wraps the handler.
func Start(
	t *testing.T, o *httphandler.Options, wrap func(http.Handler) http.Handler,
) (string, *limiter.Limiter) {
	t.Helper()
	m, err := manifest.Parse("limits.yaml", []byte(Limits))
	if err != nil {
		t.Fatal(err)
	}
	store, err := memory.Open(&memory.Options{Definitions: m.Definitions})
	if err != nil {
		t.Fatal(err)
	}
	lim, err := limiter.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	var handler http.Handler = httphandler.New(lim, o)
	if wrap != nil {
		handler = wrap(handler)
	}
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s.URL, lim
}

// SlotsFree reports whether every slot of acme's is free.
func SlotsFree(t *testing.T, l *limiter.Limiter) bool {
	t.Helper()
	limits, err := l.Status(context.WithoutCancel(t.Context()), "acme", "llm")
	if err != nil || len(limits) != 1 {
		t.Fatalf("got %v, %v, want one limit", limits, err)
	}
	return limits[0].Available == limits[0].Capacity
}
