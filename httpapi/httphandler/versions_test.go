package httphandler_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/weir-limiter/weir/httpapi/httphandler"
)

// send sends a request with headers.
func (w *handlerWorld) send(method, target, body string, header ...string) *answered {
	w.t.Helper()
	return w.ask(sent{method: method, target: target, body: body, header: header})
}

// etag returns the ETag of an answer with status 200, which must have one.
func (a *answered) etag(t *testing.T) string {
	t.Helper()
	a.want(t, 200)
	tag := a.header.Get("ETag")
	if len(tag) < 3 || tag[0] != '"' || tag[len(tag)-1] != '"' {
		t.Errorf("the ETag is %s: %s", tag, a.text)
	}
	return tag
}

// TestETags changes a place of every sort and an entity on condition of an ETag.
func TestETags(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ target, first, second string }{
		{"/v1/admin/system/limits", `{"limits":{"a":{"capacity":1}}}`, `{"limits":{"a":{"capacity":2}}}`},
		{"/v1/admin/resources/x/limits", `{"limits":{"a":{"capacity":1}}}`, `{"limits":{"a":{"capacity":2}}}`},
		{"/v1/admin/entities/x/limits", `{"limits":{"a":{"capacity":1}}}`, `{"limits":{"a":{"capacity":2}}}`},
		{"/v1/admin/entities/y/limits?resource=x", `{"limits":{"a":{"capacity":1}}}`, `{"limits":{"a":{"capacity":2}}}`},
		{"/v1/admin/entities/z", `{"name":"First"}`, `{"name":"Second"}`},
	} {
		w := newHandlerWorld(t, &httphandler.Options{Authenticate: roleTokens})
		send := func(method, body string, header ...string) *answered {
			return w.send(method, c.target, body, append([]string{"Authorization", "Bearer admin-token"}, header...)...)
		}
		send("DELETE", "")
		if tag := send("GET", "").header.Get("ETag"); tag != "" {
			t.Errorf("%s: what is not there has the ETag %s", c.target, tag)
		}
		send("PUT", c.first, "If-Match", "*").want(t, 409, "code", "conflict", "field", "version")
		first := send("PUT", c.first, "If-None-Match", "*").etag(t)
		if got := send("GET", "").etag(t); got != first {
			t.Errorf("%s: got the ETag %s, want %s", c.target, got, first)
		}
		send("PUT", c.second, "If-None-Match", "*").want(t, 409, "field", "version", "value", nil,
			"current_version", strings.Trim(first, `"`), "changed_by", "somebody")
		second := send("PUT", c.second, "If-Match", first).etag(t)
		lost := send("PUT", c.first, "If-Match", first)
		lost.want(t, 409, "type", "urn:weir:problem:conflict", "field", "version", "value", strings.Trim(first, `"`),
			"current_version", strings.Trim(second, `"`), "changed_by", "somebody", "changed_at", "2026-03-02T12:00:00Z")
		if lost.header.Get("ETag") != "" || !strings.Contains(lost.body["detail"].(string), "somebody") ||
			!strings.Contains(lost.body["reason"].(string), "read it again") {
			t.Errorf("%s: got %s", c.target, lost.text)
		}
		if again := send("PUT", c.second, "If-Match", first).etag(t); again != second {
			t.Errorf("%s: a repeated change has the ETag %s, want %s", c.target, again, second)
		}
		send("DELETE", "", "If-Match", first).want(t, 409, "current_version", strings.Trim(second, `"`))
		send("DELETE", "", "If-Match", second).want(t, 200)
		for _, method := range []string{"PUT", "DELETE"} {
			body := map[string]string{"PUT": c.first}[method]
			gone := send(method, body, "If-Match", second)
			gone.want(t, 409, "field", "version", "current_version", nil, "changed_by", "somebody")
			if !strings.Contains(gone.body["reason"].(string), "deleted meanwhile: create it without a version") {
				t.Errorf("%s %s: got %s", method, c.target, gone.text)
			}
		}
		send("PUT", c.first).etag(t) // without a condition as before
	}
}

// TestBadConditions checks that malformed conditions are refused, and change nothing.
func TestBadConditions(t *testing.T) {
	t.Parallel()
	w := newHandlerWorld(t, nil)
	const limits = "/v1/admin/resources/bucket/limits"
	before := w.get(limits).etag(t)
	long := `"` + strings.Repeat("x", 129) + `"`
	for _, target := range []string{limits, "/v1/admin/entities/acme-bot"} {
		for _, c := range []struct{ name, value, reason string }{
			{"If-Match", "x", "must be * or one ETag"},
			{"If-Match", `W/"x"`, "must be * or one ETag"},
			{"If-Match", `"x`, "must be * or one ETag"},
			{"If-Match", `""`, "must be * or one ETag"},
			{"If-Match", `"a", "b"`, "must be * or one ETag"},
			{"If-Match", `"a b"`, "must be * or one ETag"},
			{"If-Match", "\"\u00e9\"", "must be * or one ETag"},
			{"If-Match", long, "must be * or one ETag"},
			{"If-Match", "**", "must be * or one ETag"},
			{"If-None-Match", `"x"`, "must be *"},
			{"If-None-Match", "x", "must be *"},
		} {
			body := map[bool]string{true: `{"limits":{"a":{"capacity":1}}}`, false: `{}`}[target == limits]
			w.send("PUT", target, body, c.name, c.value).want(t, 400, "code", "invalid", "field", c.name)
			a := w.send("DELETE", target, "", c.name, c.value)
			a.want(t, 400, "field", c.name)
			if !strings.Contains(a.body["reason"].(string), c.reason) {
				t.Errorf("%s %s: %s", c.name, c.value, a.text)
			}
		}
		w.send("PUT", target, `{}`, "If-Match", "*", "If-None-Match", "*").want(t, 400)
		w.send("DELETE", target, "", "If-Match", "*", "If-None-Match", "*").want(t, 400, "field", "If-None-Match")
	}
	w.send("DELETE", "/v1/admin/entities/acme-bot", "", "If-None-Match", "*").want(t, 400, "field", "version")
	// What has no version is not changed on a condition that nobody checks.
	w.send("PUT", "/v1/admin/system/on_unavailable", `{"on_unavailable":"allow"}`, "If-Match", "*").
		want(t, 400, "field", "If-Match")
	w.send("PUT", "/v1/admin/system/retention", `{"usage_days":7}`, "If-Match", `"x"`).want(t, 400, "field", "If-Match")
	const file = `{"name":"limits.yaml","text":"version: 1\nresources: {bucket: {limits: {rpm: {capacity: 1}}}}\n"}`
	w.send("POST", "/v1/admin/limits/apply", file, "If-Match", before).want(t, 400, "field", "If-Match")
	w.send("POST", "/v1/admin/limits/apply", file, "If-None-Match", "*").want(t, 400, "field", "If-None-Match")
	w.get("/v1/admin/system").want(t, 200, "on_unavailable", "block")
	if after := w.get(limits).etag(t); after != before {
		t.Errorf("the limits changed from %s to %s", before, after)
	}
	w.get("/v1/admin/entities/acme-bot").etag(t)
}

// TestEntityNames changes names and metadata, which come back as they were sent.
func TestEntityNames(t *testing.T) {
	t.Parallel()
	w := newHandlerWorld(t, nil)
	const target = "/v1/admin/entities/acme"
	big := strings.Repeat("x", 64<<10-20)
	w.put(target, `{"name":"\"<script>\u05e9 =1+1","metadata":{"a":"\u202e<b>&","n":12345678901234567890,"f":1.50,"l":[1,null,{"x":true}]}}`).
		want(t, 200, "name", "\"<script>\u05e9 =1+1")
	a := w.get(target)
	a.want(t, 200, "name", "\"<script>\u05e9 =1+1")
	m, ok := a.body["metadata"].(map[string]any)
	if !ok || m["a"] != "\u202e<b>&" || !strings.Contains(a.text, "12345678901234567890") ||
		!strings.Contains(a.text, "1.50") || !strings.Contains(a.text, `[1,null,{"x":true}]`) {
		t.Errorf("got %s", a.text)
	}
	w.put(target, `{}`).want(t, 200, "name", nil, "metadata", nil) // they stay
	w.get(target).want(t, 200, "name", "\"<script>\u05e9 =1+1")
	w.put(target, `{"name":"","metadata":{}}`).want(t, 200)
	w.get(target).want(t, 200, "name", nil, "metadata", nil)
	w.put(target, `{"metadata":{"big":"`+big+`"}}`).want(t, 200)
	if m := w.get(target).body["metadata"].(map[string]any); m["big"] != big {
		t.Errorf("got %d bytes, want %d", len(m["big"].(string)), len(big))
	}
	for _, c := range []struct{ body, field, reason string }{
		{`{"name":"` + strings.Repeat("x", 1025) + `"}`, "name", "has 1025 bytes: it can have at most 1024"},
		{`{"name":"a\nb"}`, "name", "must not have control characters"},
		{`{"name":"\u009b"}`, "name", "must not have control characters"},
		{`{"name":null}`, "name", "must be a string, not null"},
		{`{"name":1}`, "name", "must be a string"},
		{`{"metadata":[]}`, "metadata", "must be an object"},
		{`{"metadata":null}`, "metadata", "must be an object"},
		{`{"metadata":{"a":1,"a":2}}`, "metadata.a", "is given twice"},
		{`{"metadata":{"":1}}`, "metadata", "has a name that is empty"},
		{`{"metadata":{"a":"` + strings.Repeat("x", 64<<10) + `"}}`, "metadata", "it can have at most 65536"},
		{`{"metadata":{"a":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}}`, "metadata.a", "is nested deeper than"},
	} {
		a := w.put(target, c.body)
		a.want(t, http.StatusBadRequest, "field", c.field)
		if reason, _ := a.body["reason"].(string); !strings.Contains(reason, c.reason) {
			t.Errorf("%.40s: got %s", c.body, reason)
		}
	}
}

// TestResources lists resources page by page.
func TestResources(t *testing.T) {
	t.Parallel()
	w := newHandlerWorld(t, nil)
	all := []any{"bucket", "key", "money", "shadow", "slots", "window"}
	w.get("/v1/resources").want(t, 200, "resources", all, "next", nil)
	w.get("/v1/resources?size=2").want(t, 200, "resources", all[:2], "next", "key")
	w.get("/v1/resources?size=4&after=key").want(t, 200, "resources", all[2:], "next", nil)
	w.get("/v1/resources?after=zzz").want(t, 200, "resources", []any{})
	w.get("/v1/entities/slots/resources").want(t, 200, "resources", []any{"key"})
	w.get("/v1/entities/nobody/resources").want(t, 200, "resources", []any{})
	w.reserve(`{"entity":"nobody","resource":"new","costs":{"rpm":1}}`).want(t, 200)
	w.get("/v1/entities/nobody/resources").want(t, 200, "resources", []any{"new"})
	w.get("/v1/resources?after=money&size=1").want(t, 200, "resources", []any{"new"}, "next", "new")
	w.get("/v1/entities/%23/resources").want(t, 400, "field", "entity")
	w.get("/v1/resources?size=0").want(t, 400, "field", "size")
}
