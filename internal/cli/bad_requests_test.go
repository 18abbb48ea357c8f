package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/weir-limiter/weir"
)

// The bearer tokens of the servers under test, by role.
const (
	wireReader  = "read-read-read-read"
	wireCaller  = "call-call-call-call"
	wireAdmin   = "admin-admin-admin"
	wireNoToken = "nobody-nobody-nobody"
)

const (
	badWireTokens = `tokens:
  - {name: reader, role: read, token: ` + wireReader + `}
  - {name: caller, role: call, token: ` + wireCaller + `}
  - {name: admin, role: admin, token: ` + wireAdmin + `}
`
	badWireLimits = `version: 1
system:
  limits:
    rpm: {capacity: 10, refill_amount: 1, refill_period: 86400}
    recent: {kind: window, capacity: 10, window: 86400}
    parallel: {kind: concurrency, capacity: 4, timeout: 3600}
    daily: {kind: budget, capacity: 10, every: month, zone: "@zone@"}
    huge: {kind: budget, capacity: 9223372036854775807, every: month, zone: "@zone@"}
resources:
  key: {limits: {units: {capacity: 10, refill_amount: 1, refill_period: 86400}}}
entities:
  org: {}
  child: {parent: org, cascade: true}
`
)

// badWireWorld is a server with a live lease on every kind of limit, a flat one and one that has
// ended, so that there is state to damage.
type badWireWorld struct {
	*wireServer
	live, flat, ended string
	// files are the names of the files that the server reads, by their word in rows.
	files map[string]string
}

func newBadWireWorld(t *testing.T, args ...string) *badWireWorld {
	t.Helper()
	w := &badWireWorld{files: map[string]string{
		"limits": wireFile(t, "limits.yaml", strings.ReplaceAll(badWireLimits, "@zone@",
			quietZone(time.Now()))),
		"tokens": wireFile(t, "tokens.yaml", badWireTokens),
	}}
	w.wireServer = startWireServer(t, append(args, "--limits", w.files["limits"], "--tokens",
		w.files["tokens"])...)
	for _, lease := range []struct {
		id   *string
		body string
	}{
		{&w.live, `"entity":"acme","resource":"llm","costs":{"rpm":3,"recent":3,"daily":3,"huge":3}`},
		{&w.flat, `"requirements":[{"key":"flat","amount":2}]`},
		{&w.ended, `"entity":"acme","resource":"llm","costs":{"rpm":1}`},
	} {
		*lease.id = weir.NewLeaseID(time.Now()).String()
		w.must(t, wirePost("/v1/reserve", `{"lease_id":"`+*lease.id+`",`+lease.body+`}`))
	}
	w.must(t, wirePost("/v1/complete", `{"lease_id":"`+w.ended+`"}`))
	return w
}

// must sends a request that is admitted or done, and returns the body of the answer.
func (w *badWireWorld) must(t *testing.T, sent wireSent) string {
	t.Helper()
	got, err := w.send(sent)
	if err != nil {
		t.Fatalf("%s %s: %v", sent.method, sent.target, err)
	}
	if got.status != http.StatusOK {
		t.Fatalf("%s %s: got %d %s, want 200", sent.method, sent.target, got.status, got.body)
	}
	return string(got.body)
}

// state returns everything that a caller can see of the server's state.
func (w *badWireWorld) state(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for _, target := range []string{
		"/v1/status?entity=acme", "/v1/status?entity=flat", "/v1/status?entity=child&resource=llm",
		"/v1/status?entity=org", "/v1/explain?entity=child&resource=llm",
		"/v1/resources/llm/capacity", "/v1/resources/key/capacity",
		"/v1/admin/system", "/v1/admin/entities", "/v1/admin/resources/llm/limits",
		"/v1/admin/entities/child", "/v1/admin/entities/org",
	} {
		b.WriteString(w.must(t, wireGet(target).with("Authorization: Bearer "+wireAdmin)))
	}
	return b.String()
}

// serves checks that a valid request is still admitted, and gives back what it took.
func (w *badWireWorld) serves(t *testing.T) {
	t.Helper()
	id := weir.NewLeaseID(time.Now()).String()
	got := w.must(t, wirePost("/v1/reserve", `{"lease_id":"`+id+`","entity":"acme","resource":"llm",`+
		`"costs":{"rpm":2,"recent":2,"daily":2,"parallel":2}}`))
	for path, want := range map[string]string{
		"allowed": "true", "limits.*": "4", "limits.rpm.requested": "2", "limits.rpm.available": "4",
	} {
		if value, err := lookUpJSON(got, path); err != nil || value != want {
			t.Errorf("a good request: %s: got %s and error %v, want %s", path, value, err, want)
		}
	}
	w.must(t, wirePost("/v1/cancel", `{"lease_id":"`+id+`"}`))
}

// badRow is one mistake of a client, and the answer to it. Field and value may be regular
// expressions for the whole, after a ~.
type badRow struct {
	sent         string
	request      wireSent
	status       int
	code         weir.Code
	field, value string
	// plain marks answers of net/http in plain text: the request does not reach the handler.
	plain bool
	// more are the statuses of further answers on the connection.
	more []int
}

// TestBadWire checks that the answer to each bad request names the mistake, that nothing changes,
// and that the next valid request is served. With -v it prints a table.
func TestBadWire(t *testing.T) {
	t.Parallel()
	fast := newBadWireWorld(t)
	impatient := newBadWireWorld(t, "--header-timeout", "1s", "--read-timeout", "1s")
	count := 0
	for _, group := range []struct {
		name  string
		world *badWireWorld
		rows  []badRow
	}{
		{"documents", fast, badDocuments()},
		{"numbers", fast, badNumbers()},
		{"requests", fast, badShapes()},
		{"names", fast, badNames()},
		{"lease IDs", fast, badLeaseIDs(fast)},
		{"settlements", fast, badSettlements(fast)},
		{"leases", fast, badVerbs(fast)},
		{"flat keys", fast, badFlatKeys(fast)},
		{"media types", fast, badMedia()},
		{"methods", fast, badMethods()},
		{"bearer tokens", fast, badTokens(fast)},
		{"paths", fast, badPaths()},
		{"queries", fast, badQueries()},
		{"administration", fast, badAdmin()},
		{"transfers", fast, badTransfers()},
		{"HTTP", fast, badHTTP()},
		{"smuggling", fast, badSmuggling()},
		{"slowness", impatient, badSlowness()},
	} {
		before := group.world.state(t)
		for _, row := range group.rows {
			got, err := group.world.send(row.request)
			if err != nil {
				t.Errorf("%s: %s: %v", group.name, row.sent, err)
				continue
			}
			group.world.serves(t)
			after := group.world.state(t)
			if after != before {
				t.Errorf("%s: %s: state: got\n%s\nwant\n%s", group.name, row.sent, after, before)
				before = after
			}
			t.Logf("%-14s %-58s → %s", group.name, row.sent, row.judge(t, got))
			count++
		}
	}
	t.Logf("%d bad requests; after each, the state was compared and a good request was served", count)
	if count < 80 {
		t.Errorf("got %d rows, want at least 80", count)
	}
	checkSecrets(t, fast, impatient)
}

// checkSecrets checks that the output of the servers has no bearer token.
func checkSecrets(t *testing.T, worlds ...*badWireWorld) {
	t.Helper()
	for _, w := range worlds {
		for _, secret := range []string{wireReader, wireCaller, wireAdmin, wireNoToken} {
			if strings.Contains(w.said.String(), secret) {
				t.Errorf("the server's log has the bearer token %s", secret)
			}
		}
	}
}

// judge compares an answer with the one that the row expects, and returns it in one line.
func (row badRow) judge(t *testing.T, got *wireAnswer) string {
	t.Helper()
	if got.status != row.status || !slices.Equal(got.more, row.more) {
		t.Errorf("%s: got %d %s and then %v, want %d and then %v",
			row.sent, got.status, got.body, got.more, row.status, row.more)
	}
	if got.status == 0 {
		return "closed without an answer"
	}
	if strings.Contains(string(got.body), wireNoToken) {
		t.Errorf("%s: the answer repeats the bearer token: %s", row.sent, got.body)
	}
	kind := got.head.Get("Content-Type")
	if row.plain {
		if strings.HasPrefix(kind, "application/") {
			t.Errorf("%s: got %s, want net/http's own words", row.sent, kind)
		}
		return fmt.Sprintf("%d %q (net/http, in plain text)", got.status, got.body)
	}
	if got.status == http.StatusOK || row.request.method == http.MethodHead {
		return fmt.Sprint(got.status, " ", string(got.body))
	}
	for status, name := range map[int]string{
		http.StatusUnauthorized: "WWW-Authenticate", http.StatusMethodNotAllowed: "Allow",
	} {
		if got.status == status && got.head.Get(name) == "" {
			t.Errorf("%s: got %d without %s", row.sent, status, name)
		}
	}
	if kind != "application/problem+json" || !utf8.Valid(got.body) {
		t.Errorf("%s: got Content-Type %q and body %q, want a problem in UTF-8", row.sent, kind, got.body)
		return string(got.body)
	}
	return row.judgeProblem(t, got)
}

func (row badRow) judgeProblem(t *testing.T, got *wireAnswer) string {
	t.Helper()
	var p struct {
		Type, Title, Detail string
		Status              int
		Code                weir.Code
		Field, Value        string
		Reason              string
		Allowed             *bool
		RetryAfterMS        *int64 `json:"retry_after_ms"`
	}
	if err := json.Unmarshal(got.body, &p); err != nil {
		t.Errorf("%s: %v in %s", row.sent, err, got.body)
		return string(got.body)
	}
	problem := "urn:weir:problem:" + strings.ReplaceAll(string(p.Code), " ", "-")
	switch {
	case p.Status != got.status || p.Title == "" || p.Detail == "":
		t.Errorf("%s: got %s, want the status %d again, a title and a detail", row.sent, got.body,
			got.status)
	case got.status == http.StatusTooManyRequests:
		if p.Allowed == nil || *p.Allowed || p.RetryAfterMS == nil || got.head.Get("Retry-After") == "" {
			t.Errorf("%s: got %s, want a whole denial", row.sent, got.body)
		}
	case p.Type != problem && p.Type != "about:blank":
		t.Errorf("%s: got type %s, want %s or about:blank", row.sent, p.Type, problem)
	case p.Allowed != nil || got.head.Get("Ratelimit") != "":
		t.Errorf("%s: got %s %v, which looks like a decision", row.sent, got.body, got.head)
	case p.Code != row.code || !wireLike(p.Field, row.field) || !wireLike(p.Value,
		row.value) || p.Reason == "":
		t.Errorf("%s: got %s, want code %q, field %q, value %q and a reason",
			row.sent, got.body, string(row.code), row.field, row.value)
	}
	if p.Code == "" {
		return fmt.Sprintf("%d %s", got.status, p.Detail)
	}
	return fmt.Sprintf("%d %s: %s %q: %s", got.status, string(p.Code), p.Field, p.Value, p.Reason)
}

// wireLike reports whether a text is the one wanted or, if that begins with ~, matches the rest of
// it as a pattern.
func wireLike(got, want string) bool {
	if pattern, ok := strings.CutPrefix(want, "~"); ok {
		return regexp.MustCompile("^(?s:" + pattern + ")$").MatchString(got)
	}
	return got == want
}
