package httphandler

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/weir-limiter/weir/internal/declared"
	"github.com/weir-limiter/weir/internal/server/statuspage"
)

// fullHandler returns a handler with all routes.
func fullHandler(w *exampleWorld) *Handler {
	return New(w.limiter, &Options{
		Admin: w.limiter, AdminNote: "holds until the next reload or restart", Activity: w.activity.Report,
		Limits: declared.New(w.limiter), Namespaces: NewNamespaceTable(),
		Records: w.records, StatusPage: statuspage.Page(), Now: w.clock,
		Authenticate: func(token string) (Identity, bool) {
			return Identity{Name: "test", Role: RoleAdmin, AllNamespaces: true}, token == exampleToken
		},
	})
}

// TestOpenAPI compares the document with the handler.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	h := fullHandler(newExampleWorld(t))
	for _, fault := range documentFaults(t, openAPIDocument, h) {
		t.Error(fault)
	}
	d := readDocument(t, openAPIDocument)
	t.Logf("%d operations, %d schemas", len(d.operations()), len(d.Components.Schemas))
	var patterns []string
	for _, o := range d.operations() {
		patterns = append(patterns, o.pattern())
	}
	slices.Sort(patterns)
	if got := slices.Sorted(slices.Values(h.Routes())); !slices.Equal(got, patterns) {
		t.Errorf("the handler has %q, the document %q", got, patterns)
	}
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/openapi.json", nil))
	if recorder.Code != http.StatusOK || !bytes.Equal(recorder.Body.Bytes(), openAPIFor("", true)) {
		t.Errorf("GET /openapi.json: got %d and %d bytes, want 200 and %d bytes",
			recorder.Code, recorder.Body.Len(), len(openAPIFor("", true)))
	}
}

func documentFaults(t *testing.T, text []byte, h *Handler) []string {
	t.Helper()
	if faults := formFaults(t, text); len(faults) > 0 {
		return faults
	}
	d := readDocument(t, text)
	return slices.Concat(routeFaults(d, h.routes()), schemaFaults(d))
}

// TestOpenAPIFaults makes the document wrong in several ways, and checks that each is found.
func TestOpenAPIFaults(t *testing.T) {
	t.Parallel()
	h := fullHandler(newExampleWorld(t))
	for _, c := range []struct{ name, from, to, want string }{
		{"no JSON", `{`, `[`, "invalid"},
		{"a path that is not served", `"/v1/cancel": {`, `"/v1/cancels": {`, "alone"},
		{"a method that is not served", "\"/v1/cancel\": {\n      \"post\"", "\"/v1/cancel\": {\n      \"put\"", "alone"},
		{"an operation twice", `"operationId": "getEntity"`, `"operationId": "setEntity"`, "twice"},
		{"a reference into nothing", `schemas/Receipt"}`, `schemas/Recipe"}`, "Recipe is not defined"},
		{"a component without use", `"schemas": {`, `"schemas": {"Spare": {"type": "object"},`, "Spare is not used"},
		{"a member that is not on the wire", `"holds_until_unix_ms": {`, `"holds_until": {`, "not on the wire"},
		{"another type", `"limits": {"$ref": "#/components/schemas/Limits"}`,
			`"limits": {"$ref": "#/components/schemas/Code"}`, "is string, want object"},
		{"a parameter that is not read", `"name": "after"`, `"name": "from"`, "parameters are"},
		{"a request that takes anything", `"additionalProperties": false`, `"additionalProperties": true`, "closed"},
		{"an answer that may lack something", `"required": ["lease_id", "at_unix_ms"]`,
			`"required": ["lease_id"]`, "at_unix_ms: always there"},
		{"another role", `"tags": ["leases"]`, `"tags": ["questions"]`, "tags are"},
		{"open to all", `"operationId": "status",`, `"operationId": "status", "security": [],`, "open to all"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(string(openAPIDocument), c.from, c.to, 1)
			if text == string(openAPIDocument) {
				t.Fatalf("the document has no %q", c.from)
			}
			faults := documentFaults(t, []byte(text), h)
			if !slices.ContainsFunc(faults, func(s string) bool { return strings.Contains(s, c.want) }) {
				t.Errorf("got %q, want one with %q", faults, c.want)
			}
		})
	}
}

// TestOpenAPIMatchesTheServer checks that the served document names the version of the program, and
// requires bearer tokens only if the server does.
func TestOpenAPIMatchesTheServer(t *testing.T) {
	t.Parallel()
	for _, tokens := range []bool{false, true} {
		o := &Options{Version: `v1.2.3 "dirty"`}
		if tokens {
			o.Authenticate = func(string) (Identity, bool) { return Identity{}, false }
		}
		recorder := httptest.NewRecorder()
		New(nil, o).ServeHTTP(recorder,
			httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/openapi.json", nil))
		var got struct {
			Info       struct{ Version string }
			Security   []map[string][]string
			Components struct{ SecuritySchemes map[string]any }
		}
		if err := json.Unmarshal(recorder.Body.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		if got.Info.Version != o.Version {
			t.Errorf("got version %q, want %q", got.Info.Version, o.Version)
		}
		if len(got.Security) > 0 != tokens || len(got.Components.SecuritySchemes) > 0 != tokens {
			t.Errorf("with bearer tokens %t: got security %v and schemes %v", tokens, got.Security,
				got.Components.SecuritySchemes)
		}
	}
}
