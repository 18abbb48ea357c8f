package httphandler

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/weir-limiter/weir/internal/declared"
	"github.com/weir-limiter/weir/internal/server/statuspage"
)

// TestOpenAPIAnswers checks that answers that any request can get are documented for every
// operation.
func TestOpenAPIAnswers(t *testing.T) {
	t.Parallel()
	w := newExampleWorld(t)
	h := New(w.limiter, &Options{
		Admin: w.limiter, Records: w.records, Activity: w.activity.Report,
		Limits: declared.New(w.limiter), Namespaces: NewNamespaceTable(),
		StatusPage: statuspage.Page(), Now: w.clock, MaxBody: 1000,
		Authenticate: func(token string) (Identity, bool) {
			if token == "panic" {
				panic("as asked for")
			}
			role := map[string]Role{"admin": RoleAdmin}[token]
			return Identity{Name: token, Role: role, AllNamespaces: true}, token != "wrong"
		},
	})
	busy := fullHandler(w)
	busy.serving = nil // no request can be served
	long := func() io.Reader { return strings.NewReader(strings.Repeat(" ", 1001)) }
	slow := func() io.Reader { return iotest.ErrReader(os.ErrDeadlineExceeded) }
	empty := func() io.Reader { return http.NoBody }
	const secured, api, bodied = "secured", "api", "bodied"
	for _, c := range []struct {
		status       int
		of           string // which operations
		handler      *Handler
		token, media string
		body         func() io.Reader
	}{
		{401, secured, h, "wrong", "application/json", empty},
		{403, secured, h, "none", "application/json", empty},
		{503, secured, h, "panic", "application/json", empty},
		{503, api, busy, exampleToken, "application/json", empty},
		{400, bodied, h, "admin", "application/json", empty},
		{408, bodied, h, "admin", "application/json", slow},
		{413, bodied, h, "admin", "application/json", long},
		{415, bodied, h, "admin", "text/plain", empty},
	} {
		t.Run(strconv.Itoa(c.status), func(t *testing.T) {
			t.Parallel()
			n := 0
			for _, o := range readDocument(t, openAPIDocument).operations() {
				concerned := map[string]bool{
					secured: o.Security == nil, api: strings.HasPrefix(o.path, "/v1/"),
					bodied: len(o.RequestBody.Content) > 0,
				}[c.of]
				if !concerned {
					continue
				}
				n++
				r := httptest.NewRequestWithContext(t.Context(), o.method, o.target(t), c.body())
				r.Header.Set("Authorization", "Bearer "+c.token)
				r.Header.Set("Content-Type", c.media)
				recorder := httptest.NewRecorder()
				c.handler.ServeHTTP(recorder, r)
				if recorder.Code != c.status {
					t.Errorf("%s: got %d, want %d: %s", o.pattern(), recorder.Code, c.status, recorder.Body)
				}
				if o.Responses[strconv.Itoa(c.status)] == nil {
					t.Errorf("%s: %d is not in the document", o.pattern(), c.status)
				}
			}
			t.Logf("%d operations", n)
			if n == 0 {
				t.Error("no operation is concerned")
			}
		})
	}
}
