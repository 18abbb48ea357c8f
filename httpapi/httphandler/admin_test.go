package httphandler_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi/httphandler"
	"github.com/weir-limiter/weir/memory"
)

func (w *handlerWorld) get(target string) *answered {
	w.t.Helper()
	return w.ask(sent{method: "GET", target: target})
}

func (w *handlerWorld) put(target, body string) *answered {
	w.t.Helper()
	return w.ask(sent{method: "PUT", target: target, body: body})
}

func (w *handlerWorld) delete(target string) *answered {
	w.t.Helper()
	return w.ask(sent{method: "DELETE", target: target})
}

// TestAdminLimits checks that the limits put at a place are returned for it, and apply to requests.
func TestAdminLimits(t *testing.T) {
	t.Parallel()
	w := newHandlerWorld(t, &httphandler.Options{AdminNote: "holds until the next reload or restart"})
	const note = "holds until the next reload or restart"
	all := map[string]any{
		"a": map[string]any{"kind": "bucket", "capacity": 10.0, "refill_amount": 10.0,
			"refill_period": 60.0},
		"b": map[string]any{"kind": "bucket", "capacity": 10.0, "refill_amount": 3.0,
			"refill_period": 0.25},
		"c": map[string]any{"kind": "window", "capacity": 5.0, "window": 30.0},
		"d": map[string]any{"kind": "concurrency", "capacity": 2.0, "timeout": 60.0},
		"e": map[string]any{"kind": "budget", "capacity": 9.0, "every": "day", "zone": "UTC",
			"enforce": false},
	}
	body := `{"limits":{"b":{"capacity":10,"refill_amount":3,"refill_period":0.250},"a":{"capacity":10},
		"c":{"kind":"window","capacity":5,"window":30},"d":{"kind":"concurrency","capacity":2,"timeout":60},
		"e":{"kind":"budget","capacity":9,"every":"day","enforce":false}}}`
	for _, c := range []struct {
		place, entity, resource string
		level                   weir.Level
	}{
		{"/v1/admin/system/limits", "x1", "nowhere", weir.LevelSystem},
		{"/v1/admin/resources/nowhere/limits", "x2", "nowhere", weir.LevelResource},
		{"/v1/admin/entities/x3/limits", "x3", "nowhere", weir.LevelEntityDefault},
		{"/v1/admin/entities/x4/limits?resource=nowhere", "x4", "nowhere", weir.LevelEntity},
		{"/v1/admin/entities/x%2F1/limits?resource=openai%2Fgpt", "x/1", "openai/gpt", weir.LevelEntity},
	} {
		w.put(c.place, body).want(t, 200, "limits", all, "note", note)
		w.get(c.place).want(t, 200, "limits", all, "note", nil)
		a := w.reserve(fmt.Sprintf(`{"entity":%q,"resource":%q,"costs":{"c":5}}`, c.entity, c.resource))
		a.want(t, 200)
		if level := a.first(t)["level"]; level != string(c.level) {
			t.Errorf("%s: judged by level %v, want %s", c.place, level, c.level)
		}
		w.reserve(fmt.Sprintf(`{"entity":%q,"resource":%q,"costs":{"c":1}}`, c.entity,
			c.resource)).want(t, 429)
		w.put(c.place, `{"limits":{"z":{"capacity":1}}}`).want(t, 200)
		w.reserve(fmt.Sprintf(`{"entity":%q,"resource":%q,"costs":{"c":1}}`, c.entity, c.resource)).
			want(t, 404, "code", "unknown limit")
		w.reserve(fmt.Sprintf(`{"entity":%q,"resource":%q,"costs":{"z":1}}`, c.entity,
			c.resource)).want(t, 200)
		w.delete(c.place).want(t, 200, "limits", map[string]any{}, "note", note)
		w.delete(c.place).want(t, 200, "limits", map[string]any{})
		w.get(c.place).want(t, 200, "limits", map[string]any{})
	}
	w.reserve(`{"entity":"x1","resource":"nowhere","costs":{"z":1}}`).
		want(t, 404, "code", "no limits configured", "field", "entity", "value", "x1")
}

func TestAdminMistakes(t *testing.T) {
	t.Parallel()
	bad := func(method, target, body, field, value, reason string) mistake {
		return mistake{
			name: method + " " + target + " " + body, status: 400, field: field, value: value,
			reason: reason,
			sent:   sent{method: method, target: target, body: body},
		}
	}
	const (
		bucket    = "/v1/admin/resources/bucket/limits"
		retention = "/v1/admin/system/retention"
	)
	conflict := bad("DELETE", "/v1/admin/entities/acme", "", "entity", "acme", "acme-bot")
	conflict.status = 409
	unknown := bad("GET", "/v1/admin/entities/nobody", "", "entity", "nobody", "is not declared")
	unknown.status = 404
	unknownDelete := bad("DELETE", "/v1/admin/entities/nobody", "", "entity", "nobody",
		"is not declared")
	unknownDelete.status = 404
	checkMistakes(t, []mistake{
		conflict, unknown, unknownDelete,
		bad("PUT", bucket, ``, "body", "", "is empty"),
		bad("PUT", bucket, `{}`, "limits", "", "must be given"),
		bad("PUT", bucket, `{"limits":null}`, "limits", "null", "must be an object"),
		bad("PUT", bucket, `{"limits":{},"limits":{}}`, "limits", "limits", "is given twice"),
		bad("PUT", bucket, `{"limits":{},"note":"x"}`, "note", "note", "is not a known field"),
		bad("PUT", bucket, `{"rpm":{"capacity":1}}`, "rpm", "rpm", "is not a known field"),
		bad("PUT", bucket, `{"limits":{"usd":{"capacity":0.50}}}`, "limits.usd.capacity", "0.50", "money is counted in "+
			"whole millionths, in a limit with a name such as usd_micros: write 500000 for 0.50 USD"),
		bad("PUT", bucket, `{"limits":{"rpm":{"capacity":0}}}`, "limits.rpm.capacity", "0",
			"must be above zero"),
		bad("PUT", bucket, `{"limits":{"rpm":{"capacity":1},"wcu":{"capacity":1}}}`, "limits.wcu.name",
			"wcu", "is reserved"),
		bad("PUT", "/v1/admin/resources/b%20c/limits", `{"limits":{}}`, "resource", "b c",
			"must not contain ' '"),
		bad("PUT", "/v1/admin/entities/a%0Ab/limits", `{"limits":{}}`, "entity", "a\nb",
			"must not contain '\\n', which cannot be printed"),
		bad("PUT", "/v1/admin/system/on_unavailable", `{}`, "on_unavailable", "", "must be given"),
		bad("PUT", "/v1/admin/system/on_unavailable", `{"on_unavailable":"maybe"}`, "on_unavailable",
			"maybe", "must be block or allow"),
		bad("PUT", "/v1/admin/system/on_unavailable", `{"on_unavailable":true}`, "on_unavailable",
			"true", "must be a string"),
		bad("PUT", "/v1/admin/system/on_unavailable", `{"on_unavailable":"block","x":1}`, "x", "x",
			"is not a known field"),
		bad("PUT", "/v1/admin/system/on_unavailable", `"block"`, "body", `"block"`, "must be an object"),
		bad("PUT", retention, `{}`, "retention", "", "must have at least one of"),
		bad("PUT", retention, `{"usage_days":0}`, "usage_days", "0", "must be from 1 to 3650 days"),
		bad("PUT", retention, `{"audit_days":3651}`, "audit_days", "3651", "must be from 1 to 3650 days"),
		bad("PUT", retention, `{"ttl_multiplier":-1}`, "ttl_multiplier", "-1", "or 0 to keep idle buckets"),
		bad("PUT", retention, `{"ttl_multiplier":1000001}`, "ttl_multiplier", "1000001", "from 2 to 1000000"),
		bad("PUT", retention, `{"ttl_multiplier":1.5}`, "ttl_multiplier", "1.5", "whole number"),
		bad("PUT", retention, `{"audit_days":"7"}`, "audit_days", `"7"`, "must be a number"),
		bad("PUT", retention, `{"usage_days":null}`, "usage_days", "null", "must be a number"),
		bad("PUT", retention, `{"days":7}`, "days", "days", "is not a known field"),
		bad("PUT", "/v1/admin/entities/new", `{"parent":"nobody"}`, "parent", "nobody",
			"is not declared"),
		bad("PUT", "/v1/admin/entities/new", `{"parent":""}`, "parent", "", "must not be empty"),
		bad("PUT", "/v1/admin/entities/new", `{"parent":null}`, "parent", "null", "must be a string"),
		bad("PUT", "/v1/admin/entities/new", `{"cascade":true}`, "cascade", "true", "needs a parent"),
		bad("PUT", "/v1/admin/entities/new", `{"cascade":1}`, "cascade", "1", "must be a boolean"),
		bad("PUT", "/v1/admin/entities/new", `{"entity":"new"}`, "entity", "entity", "is not a known field"),
		bad("PUT", "/v1/admin/entities/new", `{"limits":{}}`, "limits", "limits", "is not a known field"),
		bad("PUT", "/v1/admin/entities/acme", `{"parent":"acme-bot"}`, "parent",
			"acme-bot", "a cycle"),
		bad("PUT", "/v1/admin/entities/acme", `{"parent":"acme"}`, "parent", "acme",
			"is the entity itself"),
	})
}

// TestAdminSeveralMistakes checks that all mistakes in a set of limits are reported at once.
func TestAdminSeveralMistakes(t *testing.T) {
	t.Parallel()
	w := newHandlerWorld(t, nil)
	a := w.put("/v1/admin/system/limits",
		`{"limits":{"rpm":{"capacity":-1,"refill_amount":-2},"wcu":{"capacity":1}}}`)
	a.want(t, 400, "code", "invalid", "field", "limits.rpm.capacity")
	var fields []string
	for _, e := range a.body["errors"].([]any) {
		fields = append(fields, e.(map[string]any)["field"].(string))
	}
	if got := strings.Join(fields,
		" "); got != "limits.rpm.capacity limits.rpm.refill_amount limits.wcu.name" {
		t.Errorf("fields are %s", got)
	}
}

func TestAdminSystem(t *testing.T) {
	t.Parallel()
	w := newHandlerWorld(t, nil)
	rpm := map[string]any{
		"rpm": map[string]any{"kind": "bucket", "capacity": 10.0, "refill_amount": 10.0,
			"refill_period": 60.0},
	}
	w.get("/v1/admin/system").want(t, 200, "on_unavailable", "block", "limits", rpm)
	w.put("/v1/admin/system/on_unavailable", `{"on_unavailable":"allow"}`).
		want(t, 200, "on_unavailable", "allow", "note", nil)
	w.get("/v1/admin/system").want(t, 200, "on_unavailable", "allow", "limits", rpm)
	w.delete("/v1/admin/system/limits").want(t, 200)
	w.get("/v1/admin/system").want(t, 200, "limits", map[string]any{})
}

// TestAdminRetention checks that a change of some settings leaves the others as they are, and that
// a store without such settings says so.
func TestAdminRetention(t *testing.T) {
	t.Parallel()
	const path = "/v1/admin/system/retention"
	w := newHandlerWorld(t, &httphandler.Options{AdminNote: "for now"})
	w.get(path).want(t, 200, "usage_days", 30.0, "audit_days", nil, "ttl_multiplier", nil, "note", nil)
	w.put(path, `{"audit_days":3650,"ttl_multiplier":0}`).
		want(t, 200, "usage_days", 30.0, "audit_days", 3650.0, "ttl_multiplier", 0.0, "note", "for now")
	w.put(path, `{"usage_days":1}`).want(t, 200, "usage_days", 1.0, "audit_days", 3650.0)
	w.get(path).want(t, 200, "usage_days", 1.0, "audit_days", 3650.0, "ttl_multiplier", 0.0, "note", nil)
	w.get("/v1/admin/system").want(t, 200, "retention", map[string]any{
		"usage_days": 1.0, "audit_days": 3650.0, "ttl_multiplier": 0.0,
	})

	store, err := memory.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	w.serve(store)
	for _, a := range []*answered{w.get(path), w.put(path, `{"usage_days":7}`)} {
		a.want(t, 400, "code", "unsupported", "field", "retention")
		if reason := a.body["reason"].(string); !strings.Contains(reason, "DynamoDB") {
			t.Errorf("the reason does not say what to use instead: %s", reason)
		}
	}
	w.get("/v1/admin/system").want(t, 200, "retention", nil)
}

func TestAdminEntities(t *testing.T) {
	t.Parallel()
	w := newHandlerWorld(t, &httphandler.Options{AdminNote: "for now"})
	list := func(target, next string, names ...any) {
		t.Helper()
		if names == nil {
			names = []any{}
		}
		w.get(target).want(t, 200, "entities", names, "next", orNil(next))
	}
	list("/v1/admin/entities", "", "acme", "acme-bot", "slots", "team/a")
	list("/v1/admin/entities?size=2", "acme-bot", "acme", "acme-bot")
	list("/v1/admin/entities?size=2&after=acme-bot", "", "slots", "team/a")
	list("/v1/admin/entities?resource=bucket", "", "team/a")
	list("/v1/entities/acme/children", "", "acme-bot")
	list("/v1/entities/acme-bot/children", "")

	w.put("/v1/admin/entities/team%2Fb", `{"parent":"acme","cascade":true}`).
		want(t, 200, "entity", "team/b", "parent", "acme", "cascade", true, "note", "for now")
	w.get("/v1/admin/entities/team%2Fb").want(t, 200, "entity", "team/b", "parent", "acme", "cascade",
		true,
		"limits", nil, "note", nil)
	list("/v1/entities/acme/children", "", "acme-bot", "team/b")
	list("/v1/entities/acme/children?size=1", "acme-bot", "acme-bot")
	w.reserve(`{"entity":"team/b","resource":"bucket","costs":{"tpm":10}}`).want(t, 200)
	if got := w.available("acme", "bucket", "tpm"); got != 990 {
		t.Errorf("the parent has %d left, want 990", got)
	}
	w.put("/v1/admin/entities/team%2Fb", `{}`).want(t, 200, "parent", nil, "cascade", nil)
	w.reserve(`{"entity":"team/b","resource":"bucket","costs":{"tpm":10}}`).want(t, 200)
	if got := w.available("acme", "bucket", "tpm"); got != 990 {
		t.Errorf("the former parent has %d left, want 990", got)
	}
	w.get("/v1/admin/entities/team%2Fa").want(t, 200, "limits", map[string]any{
		"bucket": map[string]any{
			"rpm": map[string]any{"kind": "bucket", "capacity": 7.0, "refill_amount": 7.0,
				"refill_period": 60.0},
		},
	})
	w.delete("/v1/admin/entities/team%2Fb").want(t, 200, "entity", "team/b", "note", "for now")
	w.delete("/v1/admin/entities/team%2Fb").want(t, 404, "code", "not found")
	list("/v1/entities/acme/children", "", "acme-bot")
}

func TestCapacity(t *testing.T) {
	t.Parallel()
	w := newHandlerWorld(t, nil)
	w.get("/v1/resources/nowhere/capacity").want(t, 200, "limits", []any{})
	w.reserve(`{"entity":"acme","resource":"window","costs":{"hourly":4}}`).want(t, 200)
	a := w.get("/v1/resources/window/capacity")
	a.want(t, 200)
	if s := a.first(t); s["entity"] != "acme" || s["available"] != 6.0 {
		t.Errorf("capacity is %s", a.text)
	}
}
