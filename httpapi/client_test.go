package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
)

func TestNewClientMistakes(t *testing.T) {
	t.Parallel()
	good := "http://127.0.0.1:8080"
	tests := []struct {
		name, server string
		options      httpapi.ClientOptions
		fields       []string
	}{
		{"nothing", "", httpapi.ClientOptions{}, []string{"server"}},
		{"no scheme", "127.0.0.1:8080", httpapi.ClientOptions{}, []string{"server"}},
		{"no host", "http://", httpapi.ClientOptions{}, []string{"server"}},
		{"only a port", "http://:8080", httpapi.ClientOptions{}, []string{"server"}},
		{"another scheme", "ftp://host", httpapi.ClientOptions{}, []string{"server"}},
		{"a socket", "unix:///run/weir.sock", httpapi.ClientOptions{}, []string{"server"}},
		{"a query", good + "?x=1", httpapi.ClientOptions{}, []string{"server"}},
		{"an empty query", good + "?", httpapi.ClientOptions{}, []string{"server"}},
		{"a fragment", good + "#x", httpapi.ClientOptions{}, []string{"server"}},
		{"a password", "http://user:hunter2@host", httpapi.ClientOptions{}, []string{"server"}},
		{
			"a password in no URL",
			"http://user:hunter2@ho st:port",
			httpapi.ClientOptions{},
			[]string{"server"},
		},
		{"attempts", good, httpapi.ClientOptions{Attempts: -1}, []string{"Attempts"}},
		{"too many attempts", good, httpapi.ClientOptions{Attempts: 1001}, []string{"Attempts"}},
		{"backoff", good, httpapi.ClientOptions{Backoff: -1}, []string{"Backoff"}},
		{"timeout", good, httpapi.ClientOptions{Timeout: -1}, []string{"Timeout"}},
		{"policy", good, httpapi.ClientOptions{OnUnavailable: "deny"}, []string{"OnUnavailable"}},
		{"bearer token", good, httpapi.ClientOptions{BearerToken: "hunter2\n"}, []string{"BearerToken"}},
		{
			"all at once",
			"x",
			httpapi.ClientOptions{Attempts: -1, Timeout: -1},
			[]string{"Attempts", "Timeout", "server"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := httpapi.NewClient(test.server, &test.options)
			var fields []string
			for _, e := range faults(err) {
				fields = append(fields, e.Field)
				if e.Code != weir.Invalid || e.Reason == "" {
					t.Errorf("got %+v, want an invalid field with a reason", e)
				}
			}
			if !slices.Equal(fields, test.fields) {
				t.Errorf("got %v, want mistakes in %v", err, test.fields)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error shows a secret: %v", err)
			}
		})
	}
	for _, server := range []string{good, good + "/", "https://host/weir/v2/", "http://[::1]:8080", "HTTP://HOST"} {
		if _, err := httpapi.NewClient(server, nil); err != nil {
			t.Errorf("%s: %v", server, err)
		}
	}
}

// faults returns the errors of weir in an error, in order.
func faults(err error) []*weir.Error {
	if e, ok := err.(*weir.Error); ok {
		return []*weir.Error{e}
	}
	switch e := err.(type) {
	case interface{ Unwrap() []error }:
		var all []*weir.Error
		for _, part := range e.Unwrap() {
			all = append(all, faults(part)...)
		}
		return all
	case interface{ Unwrap() error }:
		return faults(e.Unwrap())
	}
	return nil
}

// stub is a server with a handler from the test. It records the requests.
type stub struct {
	*httptest.Server

	mu       sync.Mutex
	requests []*http.Request
	bodies   []string
}

func newStub(t *testing.T, answer func(n int, w http.ResponseWriter, body string)) *stub {
	t.Helper()
	s := &stub{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		s.mu.Lock()
		s.requests, s.bodies = append(s.requests, r), append(s.bodies, string(body))
		n := len(s.bodies)
		s.mu.Unlock()
		answer(n, w, string(body))
	}))
	t.Cleanup(s.Server.Close)
	return s
}

func (s *stub) sent() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.bodies)
}

// client returns a client that does not wait long between attempts, and sends nothing after a call.
func (s *stub) client(t *testing.T, o httpapi.ClientOptions) *httpapi.Client {
	t.Helper()
	if o.CancelFor == 0 {
		o.CancelFor = -1
	}
	if o.Backoff == 0 {
		o.Backoff = time.Microsecond
	}
	c, err := httpapi.NewClient(s.URL, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// idIn returns the lease ID in a body.
func idIn(t *testing.T, body string) string {
	t.Helper()
	_, rest, ok := strings.Cut(body, `"lease_id":"`)
	id, _, closed := strings.Cut(rest, `"`)
	if !ok || !closed {
		t.Errorf("no lease ID in %s", body)
	}
	return id
}

func admitting(w http.ResponseWriter, id string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(
		w,
		`{"allowed":true,"lease_id":%q,"reserved_at_unix_ms":%d,"limits":[]}`,
		id,
		time.Now().UnixMilli(),
	)
}

var plainRequest = weir.Request{Entity: "a", Resource: "m", Costs: weir.Costs{"n": 1}}

// expectUnavailable checks that an error reports only an unknown outcome.
func expectUnavailable(t *testing.T, what string, err error) {
	t.Helper()
	if _, ok := errors.AsType[*weir.DeniedError](err); ok || !errors.Is(err, weir.Unavailable) {
		t.Errorf("%s: got %v, want unavailable", what, err)
	}
}

func TestClientRequests(t *testing.T) {
	t.Parallel()
	s := newStub(t, func(_ int, w http.ResponseWriter, body string) { admitting(w, idIn(t, body)) })
	c, err := httpapi.NewClient(s.URL+"/behind/a%2Fpath/", &httpapi.ClientOptions{BearerToken: "s3cret"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	limit := weir.Limit{Name: "n", Capacity: 9, RefillPeriod: 1500 * time.Millisecond, Shadow: true}
	for _, test := range []struct {
		request weir.Request
		want    string
	}{
		{plainRequest, `"entity":"a","resource":"m","costs":{"n":1}}`},
		{weir.Request{Entity: "a", Resource: "m"}, `"entity":"a","resource":"m"}`},
		{
			weir.Request{Charges: []weir.Charge{{Entity: "a", Resource: "m"}, {Costs: weir.Costs{"n": -1}}}},
			`"charges":[{"entity":"a","resource":"m"},{"entity":"","resource":"","costs":{"n":-1}}]}`,
		},
		{
			weir.Request{Entity: "a", Resource: "m", Limits: []weir.Limit{limit}},
			`"entity":"a","resource":"m","limits":{"n":{"capacity":9,"refill_period":1.5,"enforce":false}}}`,
		},
	} {
		lease, err := c.Reserve(t.Context(), &test.request)
		if err != nil {
			t.Fatal(err)
		}
		sent := s.sent()
		want := `{"lease_id":"` + lease.ID.String() + `",` + test.want
		if got := sent[len(sent)-1]; got != want {
			t.Errorf("%+v: sent %s, want %s", test.request, got, want)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	got := s.requests[0]
	for what, pair := range map[string][2]string{
		"path":         {got.URL.EscapedPath(), "/behind/a%2Fpath/v1/reserve"},
		"bearer token": {got.Header.Get("Authorization"), "Bearer s3cret"},
		"content type": {got.Header.Get("Content-Type"), "application/json"},
		"method":       {got.Method, http.MethodPost},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: got %s, want %s", what, pair[0], pair[1])
		}
	}
}

// TestClientRefuses checks that requests that JSON cannot express are refused with the limiter's
// errors, and not sent.
func TestClientRefuses(t *testing.T) {
	t.Parallel()
	s := newStub(t, func(_ int, w http.ResponseWriter, _ string) { w.WriteHeader(http.StatusTeapot) })
	c := s.client(t, httpapi.ClientOptions{})
	ctx, id := t.Context(), weir.NewLeaseID(time.Now())
	reserve := func(r *weir.Request) error { _, err := c.Reserve(ctx, r); return err }
	verb := func(_ *weir.Receipt, err error) error { return err }
	both := plainRequest
	both.Charges = []weir.Charge{{Entity: "b", Resource: "m"}}
	charged := &weir.Request{Charges: []weir.Charge{{Entity: "a", Resource: "\xff"}}}
	bad := weir.Costs{"\xff": 1}
	for _, test := range []struct {
		name  string
		err   error
		field string
	}{
		{"no request", reserve(nil), "request"},
		{"two forms", reserve(&both), "charges"},
		{"an entity that is no text", reserve(&weir.Request{Entity: "\xff"}), "entity"},
		{"a resource that is no text", reserve(charged), "charges[0].resource"},
		{"a cost that is no text", reserve(&weir.Request{Entity: "a", Costs: bad}), "costs.\uFFFD"},
		{"totals that are no text", verb(c.Adjust(ctx, id, 1, []weir.Costs{bad})), "totals.\uFFFD"},
		{"actuals that are no text", verb(c.Complete(ctx, id, []weir.Costs{nil, bad})), "actuals[1].\uFFFD"},
		{"an entity without a name", c.SetEntity(ctx, "", "", false), "entity"},
		{"an entity that is a direction", c.DeleteEntity(ctx, ".."), "entity"},
		{"no resource", c.SetLimits(ctx, weir.Subject{Entity: "a"}, nil), "resource"},
		{"a parent that is no text", c.SetEntity(ctx, "a", "\xff", false), "parent"},
		{"a policy that is no text", c.SetPolicy(ctx, "\xff"), "on_unavailable"},
	} {
		expectMistakes(t, test.name, test.err, test.field)
	}
	if _, err := c.Cancel(ctx, weir.LeaseID{}); !errors.Is(err, weir.UnknownLease) {
		t.Errorf("the zero lease: got %v, want unknown lease", err)
	}
	if sent := s.sent(); len(sent) > 0 {
		t.Errorf("%d requests were sent, want none: %v", len(sent), sent)
	}
}

// expectMistakes checks the fields of the mistakes in an error.
func expectMistakes(t *testing.T, what string, err error, want ...string) {
	t.Helper()
	var fields []string
	for _, e := range faults(err) {
		fields = append(fields, e.Field)
		if e.Code != weir.Invalid || e.Reason == "" {
			t.Errorf("%s: got %+v, want invalid with a reason", what, e)
		}
	}
	if !slices.Equal(fields, want) {
		t.Errorf("%s: got %v, want mistakes in %v", what, err, want)
	}
}

// TestClientRefusesLimits checks that limits that JSON cannot express are refused as the limiter
// refuses them, all at once.
func TestClientRefusesLimits(t *testing.T) {
	t.Parallel()
	s := newStub(t, func(_ int, w http.ResponseWriter, _ string) { w.WriteHeader(http.StatusTeapot) })
	c := s.client(t, httpapi.ClientOptions{})
	day := weir.Limit{Name: "d", Kind: weir.Budget, Capacity: 1, Every: "day", Zone: "\xff"}
	half := weir.Limit{Name: "w", Kind: weir.Window, Capacity: 1, Window: time.Second / 2}
	for _, test := range []struct {
		name   string
		limit  weir.Limit
		fields []string
	}{
		{"twice", weir.Limit{Name: "n", Capacity: 2}, []string{"limits.n"}},
		{"half a second", half, []string{"limits.w.window"}},
		{"a microsecond", weir.Limit{Name: "b", Capacity: 1, RefillPeriod: 1000}, []string{"limits.b.refill_period"}},
		{"a period below zero", weir.Limit{Name: "b", Capacity: -1, RefillPeriod: -time.Second},
			[]string{"limits.b.capacity", "limits.b.refill_period"}},
		{"a zone that is no text", day, []string{"limits.d.zone"}},
	} {
		limits := []weir.Limit{{Name: "n", Capacity: 1}, test.limit}
		_, err := c.Reserve(t.Context(), &weir.Request{Entity: "a", Resource: "m", Limits: limits})
		expectMistakes(t, test.name, err, test.fields...)
		expectMistakes(t, test.name, c.SetLimits(t.Context(), weir.Subject{}, limits), test.fields...)
	}
	if sent := s.sent(); len(sent) > 0 {
		t.Errorf("%d requests were sent, want none: %v", len(sent), sent)
	}
}

func TestClientConnections(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	opened := 0
	server := httptest.NewUnstartedServer(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if r.Method == http.MethodGet {
				http.Error(w, strings.Repeat("x", 100_000), http.StatusBadGateway)
				return
			}
			admitting(w, idIn(t, string(body)))
		}),
	)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		mu.Lock()
		defer mu.Unlock()
		if state == http.StateNew {
			opened++
		}
	}
	server.Start()
	defer server.Close()
	given := &http.Client{Timeout: time.Minute, Transport: &http.Transport{}}
	defer given.CloseIdleConnections()
	before := *given
	for name, client := range map[string]*http.Client{"its own": nil, "the caller's": given} {
		mu.Lock()
		opened = 0
		mu.Unlock()
		c, err := httpapi.NewClient(server.URL, &httpapi.ClientOptions{HTTPClient: client, Backoff: 1})
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			if _, err := c.Reserve(context.Background(), &plainRequest); err != nil {
				t.Fatal(err)
			}
			_, err := c.Status(context.Background(), "a", "")
			expectUnavailable(t, "status", err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		mu.Lock()
		if opened > 2 {
			t.Errorf("%s: opened %d connections for 100 requests one after another", name, opened)
		}
		mu.Unlock()
	}
	if given.CheckRedirect != nil || given.Timeout != before.Timeout ||
		given.Transport != before.Transport {
		t.Errorf("the caller's HTTP client was changed: %+v", given)
	}
}
