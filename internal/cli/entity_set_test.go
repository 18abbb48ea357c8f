package cli

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi/httphandler"
	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/text"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// TestHostileNames checks that names and metadata are printed as they are, in JSON and in tables,
// except that a table escapes what a terminal would act on.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	server := hostileServer(t)
	run := func(args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		streams := console.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}
		env := map[string]string{connect.ServerEnv: server.URL}
		if code := Run(t.Context(), args, streams, func(name string) string { return env[name] }); code != 0 {
			t.Fatalf("%.80q: %s", args, &errs)
		}
		return out.String()
	}
	for _, hostile := range []string{
		`"quoted" 'text'`, "<script>alert(1)</script>", "&amp;", "שלום عالم", "\u202egnp.exe", "=1+1", "@SUM(A1)",
		"%s%n", "$(id)", "a\\nb", "-rf", "日本語 👩\u200d👧", " x ", "\u2028", strings.Repeat("x", 60<<10),
	} {
		name := hostile
		if len(name) > 1024 {
			name = name[:1024]
		}
		run("entity", "set", "acme", "--name="+name, "--metadata=key="+hostile)
		var got struct {
			Name     string
			Metadata map[string]any
		}
		if err := json.Unmarshal([]byte(run("entity", "show", "acme", "-o", "json")), &got); err != nil {
			t.Fatal(err)
		}
		if got.Name != name || got.Metadata["key"] != hostile || len(got.Metadata) != 2 {
			t.Errorf("%.40q: got %.200q", hostile, got)
		}
		table := run("entity", "show", "acme")
		for _, want := range []string{text.Printable(name), text.Printable(hostile), "of python  [1,null,1.5]"} {
			if !strings.Contains(table, strings.TrimRight(want, " ")) {
				t.Errorf("%.40q: the table has no %.60q: %.300s", hostile, want, table)
			}
		}
		for _, output := range []string{table, run("audit", "list", "acme")} {
			if strings.ContainsAny(output, "\u202e\u2028\x1b") {
				t.Errorf("%.40q: a table has a control character: %.200q", hostile, output)
			}
		}
		events := run("audit", "list", "acme", "-o", "json", "--size", "1")
		if len(hostile) < 1024 {
			var list struct {
				Events []struct {
					Details struct{ Metadata map[string]any }
				}
			}
			if err := json.Unmarshal([]byte(events), &list); err != nil || len(list.Events) != 1 ||
				list.Events[0].Details.Metadata["key"] != hostile {
				t.Errorf("%.40q: the audit has %s, %v", hostile, events, err)
			}
		}
		run("audit", "list", "acme", "-o", "csv")
	}
}

// hostileServer serves an entity whose metadata another program has written.
func hostileServer(t *testing.T) *httptest.Server {
	t.Helper()
	store, err := memory.Open(&memory.Options{Definitions: &weir.Definitions{
		Entities: map[string]weir.EntityDefinition{"acme": {Metadata: map[string]any{
			"of python": []any{int64(1), nil, json.Number("1.5")},
		}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	lim, err := limiter.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(httphandler.New(lim, &httphandler.Options{Admin: lim, Records: lim}))
	t.Cleanup(server.Close)
	return server
}

// TestSetOfAnyVersion lets somebody change an entity between the read and the write of entity set,
// which writes the whole entity: also with --if-version *, that change is not undone.
func TestSetOfAnyVersion(t *testing.T) {
	t.Parallel()
	for _, condition := range [][]string{nil, {"--if-version", "*"}} {
		store, err := memory.Open(&memory.Options{Definitions: &weir.Definitions{
			Entities: map[string]weir.EntityDefinition{"acme": {}, "top": {}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		lim, err := limiter.New(store, nil)
		if err != nil {
			t.Fatal(err)
		}
		handler := httphandler.New(lim, &httphandler.Options{Admin: lim, Records: lim})
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPut {
				if err := lim.SetEntity(r.Context(), "acme", "top", true); err != nil {
					t.Error(err)
				}
			}
			handler.ServeHTTP(w, r)
		}))
		t.Cleanup(server.Close)
		var out, errs bytes.Buffer
		streams := console.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}
		args := append([]string{"entity", "set", "acme", "--name", "Acme"}, condition...)
		env := map[string]string{connect.ServerEnv: server.URL}
		code := Run(t.Context(), args, streams, func(name string) string { return env[name] })
		e, err := lim.Entity(t.Context(), "acme")
		if code != 1 || !strings.Contains(errs.String(), "has changed since it was read") || err != nil || e.Parent != "top" {
			t.Errorf("%q: exit code %d, %s, and the entity is %+v, %v", condition, code, &errs, e, err)
		}
	}
}
