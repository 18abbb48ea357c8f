package statuspage_test

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi/httphandler"
	"github.com/weir-limiter/weir/internal/server/statuspage"
)

// pageHandler returns a handler with a status page over a small limiter.
func pageHandler(t *testing.T, o httphandler.Options) http.Handler {
	t.Helper()
	l := observe(t, &weir.Definitions{System: []weir.Limit{{Name: "rpm", Capacity: 10}}})
	o.Activity = l.activity.Report
	return httphandler.New(l, &o)
}

func askPage(
	t *testing.T, h http.Handler, method, path string, header ...string,
) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestPageFiles gets every file of the page, with GET and with HEAD. None needs a bearer token,
// because none contains data.
func TestPageFiles(t *testing.T) {
	t.Parallel()
	h := pageHandler(t, httphandler.Options{StatusPage: statuspage.Page(),
		Authenticate: func(string) (httphandler.Identity, bool) { return httphandler.Identity{}, false }})
	if w := askPage(t, h, "GET", "/v1/activity"); w.Code != http.StatusUnauthorized {
		t.Errorf("the figures: status %d, want 401", w.Code)
	}
	for _, c := range []struct{ path, file, contentType string }{
		{"/", "page/index.html", "text/html; charset=utf-8"},
		{"/usage", "page/usage.html", "text/html; charset=utf-8"},
		{"/page/style.css", "page/style.css", "text/css; charset=utf-8"},
		{"/page/common.js", "page/common.js", "text/javascript; charset=utf-8"},
		{"/page/app.js", "page/app.js", "text/javascript; charset=utf-8"},
		{"/page/usage.js", "page/usage.js", "text/javascript; charset=utf-8"},
	} {
		want, err := os.ReadFile(c.file)
		if err != nil {
			t.Fatal(err)
		}
		w := askPage(t, h, "GET", c.path)
		if w.Code != http.StatusOK || w.Body.String() != string(want) {
			t.Errorf("%s: status %d, %d bytes, want %d", c.path, w.Code, w.Body.Len(), len(want))
		}
		for name, value := range map[string]string{
			"Content-Type": c.contentType,
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; " +
				"connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; " +
				"form-action 'none'",
			"X-Content-Type-Options": "nosniff",
			"Referrer-Policy":        "no-referrer",
			"Cache-Control":          "no-cache",
		} {
			if got := w.Header().Get(name); got != value {
				t.Errorf("%s: %s is %q, want %q", c.path, name, got, value)
			}
		}
		head := askPage(t, h, "HEAD", c.path)
		if head.Code != http.StatusOK || head.Header().Get("Content-Type") != c.contentType {
			t.Errorf("HEAD %s: status %d, header %v", c.path, head.Code, head.Header())
		}
		tag := w.Header().Get("ETag")
		if again := askPage(t, h, "GET", c.path, "If-None-Match", tag); again.Code != http.StatusNotModified {
			t.Errorf("%s with the tag %s: status %d, want 304", c.path, tag, again.Code)
		}
		if other := askPage(t, h, "GET", c.path, "If-None-Match", `"other"`); other.Code != http.StatusOK {
			t.Errorf("%s with another tag: status %d, want 200", c.path, other.Code)
		}
	}
}

func TestPageRefusals(t *testing.T) {
	t.Parallel()
	with := pageHandler(t, httphandler.Options{StatusPage: statuspage.Page()})
	without := pageHandler(t, httphandler.Options{})
	for _, c := range []struct {
		name, method, path string
		handler            http.Handler
		want               int
	}{
		{"no such file", "GET", "/page/other.js", with, http.StatusNotFound},
		{"the folder", "GET", "/page/", with, http.StatusNotFound},
		{"the page by its file", "GET", "/page/index.html", with, http.StatusNotFound},
		{"the page of usage by its file", "GET", "/page/usage.html", with, http.StatusNotFound},
		{"a way out", "GET", "/page/..%2Fpage.go", with, http.StatusNotFound},
		{"another method", "POST", "/", with, http.StatusMethodNotAllowed},
		{"another method on a file", "DELETE", "/page/app.js", with, http.StatusMethodNotAllowed},
		{"no page: /", "GET", "/", without, http.StatusNotFound},
		{"no page: /usage", "GET", "/usage", without, http.StatusNotFound},
		{"no page: a file", "GET", "/page/app.js", without, http.StatusNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := askPage(t, c.handler, c.method, c.path)
			if got := w.Header().Get("Content-Type"); w.Code != c.want || got != "application/problem+json" {
				t.Errorf("status %d, %s: %s; want %d", w.Code, got, w.Body, c.want)
			}
		})
	}
}

// forbidden returns the parts of the page's files that are not allowed: text that becomes HTML or
// code, styles and scripts that the policy would block, and addresses of other servers.
func forbidden(text string) []string {
	text = strings.ReplaceAll(text, "xmlns='http://www.w3.org/2000/svg'", "") // a name, not an address
	return regexp.MustCompile(`innerHTML|outerHTML|insertAdjacent|document\.write|srcdoc|DOMParser|`+
		`setHTML|createContextualFragment|\beval\b|\bFunction\(|javascript:|\bimport\b\s*\(|`+
		`https?:|["'(]//|@import|\surl\(|\sstyle=|\son[a-z]+=|localStorage|document\.cookie`).
		FindAllString(text, -1)
}

func TestPageText(t *testing.T) {
	t.Parallel()
	files := 0
	err := fs.WalkDir(os.DirFS("page"), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		text, err := os.ReadFile("page/" + name)
		if found := forbidden(string(text)); len(found) > 0 {
			t.Errorf("%s has %q", name, found)
		}
		return err
	})
	if err != nil || files != 6 {
		t.Errorf("%d files, want 6 (%v)", files, err)
	}
	for _, bad := range []string{
		`e.innerHTML = x`, `eval(x)`, `new Function(x)`, `<a href="javascript:x">`, `import("./x.js")`,
		`<script src="https://example.com">`, `<img src="//example.com/x">`, `<p onclick="x()">`,
		`<p style="x">`, `a { background: url(x) }`, `localStorage.x = 1`,
	} {
		if len(forbidden(bad)) == 0 {
			t.Errorf("nobody minds %s", bad)
		}
	}
}

// TestPageNames checks that the elements that a page's modules look up by name are in its document,
// and that each label has the element that it names.
func TestPageNames(t *testing.T) {
	t.Parallel()
	read := func(name string) string {
		text, err := os.ReadFile("page/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for page, module := range map[string]string{"index.html": "app.js", "usage.html": "usage.js"} {
		html, script := read(page), read("common.js")+read(module)
		var ids []string
		for _, m := range regexp.MustCompile(`\sid="([^"]+)"`).FindAllStringSubmatch(html, -1) {
			if slices.Contains(ids, m[1]) {
				t.Errorf("%s: two elements have the id %s", page, m[1])
			}
			ids = append(ids, m[1])
		}
		// The module itself makes some elements.
		for _, m := range regexp.MustCompile(`\sid: "([^"]+)"`).FindAllStringSubmatch(script, -1) {
			ids = append(ids, m[1])
		}
		wanted := regexp.MustCompile(`byID\("([^"]+)"\)`).FindAllStringSubmatch(script, -1)
		wanted = append(wanted, regexp.MustCompile(`(?:for|list|aria-labelledby)="([^"]+)"`).
			FindAllStringSubmatch(html, -1)...)
		for _, m := range wanted {
			if !slices.Contains(ids, m[1]) {
				t.Errorf("%s: no element has the id %s", page, m[1])
			}
		}
		t.Logf("%s: %d ids, %d uses", page, len(ids), len(wanted))
	}
}
