package server

import (
	"bytes"
	"context"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/memory"
)

// collector is a collector of traces.
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

// TestTraces checks that the spans of a request and of its calls of the limiter reach the
// collector, as part of the caller's trace, and name no entity.
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
	if err := w.stop(); err != nil { // sends the last spans
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

// doubtful is a store that reports every refund as in doubt.
type doubtful struct {
	driver.Store
	driver.ConfigReader
	driver.ConfigWriter
}

func (d doubtful) Update(
	ctx context.Context, now time.Time, u *driver.Update, out *driver.Outcome,
) error {
	err := d.Store.Update(ctx, now, u, out)
	if err == nil {
		out.RefundInDoubt = true
	}
	return err
}

// TestTracesRefundInDoubt checks that the span of a settlement says that its refund is in doubt.
func TestTracesRefundInDoubt(t *testing.T) {
	t.Parallel()
	endpoint, got := collector(t, http.StatusOK)
	b, err := memory.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	w := startOver(t, doubtful{b, b, b}, &Options{TraceEndpoint: endpoint})
	id := weir.NewLeaseID(time.Now()).String()
	w.ask(t, "/v1/reserve", `{"lease_id":"`+id+`","entity":"acme","resource":"llm","costs":{"rpm":1}}`, "")
	answer := w.ask(t, "/v1/cancel", `{"lease_id":"`+id+`"}`, "")
	if !bytes.Contains(answer.body, []byte(`"refund_in_doubt":true`)) {
		t.Errorf("got %d %s, want a refund in doubt", answer.status, answer.body)
	}
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
	close(got)
	var all []byte
	for body := range got {
		all = append(all, body...)
	}
	if n := bytes.Count(all, []byte("weir.refund_in_doubt")); n != 1 {
		t.Errorf("%d spans say that a refund is in doubt, want 1", n)
	}
}

// TestTracesLost checks that requests are served if the collector is not reachable, and that the
// log says so.
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

// TestTracesCollectorHangs checks that the server shuts down cleanly although the collector accepts
// connections and never answers, and that the log says what is lost.
func TestTracesCollectorHangs(t *testing.T) {
	t.Parallel()
	hung := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hung:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() {
		close(hung)
		s.Close()
	})
	w := start(t, &Options{TraceEndpoint: s.URL})
	if got := w.ask(t, "/v1/reserve", askRPM, ""); got.status != http.StatusOK {
		t.Errorf("got %d %s", got.status, got.body)
	}
	if err := w.stop(); err != nil {
		t.Errorf("run: got %v, want none", err)
	}
	if said := w.log.String(); !strings.Contains(said, "traces are lost") {
		t.Errorf("the log does not say that traces are lost: %s", said)
	}
}

// TestTraceEndpointHidden checks that the error of a refused endpoint does not have its user and
// password.
func TestTraceEndpointHidden(t *testing.T) {
	t.Parallel()
	for endpoint, want := range map[string]string{
		"u:SECRET@localhost:4318":        `"(hidden)": must be an http or https URL`,
		"http:u:SECRET@localhost":        `"(hidden)": must be an http or https URL`,
		"http://u:SECRET@local host/":    `"(hidden)": must be an http or https URL`,
		"ftp://SECRET:SECRET@c/SECRET":   `"ftp://c": must be an http or https URL`,
		"http://SECRET:SECRET@c:4318/v1": `"http://c:4318": must not contain a user or password`,
		"https://SECRET@c/":              `"https://c": must not contain a user or password`,
	} {
		_, err := newTraces(t.Context(), &Options{TraceEndpoint: endpoint})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s: got %v, want %s", endpoint, err, want)
		}
	}
	if err := checkEndpoint("https://c:4318/v1/traces"); err != nil {
		t.Errorf("got %v, want none", err)
	}
}

// TestUnusableVariables checks that unusable variables are found, and that the errors do not have
// their values.
func TestUnusableVariables(t *testing.T) {
	t.Parallel()
	const all, traces = "OTEL_EXPORTER_OTLP_", "OTEL_EXPORTER_OTLP_TRACES_"
	dir := t.TempDir()
	cert, key := pairOf(t, 1)
	certFile, keyFile := write(t, dir, "cert.pem", cert), write(t, dir, "key.pem", key)
	for _, c := range []struct {
		name, value string
		also        [2]string
		want        string
	}{
		{name: all + "HEADERS", value: "Authorization=Bearer%20SECRET, x=SECRET"},
		{name: all + "HEADERS", value: "Authorization SECRET", want: "header 1 has no '='"},
		{name: traces + "HEADERS", value: "a=SECRET,SECRET", want: "header 2 has no '='"},
		{name: all + "HEADERS", value: "a b=SECRET", want: "header 1 has an invalid name"},
		{name: all + "HEADERS", value: "=SECRET", want: "header 1 has an invalid name"},
		{name: all + "HEADERS", value: "a=SECRET%zz", want: "header 1 has a malformed percent-encoding"},
		{name: all + "TIMEOUT", value: "1000"},
		{name: traces + "TIMEOUT", value: "SECRET", want: "must be a whole number of milliseconds"},
		{name: all + "CERTIFICATE", value: certFile},
		{name: all + "CERTIFICATE", value: keyFile, want: "has no certificate in PEM"},
		{name: all + "CERTIFICATE", value: certFile + ".none", want: "no such file"},
		{name: all + "CLIENT_CERTIFICATE", value: certFile, also: [2]string{all + "CLIENT_KEY", keyFile}},
		{name: all + "CLIENT_CERTIFICATE", value: certFile},
		{
			name: traces + "CLIENT_CERTIFICATE", value: keyFile, also: [2]string{traces + "CLIENT_KEY", keyFile},
			want: "certificate",
		},
	} {
		env := map[string]string{c.name: c.value, c.also[0]: c.also[1]}
		got := unusable(func(name string) string { return env[name] })
		switch {
		case c.want == "" && len(got) > 0:
			t.Errorf("%s=%s: got %v, want none", c.name, c.value, got)
		case c.want != "" && (len(got) != 1 || got[0].name != c.name || !strings.Contains(got[0].err.Error(), c.want)):
			t.Errorf("%s=%s: got %v, want %s", c.name, c.value, got, c.want)
		case c.want != "" && strings.Contains(got[0].err.Error(), "SECRET"):
			t.Errorf("%s: the reason has the value: %v", c.name, got[0].err)
		}
	}
}

// TestNoTraces checks that there are no spans without a collector.
func TestNoTraces(t *testing.T) {
	t.Parallel()
	w := start(t, nil)
	if w.server.traces != nil {
		t.Fatal("there are traces without a collector")
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/healthz", nil)
	if same, span := w.server.traces.startSpan(r); same != r || span != nil {
		t.Errorf("got request %p and span %v, want %p and none", same, span, r)
	}
}
