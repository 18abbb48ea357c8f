package httphandler_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/httpapi/httphandler"
)

// told is a [httphandler.Trail] that keeps what it was told, a line each.
type told struct {
	mu    sync.Mutex
	lines []string
}

func (o *told) Changed(_ context.Context, c *httphandler.Change) {
	result := "done"
	if c.Err != nil {
		result = c.Err.Error()
	}
	o.add(fmt.Sprintf("%s %+v by %s: %q to %q, %d %s", c.Action, c.At, c.By.Name, c.Before, c.After,
		c.Status, result))
}

func (o *told) Refused(_ context.Context, r *httphandler.Refusal) {
	o.add(fmt.Sprintf("%s %s by %s, %d %s", r.Kind, r.Request.Pattern, r.By.Name, r.Status, r.Reason))
}

func (o *told) add(line string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lines = append(o.lines, line)
}

// take returns the only line since the last call.
func (o *told) take(t *testing.T) string {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	lines := o.lines
	o.lines = nil
	if len(lines) > 1 {
		t.Errorf("got %q, want at most one line", lines)
	}
	return strings.Join(lines, "\n")
}

// trailCases are requests, and how what the trail is told of them begins.
var trailCases = []struct{ bearer, method, path, body, want string }{
	{
		"admin", "PUT", "/v1/admin/system/limits", `{"limits":{"rpm":{"capacity":7,"enforce":false}}}`,
		`limits_set {Entity: Resource:} by the-admin: "rpm 10 per 60s" to "rpm 7 per 60s (not enforced)", 200 done`,
	},
	{
		"admin", "DELETE", "/v1/admin/resources/window/limits", "",
		`limits_deleted {Entity: Resource:window} by the-admin: "hourly 10 in 1h0m0s" to "none", 200 done`,
	},
	{
		"admin", "DELETE", "/v1/admin/resources/money/limits", "",
		`limits_deleted {Entity: Resource:money} by the-admin: "usd 100 each month in Europe/Berlin" to "none", 200 done`,
	},
	{
		"admin", "DELETE", "/v1/admin/resources/bucket/limits", "",
		`limits_deleted {Entity: Resource:bucket} by the-admin: "rpm 600 per 60s, tpm 1000 + 500 per 30s" to "none", 200 done`,
	},
	{
		"admin", "DELETE", "/v1/admin/entities/slots/limits?resource=key", "",
		`limits_deleted {Entity:slots Resource:key} by the-admin: "units 2 at once" to "none", 200 done`,
	},
	{
		"admin", "PUT", "/v1/admin/entities/new", `{"parent":"acme"}`,
		`entity_set {Entity:new Resource:} by the-admin: "none" to "parent acme", 200 done`,
	},
	{
		"admin", "PUT", "/v1/admin/entities/new", `{"name":"The new one","metadata":{"team":"x","b":"y"}}`,
		`entity_set {Entity:new Resource:} by the-admin: "parent acme" to "no parent, name \"The new one\", metadata b team", 200 done`,
	},
	{
		"admin", "DELETE", "/v1/admin/entities/team%2Fa", "",
		`entity_deleted {Entity:team/a Resource:} by the-admin: "no parent, limits on 1 resources" to "none", 200 done`,
	},
	{
		"admin", "DELETE", "/v1/admin/entities/nobody", "",
		`entity_deleted {Entity:nobody Resource:} by the-admin: "none" to "", 404`,
	},
	{
		"admin", "PUT", "/v1/admin/system/on_unavailable", `{"on_unavailable":"allow"}`,
		`on_unavailable_set {Entity: Resource:} by the-admin: "block" to "allow", 200 done`,
	},
	{
		"admin", "PUT", "/v1/admin/system/retention", `{"usage_days":7,"ttl_multiplier":9}`,
		`retention_set {Entity: Resource:} by the-admin: "usage_days 30" to "usage_days 7, ttl_multiplier 9", 200 done`,
	},
	{
		"admin", "PUT", "/v1/admin/system/retention", `{"usage_days":"x"}`,
		`retention_set {Entity: Resource:} by the-admin: "usage_days 7, ttl_multiplier 9" to "", 400`,
	},
	{
		"admin", "PUT", "/v1/admin/entities/new", strings.Repeat("x", 101),
		`entity_set {Entity:new Resource:} by the-admin: "" to "", 413`,
	},
	{
		"call", "PUT", "/v1/admin/entities/new", `{}`,
		"role PUT /v1/admin/entities/{entity} by the-call, 403 role must be admin",
	},
	{"nobody", "GET", "/v1/status", "", "token GET /v1/status by , 401 Authorization the bearer token is"},
	{"", "POST", "/v1/reserve", "{}", "token POST /v1/reserve by , 401 Authorization must be given"},
	{"call", "POST", "/v1/reserve", strings.Repeat("x", 101), "body POST /v1/reserve by the-call, 413 body"},
	{"call", "POST", "/v1/reserve", "{", "request POST /v1/reserve by the-call, 400 body"},
	{"call", "GET", "/v1/status?entity=a%0Ab", "", "request GET /v1/status by the-call, 400 entity"},
	{
		"call", "POST", "/v1/reserve", `{"entity":"a","resource":"b","costs":{"rpm":1},"limits":{}}`,
		"role POST /v1/reserve by the-call, 403 limits only the role admin",
	},
	{"read", "GET", "/v1/status?entity=acme", "", ""},
	{"call", "POST", "/v1/reserve", `{"entity":"acme","resource":"key","costs":{"no":1}}`, ""}, // 404
	{"admin", "GET", "/v1/admin/system", "", ""},
	{"call", "GET", "/v1/nothing", "", ""},
}

// TestTrail checks what the trail is told of each kind of request.
func TestTrail(t *testing.T) {
	t.Parallel()
	trail := &told{}
	w := newHandlerWorld(t, &httphandler.Options{
		Authenticate: func(bearer string) (httphandler.Identity, bool) {
			for _, role := range []httphandler.Role{
				httphandler.RoleRead, httphandler.RoleCall, httphandler.RoleAdmin,
			} {
				if bearer == role.String() {
					return httphandler.Identity{Name: "the-" + bearer, Role: role}, true
				}
			}
			return httphandler.Identity{}, false
		},
		Trail: trail, MaxBody: 100,
	})
	for _, c := range trailCases {
		header := http.Header{"Content-Type": {"application/json"}}
		if c.bearer != "" {
			header.Set("Authorization", "Bearer "+c.bearer)
		}
		r := httptest.NewRequestWithContext(t.Context(), c.method, c.path, strings.NewReader(c.body))
		r.Header = header
		w.handler.ServeHTTP(httptest.NewRecorder(), r)
		got := trail.take(t)
		if !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s %s as %q:\n got %s\nwant %s", c.method, c.path, c.bearer, got, c.want)
		}
	}
}

// panickingAdmin panics when a policy is set.
type panickingAdmin struct{ httpapi.Admin }

func (panickingAdmin) SetPolicy(context.Context, weir.Policy) error { panic("oh") }

// TestPanicIsTold checks that the trail is told of a change whose outcome a panic has left unknown.
func TestPanicIsTold(t *testing.T) {
	t.Parallel()
	w := newHandlerWorld(t, nil)
	trail := &told{}
	h := httphandler.New(w.limiter, &httphandler.Options{Admin: panickingAdmin{w.limiter}, Trail: trail})
	r := httptest.NewRequestWithContext(t.Context(), "PUT", "/v1/admin/system/on_unavailable",
		strings.NewReader(`{"on_unavailable":"allow"}`))
	r.Header.Set("Content-Type", "application/json")
	got := httptest.NewRecorder()
	h.ServeHTTP(got, r)
	const want = `on_unavailable_set {Entity: Resource:} by : "block" to "", 503 weir: unavailable`
	if line := trail.take(t); got.Code != http.StatusServiceUnavailable || !strings.HasPrefix(line, want) {
		t.Errorf("got %d and %s, want 503 and %s", got.Code, line, want)
	}
}

// TestDetails checks that details are filled in only if the logger logs at debug level.
func TestDetails(t *testing.T) {
	t.Parallel()
	for level, want := range map[slog.Level]httphandler.Details{
		slog.LevelDebug: {
			By:     httphandler.Identity{Role: httphandler.RoleAdmin},
			Entity: "acme-bot", Resource: "bucket", Charged: []string{"tpm", "acme#bucket#tpm"},
		},
		slog.LevelInfo: {},
	} {
		w := newHandlerWorld(t, &httphandler.Options{
			Logger: slog.New(slog.NewTextHandler(&strings.Builder{}, &slog.HandlerOptions{Level: level})),
		})
		ctx, got := httphandler.ContextWithDetails(t.Context())
		r := httptest.NewRequestWithContext(ctx, "POST", "/v1/reserve",
			strings.NewReader(`{"entity":"acme-bot","resource":"bucket","costs":{"tpm":5}}`))
		r.Header.Set("Content-Type", "application/json")
		w.handler.ServeHTTP(httptest.NewRecorder(), r)
		made := !got.LeaseID.IsZero()
		got.LeaseID = weir.LeaseID{}
		if made != (level == slog.LevelDebug) || got.By != want.By || got.Entity != want.Entity ||
			got.Resource != want.Resource || !slices.Equal(got.Charged, want.Charged) {
			t.Errorf("%v: got %+v, with a lease: %t, want %+v", level, got, made, want)
		}
	}
}
