package httphandler_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir/httpapi/httphandler"
	"github.com/weir-limiter/weir/internal/server/statuspage"
)

// TestMethods calls every path with every method.
func TestMethods(t *testing.T) {
	t.Parallel()
	allowed := map[string][]string{} // by path
	targets := map[string]string{}
	for pattern, request := range routeRequests() {
		_, path, _ := strings.Cut(pattern, " ")
		targets[path], _, _ = strings.Cut(request.target, "?")
		allowed[path] = append(allowed[path], request.method)
		if request.method == http.MethodGet {
			allowed[path] = append(allowed[path], http.MethodHead)
		}
	}
	w := newHandlerWorld(t, &httphandler.Options{Activity: statuspage.NewActivity(time.Now()).Report})
	before := w.state()
	for path, methods := range allowed {
		for _, method := range []string{
			"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND",
			"get",
		} {
			if slices.Contains(methods, method) {
				continue
			}
			a := w.ask(sent{method: method, target: targets[path]})
			got := strings.Split(a.header.Get("Allow"), ", ")
			slices.Sort(got)
			slices.Sort(methods)
			if a.status != 405 || !slices.Equal(got, methods) {
				t.Errorf("%s %s: %d, Allow %q, want %q", method, path, a.status, got, methods)
			}
			if method != http.MethodHead {
				a.want(t, 405, "type", "about:blank", "title", "Method Not Allowed", "code", "invalid",
					"field", "method", "value", method)
			}
		}
	}
	w.unchanged(before)
}

// rawServer serves a handler on loopback, for requests that no HTTP client sends.
func rawServer(t *testing.T, h http.Handler) (addr string) {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// exchangeRaw sends a request as bytes and reads one answer.
func exchangeRaw(t *testing.T, addr, request string) *answered {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	method, _, _ := strings.Cut(request, " ")
	r, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%v after %q", err, request)
	}
	return readAnswer(t, method, r)
}

// TestPaths checks that no path is redirected or answered in plain text.
func TestPaths(t *testing.T) {
	t.Parallel()
	w := newHandlerWorld(t, nil)
	addr := rawServer(t, w.handler)
	for _, target := range []string{
		"/", "/nope", "/v1", "/v1/", "/v2/reserve", "/v1/reserve/", "/v1/status/", "//v1/status",
		"/v1//status",
		"/v1/../v1/status", "/v1/./status", "/v1/status/..", "/.", "/..", "//", "/v1/STATUS",
		"/healthz/", "/v1/entities//children", "/v1/entities/a/b/children", "/v1/admin/entities/",
		"/v1/activity", "/page/app.js", "/page", "/page/", "/index.html", "/v1/status%3Fentity=acme",
		"http://host//v1/status", "http://host", "*",
	} {
		for _, method := range []string{"GET", "POST"} {
			a := exchangeRaw(t, addr, method+" "+target+" HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n")
			if a.status != 404 || a.body["type"] != "about:blank" || a.body["code"] != "invalid" ||
				a.body["field"] != "path" || a.header.Get("Location") != "" {
				t.Errorf("%s %s: %d %s", method, target, a.status, a.text)
			}
		}
	}
	for _, target := range []string{
		"/v1/status?entity=acme", "/v1/%73tatus?entity=acme", "http://other/v1/status?entity=acme",
		"/v1/entities/team%2Fa/children", "/v1/admin/entities/team%2Fa",
		"/v1/admin/entities/team%2fa/limits",
	} {
		a := exchangeRaw(t, addr, "GET "+target+" HTTP/1.1\r\nHost: h\r\n\r\n")
		if a.status != 200 {
			t.Errorf("%s: %d %s", target, a.status, a.text)
		}
	}
	// An encoded dot is a part of the name, and no name may begin with a dot.
	a := exchangeRaw(t, addr, "GET /v1/admin/entities/%2e%2e HTTP/1.1\r\nHost: h\r\n\r\n")
	a.want(t, 400, "field", "entity", "value", "..")
	a = exchangeRaw(t, addr, "CONNECT /v1/reserve HTTP/1.1\r\nHost: h\r\n\r\n")
	a.want(t, 405)
	a = exchangeRaw(t, addr, "CONNECT host:443 HTTP/1.1\r\nHost: host:443\r\n\r\n")
	a.want(t, 404)
}

// TestWithoutAdmin checks that routes without their option answer 404.
func TestWithoutAdmin(t *testing.T) {
	t.Parallel()
	w := newHandlerWorld(t, nil)
	bare := httphandler.New(w.limiter, nil)
	patterns := bare.Routes()
	missing := 0
	for pattern, request := range routeRequests() {
		a := askHandler(t, bare, request.sent)
		if slices.Contains(patterns, pattern) {
			if a.body["field"] == "path" {
				t.Errorf("%s: %d %s", pattern, a.status, a.text)
			}
			continue
		}
		missing++
		a.want(t, 404, "field", "path", "type", "about:blank")
	}
	if missing != 33 {
		t.Errorf("%d routes are missing without Admin, Limits, Records and Activity, want 33", missing)
	}
}

// TestPattern checks that the pattern contains no names, so that it is suitable as a label of
// metrics.
func TestPattern(t *testing.T) {
	t.Parallel()
	w := newHandlerWorld(t, nil)
	for _, c := range []struct{ method, target, want string }{
		{"GET", "/v1/admin/entities/acme", "GET /v1/admin/entities/{entity}"},
		{"HEAD", "/v1/admin/entities/acme", "GET /v1/admin/entities/{entity}"},
		{"PATCH", "/v1/admin/entities/acme", "/v1/admin/entities/{entity}"},
		{"GET", "/somewhere/acme", "/"},
		{"GET", "//acme", "/"},
		{"POST", "/v1/reserve", "POST /v1/reserve"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), c.method, c.target, nil)
		w.handler.ServeHTTP(httptest.NewRecorder(), r)
		if r.Pattern != c.want {
			t.Errorf("%s %s has the pattern %q, want %q", c.method, c.target, r.Pattern, c.want)
		}
	}
}

func TestBodyReading(t *testing.T) {
	t.Parallel()
	const body = `{"entity":"acme","resource":"bucket","costs":{"tpm":1}}`
	w := newHandlerWorld(t, &httphandler.Options{MaxBody: 200})
	for _, c := range []struct {
		name   string
		header []string
		status int
		field  string
	}{
		{"plain", nil, 200, ""},
		{"charset", []string{"Content-Type", "", "Content-Type", "application/json; charset=utf-8"}, 200,
			""},
		{"charset in capitals",
			[]string{"Content-Type", "", "Content-Type", `Application/JSON;Charset="UTF-8"`}, 200, ""},
		{"a parameter", []string{"Content-Type", "", "Content-Type", "application/json; profile=x"}, 200,
			""},
		{"identity", []string{"Content-Encoding", "identity"}, 200, ""},
		{"no type", []string{"Content-Type", ""}, 415, "Content-Type"},
		{"form", []string{"Content-Type", "", "Content-Type", "application/x-www-form-urlencoded"}, 415,
			"Content-Type"},
		{"text", []string{"Content-Type", "", "Content-Type", "text/plain"}, 415, "Content-Type"},
		{"a relative", []string{"Content-Type", "", "Content-Type", "application/merge-patch+json"}, 415,
			"Content-Type"},
		{"Latin-1", []string{"Content-Type", "", "Content-Type", "application/json; charset=latin1"},
			415, "Content-Type"},
		{"malformed", []string{"Content-Type", "", "Content-Type", "application/json; charset"}, 415,
			"Content-Type"},
		{"two types", []string{"Content-Type", "application/json"}, 415, "Content-Type"},
		{"packed", []string{"Content-Encoding", "gzip"}, 415, "Content-Encoding"},
	} {
		before := w.state()
		a := w.ask(sent{method: "POST", target: "/v1/reserve", body: body, header: c.header})
		if a.status != c.status || c.field != "" && a.body["field"] != c.field {
			t.Errorf("%s: %d %s", c.name, a.status, a.text)
		}
		if c.status != 200 {
			a.want(t, c.status, "type", "about:blank", "code", "invalid", "title", "Unsupported Media Type")
			w.unchanged(before)
		}
	}
}

func TestBodySize(t *testing.T) {
	t.Parallel()
	const body = `{"entity":"acme","resource":"bucket","costs":{"tpm":1}}`
	w := newHandlerWorld(t, &httphandler.Options{MaxBody: 100})
	addr := rawServer(t, w.handler)
	before := w.state()
	head := "POST /v1/reserve HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"
	padded := func(n int) string { return body + strings.Repeat(" ", n-len(body)) }
	chunked := func(s string) string {
		return head + fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(s), s)
	}
	declared := func(s string) string {
		return head + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(s), s)
	}
	for name, request := range map[string]string{
		"declared": declared(padded(101)), "chunked": chunked(padded(101)),
		"declared alone": head + "Content-Length: 1000000000000\r\n\r\n",
	} {
		a := exchangeRaw(t, addr, request)
		if a.status != 413 || a.body["field"] != "body" ||
			a.body["reason"] != "must have at most 100 bytes" {
			t.Errorf("%s: %d %s", name, a.status, a.text)
		}
	}
	w.unchanged(before)
	for name, request := range map[string]string{
		"declared": declared(padded(100)), "chunked": chunked(padded(100)),
	} {
		if a := exchangeRaw(t, addr, request); a.status != 200 {
			t.Errorf("%s of 100 bytes: %d %s", name, a.status, a.text)
		}
	}
}

// TestBodyCutShort checks that an incomplete body changes nothing.
func TestBodyCutShort(t *testing.T) {
	t.Parallel()
	w := newHandlerWorld(t, nil)
	hasty := httptest.NewUnstartedServer(w.handler)
	hasty.Config.ReadTimeout = time.Second // also for the headers, on a busy machine
	hasty.Start()
	t.Cleanup(hasty.Close)
	patient := rawServer(t, w.handler)
	before := w.state()
	head := "POST /v1/reserve HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"
	const body = `{"entity":"acme","resource":"bucket","costs":{"tpm":1}}`
	a := exchangeRaw(t, hasty.Listener.Addr().String(), head+"Content-Length: 56\r\n\r\n"+body[:30])
	a.want(t, 408, "type", "about:blank", "field", "body", "reason", "did not arrive in time")
	a = exchangeRaw(t, patient, head+"Transfer-Encoding: chunked\r\n\r\nzz\r\n"+body)
	a.want(t, 400, "type", "about:blank", "field", "body", "reason", "could not be read completely")
	w.unchanged(before)
	a = exchangeRaw(t, patient, head+"Content-Length: 55\r\n\r\n"+body)
	a.want(t, 200)
}
