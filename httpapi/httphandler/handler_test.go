package httphandler_test

import (
	"net/http"
	"testing"
	"time"
)

// first returns the first limit in an answer.
func (a *answered) first(t *testing.T) map[string]any {
	t.Helper()
	limits, ok := a.body["limits"].([]any)
	if !ok || len(limits) == 0 {
		t.Fatalf("no limits in %s", a.text)
	}
	return limits[0].(map[string]any)
}

func TestReserveSettle(t *testing.T) {
	t.Parallel()
	w := newHandlerWorld(t, nil)
	id := w.lease()
	body := `{"lease_id":"` + id + `","entity":"acme","resource":"bucket","costs":{"rpm":1,"tpm":300}}`
	a := w.reserve(body)
	at := float64(w.now.Load())
	a.want(t, 200, "allowed", true, "lease_id", id, "reserved_at_unix_ms", at,
		"expires_at_unix_ms", at+3_600_000, "replay", nil, "degraded", nil, "seq", nil,
		"limits", []any{
			map[string]any{
				"entity": "acme", "resource": "bucket", "limit": "rpm", "kind": "bucket",
				"level": "resource", "capacity": 600.0, "available": 599.0, "requested": 1.0,
				"exceeded": false,
			},
			map[string]any{
				"entity": "acme", "resource": "bucket", "limit": "tpm", "kind": "bucket",
				"level": "resource", "capacity": 1000.0, "available": 700.0, "requested": 300.0,
				"exceeded": false,
			},
		})

	w.reserve(body).want(t, 200, "allowed", true, "replay", true, "lease_id", id)
	if got := w.available("acme", "bucket", "tpm"); got != 700 {
		t.Errorf("%d left after a replay, want 700", got)
	}
	w.post("adjust", `{"lease_id":"`+id+`","seq":1,"totals":{"tpm":500}}`).
		want(t, 200, "lease_id", id, "at_unix_ms", at, "expires_at_unix_ms", at+3_600_000)
	if got := w.available("acme", "bucket", "tpm"); got != 500 {
		t.Errorf("%d left after the adjust, want 500", got)
	}
	w.advance(time.Second)
	w.post("extend", `{"lease_id":"`+id+`"}`).want(t, 200, "expires_at_unix_ms", at+3_601_000)
	complete := `{"lease_id":"` + id + `","actuals":{"tpm":100}}`
	first := w.post("complete", complete)
	first.want(t, 200, "at_unix_ms", at+1000, "expires_at_unix_ms", nil)
	if got := w.available("acme", "bucket", "tpm"); got != 916 {
		t.Errorf("%d left after the complete, want 916: one second's refill and what was not used", got)
	}
	w.advance(time.Second)
	if again := w.post("complete", complete); again.text != first.text {
		t.Errorf("repeated complete says %s, first said %s", again.text, first.text)
	}
	w.post("complete", `{"lease_id":"`+id+`","actuals":{"tpm":101}}`).
		want(t, 409, "code", "conflict", "field", "lease_id", "value", id)
	w.reserve(body).want(t, 409, "code", "ended", "type", "urn:weir:problem:ended")
}

func TestCancel(t *testing.T) {
	t.Parallel()
	w := newHandlerWorld(t, nil)
	before := w.state()
	id, ok := w.reserve(`{"entity":"acme","resource":"slots"}`).body["lease_id"].(string)
	if !ok || w.available("acme", "slots", "parallel") != 1 {
		t.Fatal("no slot was taken")
	}
	first := w.post("cancel", `{"lease_id":"`+id+`"}`)
	first.want(t, 200, "lease_id", id)
	w.unchanged(before)
	if again := w.post("cancel", `{"lease_id":"`+id+`"}`); again.text != first.text {
		t.Errorf("repeated cancel says %s, first said %s", again.text, first.text)
	}
	w.unchanged(before)
}

// TestCharges checks that charges are settled by their index, and also charge ancestors.
func TestCharges(t *testing.T) {
	t.Parallel()
	w := newHandlerWorld(t, nil)
	a := w.reserve(`{"charges":[
		{"entity":"acme-bot","resource":"bucket","costs":{"tpm":100}},
		{"entity":"team/a","resource":"bucket","costs":{"rpm":2}},
		{"entity":"acme","resource":"slots"}]}`)
	a.want(t, 200)
	id := a.body["lease_id"].(string)
	got := []int64{
		w.available("acme-bot", "bucket", "tpm"), w.available("acme", "bucket", "tpm"),
		w.available("team/a", "bucket", "rpm"), w.available("acme", "slots", "parallel"),
	}
	if want := [...]int64{900, 900, 5, 1}; [4]int64(got) != want {
		t.Errorf("%v left after the reserve, want %v", got, want)
	}
	w.post("complete", `{"lease_id":"`+id+`","actuals":[{"tpm":10},{"rpm":1},{}]}`).want(t, 200)
	got = []int64{
		w.available("acme-bot", "bucket", "tpm"), w.available("acme", "bucket", "tpm"),
		w.available("team/a", "bucket", "rpm"), w.available("acme", "slots", "parallel"),
	}
	if want := [...]int64{990, 990, 6, 2}; [4]int64(got) != want {
		t.Errorf("%v left after the complete, want %v", got, want)
	}
}

func TestDenied(t *testing.T) {
	t.Parallel()
	w := newHandlerWorld(t, nil)
	w.reserve(`{"entity":"acme","resource":"bucket","costs":{"tpm":1000}}`).want(t, 200)
	before := w.state()
	id := w.lease()
	body := `{"lease_id":"` + id + `","entity":"acme","resource":"bucket","costs":{"rpm":1,"tpm":25}}`
	a := w.reserve(body)
	a.want(t, 429, "type", "https://iana.org/assignments/http-problem-types#quota-exceeded",
		"title", "Denied by a limit", "allowed", false, "lease_id", id, "retry_after_ms", 1500,
		"retry_after_at_least", nil, "contended", nil, "code", nil,
		"violated-policies", []any{"tpm"}, "limits", []any{
			map[string]any{
				"entity": "acme", "resource": "bucket", "limit": "rpm", "kind": "bucket",
				"level": "resource", "capacity": 600.0, "available": 600.0, "requested": 1.0,
				"exceeded": false,
			},
			map[string]any{
				"entity": "acme", "resource": "bucket", "limit": "tpm", "kind": "bucket",
				"level": "resource", "capacity": 1000.0, "available": 0.0, "requested": 25.0,
				"exceeded": true, "retry_after_ms": 1500.0,
			},
		})
	if got := a.header.Get("Retry-After"); got != "2" {
		t.Errorf("Retry-After %q, want 2: a second and a half, rounded up", got)
	}
	w.unchanged(before)
	w.advance(1499 * time.Millisecond)
	w.reserve(body).want(t, 429, "retry_after_ms", 1)
	w.advance(time.Millisecond)
	w.reserve(body).want(t, 200, "allowed", true, "lease_id", id)
}

// TestRetryAfterAtLeastOne checks that a wait of less than a second becomes a Retry-After of one
// second.
func TestRetryAfterAtLeastOne(t *testing.T) {
	t.Parallel()
	w := newHandlerWorld(t, nil)
	w.reserve(`{"entity":"acme","resource":"bucket","costs":{"tpm":1000}}`).want(t, 200)
	w.advance(59 * time.Millisecond)
	a := w.reserve(`{"entity":"acme","resource":"bucket","costs":{"tpm":1}}`)
	a.want(t, 429, "retry_after_ms", 1)
	if got := a.header.Get("Retry-After"); got != "1" {
		t.Errorf("Retry-After %q, want 1", got)
	}
}

func TestStatusExplain(t *testing.T) {
	t.Parallel()
	w := newHandlerWorld(t, nil)
	w.reserve(`{"entity":"team/a","resource":"bucket","costs":{"rpm":3}}`).want(t, 200)
	a := w.ask(sent{method: "GET", target: "/v1/status?entity=team%2Fa&resource=bucket"})
	a.want(t, 200)
	if s := a.first(t); s["available"] != 4.0 || s["level"] != "entity" || s["requested"] != 0.0 {
		t.Errorf("status %v", s)
	}
	a = w.ask(sent{method: "GET", target: "/v1/status?entity=team/a"})
	a.want(t, 200)
	if s := a.first(t); s["resource"] != "bucket" {
		t.Errorf("status of every resource %v", s)
	}
	a = w.ask(sent{method: "GET", target: "/v1/explain?entity=acme-bot&resource=bucket"})
	a.want(t, 200, "entity", "acme-bot", "resource", "bucket", "level", "resource",
		"on_unavailable", "block", "on_unavailable_from", "system")
	if parent := a.body["parent"].(map[string]any); parent["on_unavailable"] != nil {
		t.Errorf("the parent has a policy: %v", parent)
	}
	limits := a.body["limits"].(map[string]any)
	if tpm := limits["tpm"].(map[string]any); tpm["refill_amount"] != 500.0 ||
		tpm["refill_period"] != 30.0 {
		t.Errorf("tpm is %v", tpm)
	}
	hidden := a.body["hidden"].([]any)[0].(map[string]any)
	if hidden["level"] != "system" || len(hidden["limits"].(map[string]any)) != 1 {
		t.Errorf("hidden is %v", hidden)
	}
	if parent := a.body["parent"].(map[string]any); parent["entity"] != "acme" ||
		parent["parent"] != nil {
		t.Errorf("parent is %v", parent)
	}
}

func TestHead(t *testing.T) {
	t.Parallel()
	w := newHandlerWorld(t, nil)
	for _, target := range []string{
		"/healthz", "/readyz", "/openapi.json", "/v1/status?entity=acme&resource=bucket",
		"/v1/explain?entity=acme&resource=bucket", "/v1/entities/acme/children",
		"/v1/resources/bucket/capacity", "/v1/admin/system",
	} {
		a := w.ask(sent{method: "HEAD", target: target})
		if a.status != http.StatusOK || a.header.Get("Content-Length") == "0" {
			t.Errorf("HEAD %s: %d, length %s", target, a.status, a.header.Get("Content-Length"))
		}
	}
	if a := w.ask(sent{method: "HEAD", target: "/v1/status"}); a.status != http.StatusBadRequest {
		t.Errorf("HEAD of a bad request: %d", a.status)
	}
}
