package server

import (
	"bytes"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
)

// collector takes traces as a collector does.
func collector(t *testing.T, status int) (url string, got chan []byte) {
	t.Helper()
	got = make(chan []byte, 16)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
			t.Errorf("collector: got %s %s, %s, error %v", r.Method, r.URL, r.Header.Get("Content-Type"), err)
		}
		got <- body
		w.WriteHeader(status)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/v1/traces", got
}

// TestTraces: a request and the calls it makes of the limiter reach the collector, as a part of the
// caller's trace, and name no entity.
func TestTraces(t *testing.T) {
	t.Parallel()
	endpoint, got := collector(t, http.StatusOK)
	w := start(t, &Options{TraceEndpoint: endpoint, Version: "v1.2.3"})
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	id := weir.NewLeaseID(time.Now()).String()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+"/v1/reserve",
		strings.NewReader(`{"lease_id":"`+id+`","entity":"acme-corporation","resource":"some-model","costs":{"rpm":1}}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Traceparent", "00-"+trace+"-00f067aa0ba902b7-01")
	answered, err := w.client.Do(r)
	if err != nil || answered.StatusCode != http.StatusOK {
		t.Fatalf("got %v and error %v", answered, err)
	}
	if err := answered.Body.Close(); err != nil {
		t.Fatal(err)
	}
	w.ask(t, "/v1/entities/acme-corporation/children", "", "")
	if err := w.stop(); err != nil { // what was gathered is sent
		t.Fatal(err)
	}
	close(got)
	var all []byte
	for body := range got {
		all = append(all, body...)
	}
	traceID, err := hex.DecodeString(trace)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"service.name", "weir", "service.version", "v1.2.3", "POST /v1/reserve", "http.route", "weir.reserve",
		"weir.verb", "weir.outcome", "admitted", "weir.lease_id", id, string(traceID),
		"GET /v1/entities/{entity}/children",
	} {
		if !bytes.Contains(all, []byte(want)) {
			t.Errorf("the collector did not get %q", want)
		}
	}
	if n := bytes.Count(all, traceID); n != 2 {
		t.Errorf("the caller's trace has %d spans, want that of the request and that of the limiter", n)
	}
	for _, secret := range []string{"acme-corporation", "some-model"} {
		if bytes.Contains(all, []byte(secret)) {
			t.Errorf("the collector got %q", secret)
		}
	}
}

// TestTracesLost: a collector that is not there harms nobody, and the log says so.
func TestTracesLost(t *testing.T) {
	t.Parallel()
	endpoint, _ := collector(t, http.StatusBadRequest)
	w := start(t, &Options{TraceEndpoint: endpoint})
	if got := w.ask(t, "/v1/reserve", askRPM, ""); got.status != http.StatusOK {
		t.Errorf("got %d %s", got.status, got.body)
	}
	if err := w.stop(); err != nil {
		t.Errorf("run: %v", err)
	}
	if said := w.log.String(); !strings.Contains(said, "traces are lost") || !strings.Contains(said, "spans=2") {
		t.Errorf("the log does not say that two spans are lost: %s", said)
	}
}

// TestNoTraces: without a collector there are no spans at all.
func TestNoTraces(t *testing.T) {
	t.Parallel()
	w := start(t, nil)
	if w.server.traces != nil {
		t.Fatal("there are traces without a collector")
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/healthz", nil)
	if same, span := w.server.traces.begin(r); same != r || span != nil {
		t.Errorf("got request %p and span %v, want %p and none", same, span, r)
	}
}
