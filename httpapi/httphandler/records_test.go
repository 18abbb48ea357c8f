package httphandler_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/change"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/httpapi/httphandler"
	"github.com/weir-limiter/weir/internal/testkit/recordstore"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
	"github.com/weir-limiter/weir/namespace"
)

// getWith sends a GET with alternating names and values of parameters.
func (w *handlerWorld) getWith(path string, pairs ...string) *answered {
	w.t.Helper()
	values := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		values.Add(pairs[i], pairs[i+1])
	}
	return w.ask(sent{method: "GET", target: path + "?" + values.Encode()})
}

// TestUsagePages reads the usage of a month page by page, and compares it with the limiter's.
func TestUsagePages(t *testing.T) {
	t.Parallel()
	w := newHandlerWorld(t, nil)
	for _, size := range []string{"1", "7", "1000"} {
		var starts []string
		after := ""
		for {
			pairs := []string{
				"entity", "acme", "window", "daily", "from", "2026-10-01", "to", "2026-11-01",
				"size", size,
			}
			if after != "" {
				pairs = append(pairs, "after", after)
			}
			a := w.getWith("/v1/usage", pairs...)
			a.want(t, 200)
			for _, u := range a.body["usage"].([]any) {
				u := u.(map[string]any)
				starts = append(starts, fmt.Sprint(u["resource"], " ", u["start"]))
			}
			if len(a.body["gaps"].([]any)) != 1 {
				t.Errorf("gaps are %v, want one", a.body["gaps"])
			}
			if after, _ = a.body["next"].(string); after == "" {
				break
			}
		}
		if len(starts) != 31+31+20 || starts[0] != "claude-sonnet 2026-10-12T00:00:00Z" ||
			starts[81] != "gpt-4o-mini 2026-10-31T00:00:00Z" {
			t.Errorf("size %s: got %d windows: %q", size, len(starts), starts)
		}
	}
}

func TestUsageAnswers(t *testing.T) {
	t.Parallel()
	w := newHandlerWorld(t, nil)
	month := func(from, to string, more ...string) *answered {
		return w.getWith("/v1/usage", append([]string{
			"resource", "gpt-4o", "window", "monthly", "from", from, "to", to,
		}, more...)...)
	}
	for _, c := range []struct {
		name    string
		got     *answered
		windows int
		gaps    int
	}{
		{"a month", month("2026-10-01", "2026-11-01"), 2, 1},
		{"one limit", month("2026-10-01", "2026-11-01", "limit", "tpm"), 2, 1},
		{"a limit that is not used", month("2026-10-01", "2026-11-01", "limit", "other"), 0, 1},
		{"an instant in another zone", month("2026-10-01T02:00:00+02:00", "2026-11-01"), 2, 1},
		{"an instant within the month", month("2026-10-01T00:00:01Z", "2026-11-01"), 0, 0},
		{"a century", month("1950-01-01", "2050-01-01"), 2, 1},
		{"the whole calendar", month("0000-01-01", "9999-12-31"), 2, 1},
		{"another century", month("1850-01-01", "1950-01-01"), 0, 0},
		{"no bounds", w.getWith("/v1/usage", "resource", "gpt-4o", "window", "monthly"), 2, 1},
		{"the default window", w.getWith("/v1/usage", "entity", "acme", "resource", "gpt-4o",
			"from", "2026-10-01", "to", "2026-10-02"), 23, 0},
		{"an entity that is not known", w.getWith("/v1/usage", "entity", "a/b:c@d-e_f.g"), 0, 1},
	} {
		c.got.want(t, 200)
		usage, gaps := c.got.body["usage"].([]any), c.got.body["gaps"].([]any)
		if len(usage) != c.windows || len(gaps) != c.gaps {
			t.Errorf("%s: got %d windows and %d gaps, want %d and %d: %s", c.name, len(usage), len(gaps),
				c.windows, c.gaps, c.got.text)
		}
	}
}

// TestRecordsMistakes checks that each mistake names the parameter, its value and the reason.
func TestRecordsMistakes(t *testing.T) {
	t.Parallel()
	w := newHandlerWorld(t, nil)
	first := w.getWith("/v1/usage", "entity", "acme", "window", "daily", "size", "1")
	next, _ := first.body["next"].(string)
	plain, err := base64.RawURLEncoding.DecodeString(next)
	if err != nil || next == "" {
		t.Fatalf("next is %q", next)
	}
	altered := func(from, to string) string {
		text := strings.Replace(string(plain), from, to, 1)
		return base64.RawURLEncoding.EncodeToString([]byte(text))
	}
	const usage = "/v1/usage"
	with := func(more ...string) []string {
		return append([]string{"entity", "acme", "window", "daily"}, more...)
	}
	const (
		date      = "must be like 2026-01-31 or 2026-01-31T15:00:00Z"
		sameQuery = "must be the next of a page of the same query"
	)
	hourly, spaced := altered("daily", "hourly"), altered(" claude", "  claude")
	other := altered("acme", "team-b")
	for _, c := range []struct {
		query                []string
		field, value, reason string
	}{
		{nil, "entity", "", "must be given, or a resource"},
		{[]string{"limit", "tpm"}, "entity", "", "must be given, or a resource"},
		{[]string{"entity", "a b"}, "entity", "a b", "must not contain ' '"},
		{with("resource", "."), "resource", ".", "is reserved"},
		{with("limit", "wcu"), "limit", "wcu", "is reserved"},
		{[]string{"entity", "a", "window", "weekly"}, "window", "weekly",
			"must be hourly, daily or monthly"},
		{with("from", "yesterday"), "from", "yesterday", date},
		{with("to", "2026-02-30"), "to", "2026-02-30", date},
		{with("from", "2026-01-31T15:00:00 02:00"), "from", "2026-01-31T15:00:00 02:00",
			date + "; in a query, + is written %2B"},
		{with("from", "2026-01-31", "to", "2026-01-31"), "to", "2026-01-31T00:00:00Z",
			"must be after from"},
		{with("from", "2026-02-01", "to", "2026-01-01"), "to", "2026-01-01T00:00:00Z",
			"must be after from"},
		{with("to", "9999-12-31T23:00:00-12:00"), "to", "10000-01-01T11:00:00Z",
			"must be in the years 0000 to 9999, in UTC"},
		{with("size", "0"), "size", "0", "must be between 1 and 1000"},
		{with("size", "1001"), "size", "1001", "must be between 1 and 1000"},
		{with("after", "?"), "after", "?", sameQuery},
		{with("after", hourly), "after", hourly, sameQuery},
		{with("after", other), "after", other, sameQuery},
		{with("after", spaced), "after", spaced, sameQuery},
		{with("after", next, "resource", "gpt-4o"), "after", next, sameQuery},
		{with("after", next, "from", "2026-10-20"), "after", next, sameQuery},
		{with("start", "2026-01-31"), "start", "2026-01-31", "is not a known parameter"},
	} {
		w.refuses(usage, c.query, c.field, c.value, c.reason)
	}
	a := w.getWith(usage, "entity", "a", "from", "1", "to", "2", "size", "x")
	if mistakes, _ := a.body["errors"].([]any); a.status != 400 || len(mistakes) != 3 {
		t.Errorf("got %s, want three mistakes", a.text)
	}
}

func TestAuditMistakes(t *testing.T) {
	t.Parallel()
	w := newHandlerWorld(t, nil)
	for _, c := range []struct {
		query                []string
		field, value, reason string
	}{
		{[]string{"entity", "a b"}, "entity", "a b", "must not contain ' '"},
		{[]string{"resource", "."}, "resource", ".", "is reserved"},
		{[]string{"from", "1"}, "from", "1",
			"must be like 2026-01-31 or 2026-01-31T15:00:00Z"},
		{[]string{"from", "2026-02-01", "to", "2026-01-01"}, "to", "2026-01-01T00:00:00Z",
			"must be after from"},
		{[]string{"after", "x"}, "after", "x",
			"must be the ID of an event: a ULID, of 26 characters"},
		{[]string{"size", "-1"}, "size", "-1", "must be between 1 and 1000"},
		{[]string{"limit", "tpm"}, "limit", "tpm", "is not a known parameter"},
	} {
		w.refuses("/v1/audit", c.query, c.field, c.value, c.reason)
	}
}

// refuses fails the test unless a query gets one mistake, with this field, value and reason.
func (w *handlerWorld) refuses(path string, query []string, field, value, reason string) {
	w.t.Helper()
	a := w.getWith(path, query...)
	var want any = value
	switch {
	case value == "":
		want = nil
	case len(value) > 64:
		want = a.body["value"] // it is shortened
	}
	a.want(w.t, 400, "code", "invalid", "field", field, "value", want, "reason", reason)
}

func TestAuditAnswers(t *testing.T) {
	t.Parallel()
	w := newHandlerWorld(t, nil)
	for _, c := range []struct {
		query []string
		want  string // the last digits of the IDs
		next  bool
	}{
		{nil, "0", false},
		{[]string{"entity", "acme"}, "321", false},
		{[]string{"entity", "acme", "resource", "gpt-4o"}, "3", false},
		{[]string{"entity", "acme", "resource", "_default_"}, "2", false},
		{[]string{"entity", "acme", "size", "2"}, "32", true},
		{[]string{"entity", "acme", "after", "01K6EVENT00000000000000002"}, "1", false},
		{[]string{"entity", "acme", "from", "2026-10-03"}, "32", false},
		{[]string{"entity", "acme", "from", "2026-10-02T12:00:00Z", "to", "2026-10-04"}, "2", false},
		{[]string{"entity", "acme", "from", "1900-01-01", "to", "2000-01-01"}, "", false},
		{[]string{"resource", "gpt-4o"}, "", false},
	} {
		a := w.getWith("/v1/audit", c.query...)
		a.want(t, 200)
		var got strings.Builder
		for _, e := range a.body["events"].([]any) {
			id := e.(map[string]any)["event_id"].(string)
			got.WriteString(id[len(id)-1:])
		}
		if _, next := a.body["next"]; got.String() != c.want || next != c.next {
			t.Errorf("%q: got events %q, next %v, want %q, %v", c.query, got.String(), next, c.want,
				c.next)
		}
	}
}

// TestRecordsOfOtherStores asks a handler without records, and one whose store keeps none.
func TestRecordsOfOtherStores(t *testing.T) {
	t.Parallel()
	backend, err := memory.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	none, err := limiter.New(struct{ driver.Store }{backend}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = none.Close() })
	for _, path := range []string{"/v1/usage?entity=acme", "/v1/audit?entity=acme"} {
		without := httphandler.New(none, nil)
		askHandler(t, without, sent{method: "GET", target: path}).want(t, 404, "field", "path")
		unable := httphandler.New(none, &httphandler.Options{Records: none})
		askHandler(t, unable, sent{method: "GET", target: path}).want(t, 400,
			"code", "unsupported", "field", "store")
	}
}

// namespaceAdmin has another name than httpapi.Admin, beside which it is embedded.
type namespaceAdmin = namespace.Admin

// changeAdmin is an [httpapi.Admin] that records who makes changes.
type changeAdmin struct {
	httpapi.Admin
	httpapi.LimitsAdmin
	namespaceAdmin

	names []string
}

func (a *changeAdmin) note(ctx context.Context) error {
	a.names = append(a.names, weir.PrincipalOf(ctx))
	return nil
}

func (a *changeAdmin) ChangeLimits(
	ctx context.Context, _ weir.Subject, _ []weir.Limit, _ *change.Options,
) (string, error) {
	return "", a.note(ctx)
}

func (a *changeAdmin) SetPolicy(ctx context.Context, _ weir.Policy) error { return a.note(ctx) }

func (a *changeAdmin) SetRetention(ctx context.Context, _ weir.Retention) error {
	return a.note(ctx)
}

func (*changeAdmin) Retention(context.Context) (*weir.Retention, error) {
	return &weir.Retention{}, nil
}

func (a *changeAdmin) ChangeEntity(
	ctx context.Context, _ string, _ *change.Entity, _ *change.Options,
) (string, error) {
	return "", a.note(ctx)
}

func (a *changeAdmin) RemoveEntity(ctx context.Context, _ string, _ *change.Options) error {
	return a.note(ctx)
}

func (a *changeAdmin) PlanLimits(
	ctx context.Context, _ *httpapi.LimitsFile,
) (*httpapi.LimitsPlan, error) {
	return &httpapi.LimitsPlan{}, a.note(ctx)
}

func (a *changeAdmin) ApplyLimits(
	ctx context.Context, _ *httpapi.LimitsFile,
) (*httpapi.LimitsPlan, error) {
	return &httpapi.LimitsPlan{}, a.note(ctx)
}

func (a *changeAdmin) RegisterNamespace(
	ctx context.Context, _ string,
) (*namespace.Namespace, bool, error) {
	return &namespace.Namespace{}, true, a.note(ctx)
}

func (a *changeAdmin) DeleteNamespace(ctx context.Context, _ string) (*namespace.Namespace, error) {
	return &namespace.Namespace{}, a.note(ctx)
}

func (a *changeAdmin) RecoverNamespace(ctx context.Context, _ string) (*namespace.Namespace, error) {
	return &namespace.Namespace{}, a.note(ctx)
}

func (a *changeAdmin) PurgeNamespace(
	ctx context.Context, _ string, _ bool, _ func(int64),
) (int64, error) {
	return 0, a.note(ctx)
}

// TestPrincipal checks that every change of the configuration carries the name of its caller, and
// that an address is not taken for a name.
func TestPrincipal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		tokens bool
		want   string
	}{{true, "somebody"}, {false, ""}} {
		admin := &changeAdmin{}
		o := &httphandler.Options{Admin: admin, Limits: admin, Namespaces: admin}
		if c.tokens {
			o.Authenticate = roleTokens
		}
		h := httphandler.New(nil, o)
		changes := 0
		for pattern, request := range routeRequests() {
			if request.role != httphandler.RoleAdmin || request.method == http.MethodGet {
				continue
			}
			changes++
			s := request.sent
			s.header = []string{"Authorization", "Bearer admin-token"}
			if a := askHandler(t, h, s); a.status != http.StatusOK {
				t.Errorf("%s: %s", pattern, a.text)
			}
		}
		if len(admin.names) != changes || changes < 9 {
			t.Errorf("%d changes, %d calls", changes, len(admin.names))
		}
		for _, name := range admin.names {
			if name != c.want {
				t.Errorf("bearer tokens %v: got the principal %q, want %q", c.tokens, name, c.want)
			}
		}
	}
}

// FuzzRecordsQuery sends any query, which is answered or refused with a mistake.
func FuzzRecordsQuery(f *testing.F) {
	for _, query := range []string{
		"entity=acme&window=daily&from=2026-10-01&to=2026-11-01&size=3", "resource=gpt-4o&limit=tpm",
		"entity=acme&after=aG91cmx5IDE3OTA4MTI4MDAgZ3B0LTRvIGFjbWU", "from=0000-01-01&to=9999-12-31T23:59:59Z",
		"entity=a%2Fb:c@d-e_f.g&size=1000", "after=01K6EVENT00000000000000002", "window=%ff&from=+", "",
	} {
		f.Add(query)
	}
	records := recordstore.Month().Open(f, nil)
	h := httphandler.New(records, &httphandler.Options{Records: records})
	f.Fuzz(func(t *testing.T, query string) {
		for _, path := range []string{"/v1/usage", "/v1/audit"} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
			r.URL.RawQuery = query
			recorder := httptest.NewRecorder()
			h.ServeHTTP(recorder, r)
			a := readAnswer(t, http.MethodGet, recorder.Result())
			if a.status != http.StatusOK && (a.status != http.StatusBadRequest || a.body["reason"] == nil) {
				t.Errorf("%s: %d %s", path, a.status, a.text)
			}
		}
	})
}
