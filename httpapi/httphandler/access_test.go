package httphandler_test

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi/httphandler"
	"github.com/weir-limiter/weir/internal/server/statuspage"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// roleTokens authenticates the tests' bearer tokens. A token is the word of its role, followed by
// "-token".
func roleTokens(token string) (httphandler.Identity, bool) {
	for _, role := range []httphandler.Role{
		httphandler.RoleNone, httphandler.RoleRead, httphandler.RoleCall, httphandler.RoleAdmin,
	} {
		if token == role.String()+"-token" {
			return httphandler.Identity{Name: "somebody", Role: role, AllNamespaces: true}, true
		}
	}
	return httphandler.Identity{}, false
}

// routeRequests returns a valid request for each route of the API, with the weakest role that may
// send it.
func routeRequests() map[string]struct {
	sent
	role httphandler.Role
} {
	type request = struct {
		sent
		role httphandler.Role
	}
	const none, read = httphandler.RoleNone, httphandler.RoleRead
	const call, admin = httphandler.RoleCall, httphandler.RoleAdmin
	limits := `{"limits":{"rpm":{"capacity":3}}}`
	lease := `{"lease_id":"01ARZ3NDEKTSV4RRFFQ69G5FAV"`
	requests := map[string]request{}
	add := func(role httphandler.Role, pattern, target, body string) {
		method, path, _ := strings.Cut(pattern, " ")
		if target == "" {
			target = path
		}
		requests[pattern] = request{sent{method: method, target: target, body: body}, role}
	}
	add(none, "GET /healthz", "", "")
	add(none, "GET /readyz", "", "")
	add(none, "GET /openapi.json", "", "")
	add(call, "POST /v1/reserve", "", `{"entity":"acme","resource":"bucket"}`)
	add(call, "POST /v1/adjust", "", lease+`,"seq":1,"totals":{}}`)
	add(call, "POST /v1/complete", "", lease+`}`)
	add(call, "POST /v1/cancel", "", lease+`}`)
	add(call, "POST /v1/extend", "", lease+`}`)
	add(read, "GET /v1/status", "/v1/status?entity=acme", "")
	add(read, "GET /v1/explain", "/v1/explain?entity=acme&resource=bucket", "")
	add(read, "GET /v1/entities/{entity}/children", "/v1/entities/acme/children", "")
	add(read, "GET /v1/entities/{entity}/resources", "/v1/entities/acme/resources", "")
	add(read, "GET /v1/resources", "", "")
	add(read, "GET /v1/resources/{resource}/capacity", "/v1/resources/bucket/capacity", "")
	add(read, "GET /v1/usage", "/v1/usage?entity=acme", "")
	add(read, "GET /v1/audit", "", "")
	add(read, "GET /v1/activity", "", "")
	add(admin, "GET /v1/admin/system", "", "")
	add(admin, "PUT /v1/admin/system/on_unavailable", "", `{"on_unavailable":"allow"}`)
	add(admin, "GET /v1/admin/system/retention", "", "")
	add(admin, "PUT /v1/admin/system/retention", "", `{"usage_days":7}`)
	for _, place := range []struct{ path, target string }{
		{"/v1/admin/system/limits", ""},
		{"/v1/admin/resources/{resource}/limits", "/v1/admin/resources/bucket/limits"},
		{"/v1/admin/entities/{entity}/limits", "/v1/admin/entities/acme/limits"},
	} {
		add(admin, "GET "+place.path, place.target, "")
		add(admin, "PUT "+place.path, place.target, limits)
		add(admin, "DELETE "+place.path, place.target, "")
	}
	file := `{"text":"version: 1\nresources: {r: {limits: {rpm: {capacity: 3}}}}\n"}`
	add(admin, "POST /v1/admin/limits/plan", "", file)
	add(admin, "POST /v1/admin/limits/apply", "", file)
	add(admin, "GET /v1/admin/limits/export", "", "")
	const namespaces = "/v1/admin/namespaces"
	add(admin, "GET "+namespaces, "", "")
	add(admin, "GET "+namespaces+"/{namespace}", namespaces+"/prod", "")
	add(admin, "PUT "+namespaces+"/{namespace}", namespaces+"/new", `{}`)
	add(admin, "DELETE "+namespaces+"/{namespace}", namespaces+"/prod", "")
	const byID = namespaces + "/{namespace_id}"
	add(admin, "POST "+byID+"/recover", namespaces+"/37b3m1eXQTY/recover", `{}`)
	add(admin, "POST "+byID+"/purge", namespaces+"/37b3m1eXQTY/purge", `{}`)
	add(admin, "GET /v1/admin/entities", "", "")
	add(admin, "GET /v1/admin/entities/{entity}", "/v1/admin/entities/acme", "")
	add(admin, "PUT /v1/admin/entities/{entity}", "/v1/admin/entities/new", `{}`)
	add(admin, "DELETE /v1/admin/entities/{entity}", "/v1/admin/entities/team%2Fa", "")
	return requests
}

func TestEveryRouteIsTested(t *testing.T) {
	t.Parallel()
	w := newHandlerWorld(t, &httphandler.Options{Activity: statuspage.NewActivity(time.Now()).Report})
	requests := routeRequests()
	for _, pattern := range w.handler.Routes() {
		if _, ok := requests[pattern]; !ok {
			t.Errorf("%s is served, but not tested here", pattern)
		}
	}
	for pattern := range requests {
		if !slices.Contains(w.handler.Routes(), pattern) {
			t.Errorf("%s is tested here, but not served", pattern)
		}
	}
}

// TestRoles calls every route with every role, and without a bearer token.
func TestRoles(t *testing.T) {
	t.Parallel()
	cases := 0
	for pattern, request := range routeRequests() {
		for _, token := range []string{"", "wrong", "none-token", "read-token", "call-token",
			"admin-token"} {
			cases++
			w := newHandlerWorld(t, &httphandler.Options{
				Authenticate: roleTokens, Activity: statuspage.NewActivity(time.Now()).Report,
			})
			before := w.state()
			s := request.sent
			if token != "" {
				s.header = []string{"Authorization", "Bearer " + token}
			}
			a := w.ask(s)
			identity, known := roleTokens(token)
			switch {
			case request.role == httphandler.RoleNone || known && identity.Role >= request.role:
				// The requests are valid except that their leases are unknown.
				if a.status != http.StatusOK && a.body["code"] != "unknown lease" {
					t.Errorf("%s as %q: %d %s", pattern, token, a.status, a.text)
				}
				continue
			case known:
				a.want(t, 403, "type", "about:blank", "title", "Forbidden", "code", "permission denied",
					"field", "role", "value", identity.Role.String(),
					"reason", "must be "+request.role.String()+" or higher for this request")
			default:
				a.want(t, 401, "type", "about:blank", "title", "Unauthorized",
					"code", "permission denied", "field", "Authorization")
			}
			if !strings.HasPrefix(a.header.Get("WWW-Authenticate"), "Bearer") {
				t.Errorf("%s as %q: challenge %q", pattern, token, a.header.Get("WWW-Authenticate"))
			}
			w.unchanged(before)
		}
	}
	t.Logf("%d cases", cases)
}

func TestBearerToken(t *testing.T) {
	t.Parallel()
	w := newHandlerWorld(t, &httphandler.Options{Authenticate: roleTokens})
	for _, c := range []struct {
		name, challenge, reason string
		status                  int
		header                  []string
	}{
		{"none", `Bearer`, "must be given", 401, nil},
		{"right", ``, "", 200, []string{"Authorization", "Bearer read-token"}},
		{"scheme in capitals", ``, "", 200, []string{"Authorization", "BEARER read-token"}},
		{"scheme in small letters", ``, "", 200, []string{"Authorization", "bearer read-token"}},
		{"two spaces", ``, "", 200, []string{"Authorization", "Bearer  read-token "}},
		{"wrong", `Bearer error="invalid_token"`, "the bearer token is not known", 401,
			[]string{"Authorization", "Bearer secret-1"}},
		{"in capitals", `Bearer error="invalid_token"`, "the bearer token is not known", 401,
			[]string{"Authorization", "Bearer READ-TOKEN"}},
		{"padded", `Bearer error="invalid_token"`, "the bearer token is not known", 401,
			[]string{"Authorization", "Bearer read-token=="}},
		{"no scheme", `Bearer error="invalid_request"`, "the scheme Bearer", 401,
			[]string{"Authorization", "read-token"}},
		{"other scheme", `Bearer error="invalid_request"`, "the scheme Bearer", 401,
			[]string{"Authorization", "Basic cmVhZC10b2tlbg=="}},
		{"scheme alone", `Bearer error="invalid_request"`, "must have a bearer token", 401,
			[]string{"Authorization", "Bearer"}},
		{"empty", `Bearer error="invalid_request"`, "must have a bearer token", 401,
			[]string{"Authorization", "Bearer "}},
		{"padding alone", `Bearer error="invalid_request"`, "must have a bearer token", 401,
			[]string{"Authorization", "Bearer =="}},
		{"two words", `Bearer error="invalid_request"`, "has characters", 401,
			[]string{"Authorization", "Bearer read-token x"}},
		{"a comma", `Bearer error="invalid_request"`, "has characters", 401,
			[]string{"Authorization", "Bearer read-token,x"}},
		{"not ASCII", `Bearer error="invalid_request"`, "has characters", 401,
			[]string{"Authorization", "Bearer sécret"}},
		{"padding inside", `Bearer error="invalid_request"`, "has characters", 401,
			[]string{"Authorization", "Bearer a=b"}},
		{
			"twice", `Bearer error="invalid_request"`, "is given twice", 401,
			[]string{"Authorization", "Bearer read-token", "Authorization", "Bearer read-token"},
		},
	} {
		a := w.ask(sent{method: "GET", target: "/v1/status?entity=acme", header: c.header})
		reason, _ := a.body["reason"].(string)
		if a.status != c.status || a.header.Get("WWW-Authenticate") != c.challenge ||
			!strings.Contains(reason, c.reason) {
			t.Errorf("%s: %d %q %s", c.name, a.status, a.header.Get("WWW-Authenticate"), a.text)
		}
		if strings.Contains(a.text, `\"\"`) {
			t.Errorf("%s: an empty value is quoted: %s", c.name, a.text)
		}
		if a.body["value"] != nil || strings.Contains(a.text, "secret-1") ||
			strings.Contains(a.text, "sécret") {
			t.Errorf("%s: the bearer token is in %s", c.name, a.text)
		}
	}
}

// TestUnauthorizedBodyIsNotRead checks that the handler does not read the body of a request that it
// does not authorize, and never logs a bearer token.
func TestUnauthorizedBodyIsNotRead(t *testing.T) {
	t.Parallel()
	var logged bytes.Buffer
	w := newHandlerWorld(t, &httphandler.Options{
		Authenticate: roleTokens,
		Logger:       slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	for _, token := range []string{"", "Bearer secret-1", "Bearer read-token"} {
		body := &countingReader{}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/reserve", body)
		r.Header.Set("Authorization", token)
		recorder := httptest.NewRecorder()
		w.handler.ServeHTTP(recorder, r)
		if recorder.Code != 401 && recorder.Code != 403 || body.reads != 0 {
			t.Errorf("%q: %d after %d reads", token, recorder.Code, body.reads)
		}
	}
	body := &countingReader{}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/reserve", body)
	r.Header.Set("Authorization", "Bearer call-token")
	r.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	w.handler.ServeHTTP(recorder, r)
	if recorder.Code != 400 || body.reads == 0 {
		t.Errorf("as call: %d after %d reads", recorder.Code, body.reads)
	}
	if strings.Contains(logged.String(), "secret-1") || strings.Contains(logged.String(), "-token") {
		t.Errorf("a bearer token is in the log: %s", &logged)
	}
}

type countingReader struct{ reads int }

func (r *countingReader) Read([]byte) (int, error) {
	r.reads++
	return 0, io.EOF
}

// TestBroughtLimits checks that only an admin may bring limits in a reserve, even an empty object
// of them.
func TestBroughtLimits(t *testing.T) {
	t.Parallel()
	w := newHandlerWorld(t, &httphandler.Options{Authenticate: roleTokens})
	before := w.state()
	ask := func(token, limits string) *answered {
		t.Helper()
		return w.ask(sent{
			method: "POST", target: "/v1/reserve", header: []string{"Authorization", "Bearer " + token},
			body: `{"entity":"acme","resource":"bucket","costs":{"tpm":30},"limits":` + limits + `}`,
		})
	}
	for _, limits := range []string{`{}`, `{"tpm":{"capacity":100}}`, `null`,
		`{"tpm":{"capacity":"x"}}`} {
		ask("call-token", limits).want(t, 403, "code", "permission denied", "field", "limits", "value",
			nil)
	}
	w.unchanged(before)
	a := ask("admin-token", `{"tpm":{"capacity":50}}`)
	a.want(t, 200)
	if s := a.first(t); s["capacity"] != 50.0 || s["available"] != 20.0 {
		t.Errorf("lowered limit is %v", s)
	}
	ask("admin-token", `{"tpm":{"capacity":50}}`).want(t, 429)
	ask("admin-token", `{"tpm":{"capacity":5000}}`).want(t, 200)
	ask("admin-token", `{"tpm":{"capacity":20}}`).want(t, 422, "field", "costs.tpm", "value", "30")
	// Without Authenticate every caller is an admin.
	open := newHandlerWorld(t, nil)
	open.reserve(`{"entity":"acme","resource":"bucket","costs":{"tpm":30},"limits":{"tpm":{"capacity":50}}}`).
		want(t, 200)
}

func TestRoleString(t *testing.T) {
	t.Parallel()
	for role, want := range map[httphandler.Role]string{
		httphandler.RoleNone: "none", httphandler.RoleRead: "read", httphandler.RoleCall: "call",
		httphandler.RoleAdmin: "admin", 17: "none",
	} {
		if got := role.String(); got != want {
			t.Errorf("role %d is %q, want %q", role, got, want)
		}
	}
}

// TestCallerNames checks that a caller is the owner of a bearer token or, without bearer tokens,
// the address of the request or of its connection. Each caller may have one live lease here.
func TestCallerNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, one, other string // the addresses of two callers
		tokens, same     bool
	}{
		{name: "one address", one: "192.0.2.7:1234", other: "192.0.2.7:99", same: true},
		{name: "two addresses", one: "192.0.2.7:1234", other: "192.0.2.8:1234"},
		{name: "IPv4 in IPv6", one: "192.0.2.7:1234", other: "[::ffff:192.0.2.7]:1234", same: true},
		{name: "a network", one: "[2001:db8:1:2:3::4%eth0]:1", other: "[2001:db8:1:2::5]:1", same: true},
		{name: "two networks", one: "[2001:db8:1:2::4]:1", other: "[2001:db8:1:3::4]:1"},
		{name: "one token", one: "192.0.2.7:1234", other: "192.0.2.8:1234", tokens: true, same: true},
	} {
		for _, early := range []bool{false, true} {
			store, err := memory.Open(nil)
			if err != nil {
				t.Fatal(err)
			}
			l, err := limiter.New(store, &limiter.Options{MaxLeases: 10, MaxLeasesPerCaller: 1, Limits: []weir.Limit{
				{Name: "rpm", Kind: weir.Bucket, Capacity: 10, RefillAmount: 10, RefillPeriod: time.Minute},
			}})
			if err != nil {
				t.Fatal(err)
			}
			o := &httphandler.Options{}
			if c.tokens {
				o.Authenticate = roleTokens
			}
			h := httphandler.New(l, o)
			for _, call := range []struct {
				from string
				want int
			}{
				{c.one, http.StatusOK},
				{c.other, map[bool]int{false: http.StatusOK, true: http.StatusServiceUnavailable}[c.same]},
			} {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/reserve",
					strings.NewReader(`{"entity":"acme","resource":"llm","costs":{"rpm":1}}`))
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Authorization", "Bearer call-token")
				if r.RemoteAddr = call.from; early {
					r = r.WithContext(httphandler.ConnContext(r.Context(), remoteConn{from: remoteAddr(call.from)}))
					r.RemoteAddr = "203.0.113.1:1"
				}
				w := httptest.NewRecorder()
				if h.ServeHTTP(w, r); w.Code != call.want {
					t.Errorf("%s, by its connection %v: got %d %s, want %d", c.name, early, w.Code, w.Body, call.want)
				}
			}
		}
	}
}

// remoteConn is a connection from a given address.
type remoteConn struct {
	net.Conn

	from remoteAddr
}

func (c remoteConn) RemoteAddr() net.Addr { return c.from }

// remoteAddr is a remote address.
type remoteAddr string

func (remoteAddr) Network() string { return "tcp" }

func (a remoteAddr) String() string { return string(a) }

// TestRequire checks that Require guards another handler in the same way as the API guards its own
// routes.
func TestRequire(t *testing.T) {
	t.Parallel()
	known := map[string]httphandler.Identity{
		"reader": {Name: "r", Role: httphandler.RoleRead}, "caller": {Name: "c", Role: httphandler.RoleCall},
		"": {Name: "nobody", Role: httphandler.RoleAdmin}, // Authenticate is not called without a bearer token
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
