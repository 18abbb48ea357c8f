// Package statuspage counts what a server decides, and serves a page that shows the counts.
//
// An [Activity] observes the limiter. It is divided into segments, each with its own lock. An event
// is counted in one segment, which is selected by the random part of its lease ID, so that
// concurrent calls rarely wait for the same lock. The names of limits are numbered in a map that
// all segments share and that is read without a lock. [Activity.Report] locks one segment after the
// other, adds up their counts, and returns the body of GET /v1/activity.
//
// [Page] serves the status page at "/", and a page at "/usage" that shows use over time. Their
// scripts read the API with the bearer token that the reader enters. The pages themselves contain
// no data.
package statuspage

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"time"

	"github.com/weir-limiter/weir/internal/apijson"
)

// pageFiles has the files of the pages. The pages get their data from the API, with the bearer token
// of the reader.
//
//go:embed page/index.html page/usage.html page/style.css page/common.js page/app.js page/usage.js
var pageFiles embed.FS

// pagePolicy allows the page to load its own files and to call its own server, and nothing else.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
	"img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

// Page returns the handler that serves the status page at "/", the page of usage at "/usage", and
// their files under "/page/", to GET and HEAD.
func Page() http.Handler {
	files := map[string]pageFile{}
	for _, f := range []struct{ path, name, contentType string }{
		{"/", "page/index.html", "text/html; charset=utf-8"},
		{"/usage", "page/usage.html", "text/html; charset=utf-8"},
		{"/page/style.css", "page/style.css", "text/css; charset=utf-8"},
		{"/page/common.js", "page/common.js", "text/javascript; charset=utf-8"},
		{"/page/app.js", "page/app.js", "text/javascript; charset=utf-8"},
		{"/page/usage.js", "page/usage.js", "text/javascript; charset=utf-8"},
	} {
		text, err := pageFiles.ReadFile(f.name)
		if err != nil {
			panic(err) // it is embedded above
		}
		sum := sha256.Sum256(text)
		files[f.path] = pageFile{text, f.contentType, `"` + hex.EncodeToString(sum[:8]) + `"`}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f, ok := files[r.URL.Path]
		if !ok {
			apijson.NewWriter().WriteProblem(w, apijson.Refusal(http.StatusNotFound,
				apijson.Invalid("path", r.URL.EscapedPath(), "is not a path of this server")), nil)
			return
		}
		f.serve(w, r)
	})
}

type pageFile struct {
	text        []byte
	contentType string
	tag         string
}

func (f *pageFile) serve(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Type", f.contentType)
	header.Set("Content-Security-Policy", pagePolicy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	// A newer server has a newer page, so browsers revalidate it each time.
	header.Set("Cache-Control", "no-cache")
	header.Set("ETag", f.tag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.text))
}
