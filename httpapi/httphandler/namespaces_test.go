package httphandler_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi/httphandler"
	"github.com/weir-limiter/weir/namespace"
)

// namespaceCases are requests, one after the other, and their answers.
var namespaceCases = []struct {
	method, target, body string
	status               int
	want                 []any // alternating members and values
	told                 string
}{
	{"GET", "/prod", "", 200, []any{"namespace_id", "Xw1rT9uVb2E", "registered", nil}, ""},
	{"GET", "/nobody", "", 404, []any{"code", "not found", "field", "namespace"}, ""},
	{"GET", "?orphans=false", "", 200, nil, ""},
	{"GET", "?orphans=maybe", "", 400, []any{"field", "orphans", "value", "maybe"}, ""},
	{
		"PUT", "/a%2Fb", "{}", 400, []any{"field", "namespace", "value", "a/b"},
		"namespace_registered a/b 400",
	},
	{
		"PUT", "/new", `{"name":"x"}`, 400, []any{"field", "name"},
		"namespace_registered new 400",
	},
	{
		"PUT", "/new", "{}", 200, []any{"namespace_id", "new", "registered", true},
		"namespace_registered new 200 new new active",
	},
	{
		"PUT", "/new", "{}", 200, []any{"registered", false},
		"namespace_registered new 200 new new active",
	},
	{
		"DELETE", "/prod?yes=true", "", 409, []any{"field", "namespace", "value", "prod"},
		"namespace_deleted prod 409",
	},
	{"DELETE", "/default", "", 409, []any{"code", "conflict"}, "namespace_deleted default 409"},
	{
		"DELETE", "/default?yes=1", "", 400, []any{"field", "yes"},
		"namespace_deleted default 400",
	},
	{
		"DELETE", "/default?yes=true", "", 200, []any{"status", "deleted"},
		"namespace_deleted default 200 default q0pYl3cWzKs deleted",
	},
	{
		"DELETE", "/new", "", 200, []any{"status", "deleted"},
		"namespace_deleted new 200 new new deleted",
	},
	{"DELETE", "/new", "", 404, []any{"field", "namespace"}, "namespace_deleted new 404"},
	{
		"POST", "/new/recover", "{}", 200, []any{"status", "active"},
		"namespace_recovered new 200 new new active",
	},
	{
		"POST", "/new/recover", "{}", 409, []any{"field", "namespace_id"},
		"namespace_recovered new 409",
	},
	{"POST", "/new/recover", "", 400, []any{"field", "body"}, "namespace_recovered new 400"},
	{
		"POST", "/new/purge", "{}", 409, []any{"field", "namespace_id"},
		"namespace_purged new 409",
	},
	{
		"POST", "/37b3m1eXQTY/purge", `{"scan":1}`, 400, []any{"field", "scan"},
		"namespace_purged 37b3m1eXQTY 400",
	},
	{
		"POST", "/37b3m1eXQTY/purge", `{"scan":true}`, 200, []any{"deleted_items", 5.0},
		"namespace_purged 37b3m1eXQTY 200 5 items deleted",
	},
	{
		"POST", "/37b3m1eXQTY/recover", `{}`, 404, []any{"field", "namespace_id"},
		"namespace_recovered 37b3m1eXQTY 404",
	},
}

// TestNamespaces administers namespaces through the routes. What is refused changes nothing.
func TestNamespaces(t *testing.T) {
	t.Parallel()
	const all = "/v1/admin/namespaces"
	trail := &toldTrail{}
	w := newHandlerWorld(t, &httphandler.Options{Namespace: "prod", Trail: trail})
	w.get(all).want(t, 200)
	for _, c := range namespaceCases {
		trail.changes = nil
		w.send(c.method, all+c.target, c.body).want(t, c.status, c.want...)
		var told strings.Builder
		for _, change := range trail.changes {
			told.WriteString(strings.TrimSpace(change.Action + " " + change.Namespace + " " +
				strconv.Itoa(change.Status) + " " + change.After))
		}
		if told.String() != c.told {
			t.Errorf("%s %s: told %q, want %q", c.method, c.target, told.String(), c.told)
		}
	}
	w.send("DELETE", all+"/new", "", "If-Match", `"x"`).want(t, 400, "field", "If-Match")
	w.send("PUT", all+"/new", "{}", "If-None-Match", "*").want(t, 400, "field", "If-None-Match")
	w.get(all+"/new").want(t, 200)
}

// TestNamespacesOfOneToken checks that an admin whose bearer token is for the namespace of the
// service reaches no route of namespaces, and everything else.
func TestNamespacesOfOneToken(t *testing.T) {
	t.Parallel()
	table := httphandler.NewNamespaceTable()
	trail := &toldTrail{}
	w := newHandlerWorld(t, &httphandler.Options{
		Namespaces: table, Trail: trail,
		Authenticate: func(token string) (httphandler.Identity, bool) {
			return httphandler.Identity{
				Name: token, Role: httphandler.RoleAdmin, AllNamespaces: token == "all",
			}, true
		},
	})
	refused := 0
	for pattern, request := range routeRequests() {
		s := request.sent
		s.header = []string{"Authorization", "Bearer one"}
		if !strings.Contains(pattern, "/v1/admin/namespaces") {
			if a := w.ask(s); a.status == http.StatusForbidden {
				t.Errorf("%s: %s", pattern, a.text)
			}
			continue
		}
		refused++
		a := w.ask(s)
		a.want(t, 403, "code", "permission denied", "field", "namespaces")
		if got := a.header.Get("WWW-Authenticate"); !strings.Contains(got, "insufficient_scope") {
			t.Errorf("%s: got the challenge %q", pattern, got)
		}
	}
	if refused != 6 || trail.refusals < refused {
		t.Errorf("refused %d routes, and told %d refusals", refused, trail.refusals)
	}
	a := w.ask(sent{
		method: "GET", target: "/v1/admin/namespaces", header: []string{"Authorization", "Bearer all"},
	})
	a.want(t, 200)
	if list, _ := a.body["namespaces"].([]any); len(list) != 2 {
		t.Errorf("after refusals: got %s", a.text)
	}
}

// patientPurge records whether its caller can still stop it, and until when it may take.
type patientPurge struct {
	namespace.Admin

	err   error
	until time.Time
}

func (p *patientPurge) PurgeNamespace(
	ctx context.Context, _ string, _ bool, _ func(int64),
) (int64, error) {
	p.err = ctx.Err()
	p.until, _ = ctx.Deadline()
	return 0, weir.NewError(weir.Unavailable, "", "", "stopped (7 items deleted so far)")
}

// TestPurgeStops checks that a purge stops with its client, or after a quarter of an hour, and that
// the answer says what was deleted.
func TestPurgeStops(t *testing.T) {
	t.Parallel()
	purge := &patientPurge{}
	w := newHandlerWorld(t, &httphandler.Options{Namespaces: purge})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	r := httptest.NewRequestWithContext(gone, http.MethodPost, "/v1/admin/namespaces/x/purge",
		strings.NewReader("{}"))
	r.Header.Set("Content-Type", "application/json")
	got := httptest.NewRecorder()
	w.handler.ServeHTTP(got, r)
	if !errors.Is(purge.err, context.Canceled) || time.Until(purge.until) > 15*time.Minute {
		t.Errorf("the purge has a context with %v until %v", purge.err, purge.until)
	}
	if got.Code != 503 || !strings.Contains(got.Body.String(), "7 items deleted so far") {
		t.Errorf("got %d %s", got.Code, got.Body)
	}
}

// TestNoNamespaces checks what the routes answer on a store without namespaces.
func TestNoNamespaces(t *testing.T) {
	t.Parallel()
	w := newHandlerWorld(t, nil)
	h := httphandler.New(w.limiter, &httphandler.Options{Admin: w.limiter, Store: "memory:"})
	routes := 0
	for pattern, request := range routeRequests() {
		if !strings.Contains(pattern, "/v1/admin/namespaces") {
			continue
		}
		routes++
		askHandler(t, h, request.sent).want(t, 400, "code", "unsupported", "field", "store",
			"value", "memory:", "reason", "has no namespaces to administer: only a DynamoDB table has")
	}
	if routes != 6 {
		t.Errorf("got %d routes, want 6", routes)
	}
}
