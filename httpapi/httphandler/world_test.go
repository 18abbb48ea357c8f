package httphandler_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/httpapi/httphandler"
	"github.com/weir-limiter/weir/internal/declared"
	"github.com/weir-limiter/weir/internal/testkit/recordstore"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/manifest"
	"github.com/weir-limiter/weir/memory"
)

// handlerLimits declares a limit of every kind, a shadow limit, a cascade and flat keys.
const handlerLimits = `
version: 1
system:
  limits: {rpm: {capacity: 10}}
resources:
  bucket:
    limits:
      rpm: {capacity: 600}
      tpm: {capacity: 1000, refill_amount: 500, refill_period: 30}
  window: {limits: {hourly: {kind: window, capacity: 10, window: 3600}}}
  slots: {limits: {parallel: {kind: concurrency, capacity: 2, timeout: 300}}}
  money: {limits: {usd: {kind: budget, capacity: 100, every: month, zone: Europe/Berlin}}}
  shadow:
    limits:
      rpm: {capacity: 10}
      seen: {capacity: 5, enforce: false}
  key: {limits: {units: {capacity: 10}}}
entities:
  acme: {}
  acme-bot:
    parent: acme
    cascade: true
  "team/a": {resources: {bucket: {limits: {rpm: {capacity: 7}}}}}
  slots:
    resources:
      key: {limits: {units: {kind: concurrency, capacity: 2, timeout: 60}}}
`

// handlerWorld is a handler over the memory store, with a clock that the test sets.
type handlerWorld struct {
	t       *testing.T
	now     atomic.Int64 // Unix milliseconds
	limiter *limiter.Limiter
	options *httphandler.Options
	handler *httphandler.Handler
}

// newHandlerWorld returns a world whose clock shows a Monday at noon.
func newHandlerWorld(t *testing.T, o *httphandler.Options) *handlerWorld {
	t.Helper()
	w := &handlerWorld{t: t, options: &httphandler.Options{}}
	if o != nil {
		*w.options = *o
	}
	w.now.Store(time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC).UnixMilli())
	store, err := memory.Open(&memory.Options{Definitions: handlerDefinitions(t)})
	if err != nil {
		t.Fatal(err)
	}
	w.serve(httphandler.NewRetentionStore(store))
	return w
}

func handlerDefinitions(t *testing.T) *weir.Definitions {
	t.Helper()
	parsed, err := manifest.Parse("limits.yaml", []byte(handlerLimits))
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Definitions
}

// serve makes a new limiter over a store, and a handler for it.
func (w *handlerWorld) serve(store driver.Store) {
	w.t.Helper()
	var err error
	w.limiter, err = limiter.New(store, &limiter.Options{Now: w.clock, CascadeDepth: 2})
	if err != nil {
		w.t.Fatal(err)
	}
	w.options.Now = w.clock
	w.options.Admin = w.limiter
	w.options.Limits = declared.New(w.limiter)
	if w.options.Namespaces == nil {
		w.options.Namespaces = httphandler.NewNamespaceTable()
	}
	w.options.Records = recordstore.Month().Open(w.t, w.clock)
	w.handler = httphandler.New(w.limiter, w.options)
}

// restart closes the limiter and opens another from the snapshot in a file.
func (w *handlerWorld) restart(file string) {
	w.t.Helper()
	if err := w.limiter.Close(); err != nil {
		w.t.Fatal(err)
	}
	store, err := memory.OpenSnapshot(file, &memory.SnapshotOptions{Definitions: handlerDefinitions(w.t)})
	if err != nil {
		w.t.Fatal(err)
	}
	w.serve(store)
	w.t.Cleanup(func() { _ = w.limiter.Close() })
}

func (w *handlerWorld) clock() time.Time { return time.UnixMilli(w.now.Load()) }

func (w *handlerWorld) advance(d time.Duration) { w.now.Add(d.Milliseconds()) }

// lease returns an ID that the limiter accepts.
func (w *handlerWorld) lease() string { return weir.NewLeaseID(w.clock()).String() }

// sent is a request to the handler.
type sent struct {
	method, target, body string
	header               []string // alternating names and values; an empty value removes the header
}

// answered is an answer of the handler.
type answered struct {
	status int
	header http.Header
	text   string
	body   map[string]any
}

// ask sends a request without a network.
func (w *handlerWorld) ask(s sent) *answered {
	w.t.Helper()
	return askHandler(w.t, w.handler, s)
}

func askHandler(t *testing.T, h http.Handler, s sent) *answered {
	t.Helper()
	method, target := s.method, s.target
	var body io.Reader
	if s.body != "" {
		body = strings.NewReader(s.body)
	}
	r := httptest.NewRequestWithContext(t.Context(), method, target, body)
	if method == http.MethodPost || method == http.MethodPut {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(s.header); i += 2 {
		if s.header[i+1] == "" {
			r.Header.Del(s.header[i])
			continue
		}
		r.Header.Add(s.header[i], s.header[i+1])
	}
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, r)
	return readAnswer(t, method, recorder.Result())
}

// readAnswer reads an answer and checks the properties of every answer.
func readAnswer(t *testing.T, method string, r *http.Response) *answered {
	t.Helper()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Body.Close()
	a := &answered{status: r.StatusCode, header: r.Header, text: string(text)}
	want := "application/json"
	if a.status != http.StatusOK {
		want = "application/problem+json"
	}
	if got := r.Header.Get("Content-Type"); got != want {
		t.Errorf("Content-Type of %d is %q, want %q", a.status, got, want)
	}
	if r.Header.Get("Cache-Control") == "" {
		t.Error("no Cache-Control")
	}
	if method == http.MethodHead {
		return a
	}
	if got := r.Header.Get("Content-Length"); got != fmt.Sprint(len(text)) {
		t.Errorf("Content-Length is %q, the body has %d bytes", got, len(text))
	}
	if err := json.Unmarshal(text, &a.body); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	if a.status != http.StatusOK {
		checkProblem(t, a)
	}
	return a
}

// checkProblem checks the properties of every problem (RFC 9457).
func checkProblem(t *testing.T, a *answered) {
	t.Helper()
	for _, name := range []string{"type", "title", "detail"} {
		if s, ok := a.body[name].(string); !ok || s == "" {
			t.Errorf("problem without %s: %s", name, a.text)
		}
	}
	if a.body["status"] != float64(a.status) {
		t.Errorf("status %d in an answer with %d", a.body["status"], a.status)
	}
	if _, ok := a.body["allowed"]; ok != (a.status == http.StatusTooManyRequests) {
		t.Errorf("allowed in the problem is %v: %s", ok, a.text)
	}
}

// reserve sends the body of a reserve.
func (w *handlerWorld) reserve(body string) *answered {
	w.t.Helper()
	return w.ask(sent{method: "POST", target: "/v1/reserve", body: body})
}

// post sends a body to a verb.
func (w *handlerWorld) post(verb, body string) *answered {
	w.t.Helper()
	return w.ask(sent{method: "POST", target: "/v1/" + verb, body: body})
}

// available returns what is available of one limit, as the limiter reports it.
func (w *handlerWorld) available(entity, resource, limit string) int64 {
	w.t.Helper()
	limits, err := w.limiter.Status(w.t.Context(), entity, resource)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, s := range limits {
		if s.Limit == limit {
			return s.Available
		}
	}
	w.t.Fatalf("%s/%s has no limit %s", entity, resource, limit)
	return 0
}

// state returns everything that a request of the tests can change.
func (w *handlerWorld) state() map[string]any {
	w.t.Helper()
	state := map[string]any{}
	for _, entity := range []string{"acme", "acme-bot", "team/a", "slots", "k1", "k2"} {
		limits, err := w.limiter.Status(w.t.Context(), entity, "")
		if err != nil {
			w.t.Fatal(err)
		}
		state[entity] = limits
		state["entity "+entity], _ = w.limiter.Entity(w.t.Context(), entity)
	}
	for _, at := range []weir.Subject{{}, {Resource: "bucket"}, {Entity: "acme", Resource: "bucket"}} {
		limits, err := w.limiter.Limits(w.t.Context(), at)
		if err != nil {
			w.t.Fatal(err)
		}
		state["limits "+at.Entity+" "+at.Resource] = limits
	}
	policy, err := w.limiter.Policy(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	state["policy"] = policy
	return state
}

// unchanged fails the test if the state differs from before.
func (w *handlerWorld) unchanged(before map[string]any) {
	w.t.Helper()
	if after := w.state(); !reflect.DeepEqual(before, after) {
		w.t.Errorf("state changed from\n%v to\n%v", before, after)
	}
}

// want compares members of an answer. A nil value means that the member must be absent.
func (a *answered) want(t *testing.T, status int, members ...any) {
	t.Helper()
	if a.status != status {
		t.Errorf("status is %d, want %d: %s", a.status, status, a.text)
		return
	}
	for i := 0; i+1 < len(members); i += 2 {
		name, want := members[i].(string), members[i+1]
		if n, ok := want.(int); ok {
			want = float64(n)
		}
		if got, ok := a.body[name]; !reflect.DeepEqual(got, want) || ok == (want == nil) {
			t.Errorf("%s is %#v, want %#v, in %s", name, got, want, a.text)
		}
	}
}

// serviceFunc is a service that calls one function for every verb.
type serviceFunc func(ctx context.Context) error

func (f serviceFunc) Reserve(ctx context.Context, _ *weir.Request) (*weir.Lease, error) {
	if err := f(ctx); err != nil {
		return nil, err
	}
	return &weir.Lease{}, nil
}

func (f serviceFunc) Adjust(ctx context.Context, _ weir.LeaseID, _ int64, _ []weir.Costs) (*weir.Receipt, error) {
	return &weir.Receipt{}, f(ctx)
}

func (f serviceFunc) Complete(ctx context.Context, _ weir.LeaseID, _ []weir.Costs) (*weir.Receipt, error) {
	return &weir.Receipt{}, f(ctx)
}

func (f serviceFunc) Cancel(ctx context.Context, _ weir.LeaseID) (*weir.Receipt, error) {
	return &weir.Receipt{}, f(ctx)
}

func (f serviceFunc) Extend(ctx context.Context, _ weir.LeaseID) (*weir.Receipt, error) {
	return &weir.Receipt{}, f(ctx)
}

func (f serviceFunc) Status(ctx context.Context, _, _ string) ([]weir.LimitStatus, error) {
	return nil, f(ctx)
}

func (f serviceFunc) Explain(ctx context.Context, _, _ string) (*weir.Explanation, error) {
	return &weir.Explanation{}, f(ctx)
}
