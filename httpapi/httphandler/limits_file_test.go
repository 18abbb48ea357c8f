package httphandler_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/httpapi/httphandler"
)

// limitsBody returns the body that sends a limits file.
func limitsBody(t *testing.T, text string, more ...string) string {
	t.Helper()
	quoted, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	members := append([]string{`"name":"limits.yaml"`, `"text":` + string(quoted)}, more...)
	return "{" + strings.Join(members, ",") + "}"
}

// TestLimitsFile plans, applies and exports a limits file. What the server had before stays, and an
// apply says how long it holds.
func TestLimitsFile(t *testing.T) {
	t.Parallel()
	const note = "holds until the next reload or restart"
	w := newHandlerWorld(t, &httphandler.Options{AdminNote: note})
	const bucket = "bucket: {limits: {rpm: {capacity: 9}, " +
		"tpm: {capacity: 1000, refill_amount: 500, refill_period: 30}}}"
	const file = "version: 1\nresources: {new: {limits: {rpm: {capacity: 3}}}, " + bucket + "}\n"
	w.reserve(`{"entity":"acme","resource":"bucket","costs":{"rpm":1}}`).want(t, 200)
	planned := w.post("admin/limits/plan", limitsBody(t, file))
	planned.want(t, 200, "note", nil, "applied", nil)
	reached := false
	for _, c := range planned.body["changes"].([]any) {
		change := c.(map[string]any)
		if change["path"] == "resources.bucket.limits.rpm" {
			live := change["live"].(map[string]any)
			reached = live["count"] == 1.0 && live["names"].([]any)[0] == "acme"
		}
	}
	if !reached {
		t.Errorf("the change of the resource does not reach acme: %s", planned.text)
	}
	w.get("/v1/admin/resources/new/limits").want(t, 200, "limits", map[string]any{})
	w.post("admin/limits/apply", limitsBody(t, file)).want(t, 200, "note", note, "failed", nil)
	w.get("/v1/admin/resources/new/limits").want(t, 200, "limits", map[string]any{
		"rpm": map[string]any{
			"kind": "bucket", "capacity": 3.0, "refill_amount": 3.0, "refill_period": 60.0,
		},
	})
	w.get("/v1/admin/entities/acme").want(t, 200) // no file manages it
	w.post("admin/limits/apply", limitsBody(t, file)).want(t, 200, "changes", []any{}, "note", nil)

	text, _ := w.get("/v1/admin/limits/export").body["text"].(string)
	if !strings.Contains(text, "  new:\n    limits:\n      rpm: {capacity: 3}\n") {
		t.Errorf("the export lacks the limits that were applied:\n%s", text)
	}
	again := w.post("admin/limits/plan", limitsBody(t, text))
	again.want(t, 200, "changes", []any{}, "unmanaged", []any{})

	const less = "version: 1\nresources: {" + bucket + "}\n"
	w.post("admin/limits/apply", limitsBody(t, less)).
		want(t, 409, "code", "conflict", "field", "limits")
	w.post("admin/limits/apply", limitsBody(t, less, `"yes":true`)).want(t, 200, "applied", 1.0)
	w.get("/v1/admin/resources/new/limits").want(t, 200, "limits", map[string]any{})
}

// patientLimits records whether its caller could still stop it.
type patientLimits struct {
	httpapi.LimitsAdmin

	called bool
	err    error
}

func (p *patientLimits) ApplyLimits(
	ctx context.Context, _ *httpapi.LimitsFile,
) (*httpapi.LimitsPlan, error) {
	p.called, p.err = true, ctx.Err()
	return &httpapi.LimitsPlan{}, nil
}

// TestApplyGoesOn checks that an apply does not end with its client: half of a file is no state that
// anybody wants.
func TestApplyGoesOn(t *testing.T) {
	t.Parallel()
	limits := &patientLimits{}
	h := httphandler.New(nil, &httphandler.Options{Limits: limits})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	r := httptest.NewRequestWithContext(gone, http.MethodPost, "/v1/admin/limits/apply",
		strings.NewReader(limitsBody(t, "version: 1")))
	r.Header.Set("Content-Type", "application/json")
	h.ServeHTTP(httptest.NewRecorder(), r)
	if !limits.called || limits.err != nil {
		t.Errorf("called %v, with a context that has ended: %v", limits.called, limits.err)
	}
}

func TestLimitsFileMistakes(t *testing.T) {
	t.Parallel()
	bad := func(body, field, value, reason string) mistake {
		return mistake{
			name: body, status: 400, field: field, value: value, reason: reason,
			sent: sent{method: "POST", target: "/v1/admin/limits/apply", body: body},
		}
	}
	checkMistakes(t, []mistake{
		bad(`{}`, "text", "", "must be given"),
		bad(`{"text":""}`, "text", "", "must not be empty"),
		bad(`{"text":7}`, "text", "7", "must be a string"),
		bad(`{"text":"version: 1","yes":1}`, "yes", "1", "must be a boolean"),
		bad(`{"text":"version: 1","force":true}`, "force", "force", "is not a known field"),
		bad(limitsBody(t, "version: 1\nresources: {r: {limits: {rpm: {capacity: 0}}}}\n"),
			"resources.r.limits.rpm.capacity", "0", "(line 2, column 42)"),
		bad(limitsBody(t, "version: 1\nresources: {'a b': {limits: {rpm: {capacity: 1}}}}\n"),
			`resources."a b"`, "a b", "(line 2, column 13)"),
	})
}

// toldTrail keeps what it is told.
type toldTrail struct {
	changes  []httphandler.Change
	refusals int
}

func (t *toldTrail) Changed(_ context.Context, c *httphandler.Change) {
	t.changes = append(t.changes, *c)
}

func (t *toldTrail) Refused(context.Context, *httphandler.Refusal) { t.refusals++ }

// TestApplyIsTold checks that the trail is told of each change of an apply, of an apply that is
// refused, and of a malformed file once.
func TestApplyIsTold(t *testing.T) {
	t.Parallel()
	trail := &toldTrail{}
	w := newHandlerWorld(t, &httphandler.Options{Trail: trail})
	const file = "version: 1\nsystem: {on_unavailable: allow}\n" +
		"resources: {new: {limits: {rpm: {capacity: 3}}}}\nentities: {e: {}, f: {parent: e}}\n"
	for _, text := range []string{file, file, "version: 1\n", "version: 2\n"} {
		w.post("admin/limits/apply", limitsBody(t, text))
	}
	var told []string
	for _, c := range trail.changes {
		told = append(told, c.Action+" "+c.At.Entity+c.At.Resource+" "+c.Before+">"+c.After+
			" "+http.StatusText(c.Status))
	}
	want := `on_unavailable_set  block>allow OK
limits_set new none>rpm:3 OK
entity_set e none>none OK
entity_set f none>none OK
entity_set f none>parent e OK
limits_applied  > Conflict`
	if got := strings.Join(told, "\n"); got != want || trail.refusals != 1 {
		t.Errorf("told %d refusals, want 1, and\n%s\nwant\n%s", trail.refusals, got, want)
	}
}
