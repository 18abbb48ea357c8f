package cli

import (
	"net/http"
	"strings"

	"github.com/weir-limiter/weir"
)

// refusedAs returns a row with any field and value, because the HTTP status already names the
// mistake.
func refusedAs(sent string, request wireSent, status int, code weir.Code) badRow {
	return badRow{sent: sent, request: request, status: status, code: code, field: "~.*", value: "~.*"}
}

func badMedia() []badRow {
	media := func(sent string, lines ...string) badRow {
		return refusedAs(sent, reservingRPM("1").with(lines...), http.StatusUnsupportedMediaType,
			weir.Invalid)
	}
	return []badRow{
		media("no Content-Type", "Content-Type:"),
		media("plain text", "Content-Type: text/plain"),
		media("a form", "Content-Type: application/x-www-form-urlencoded"),
		media("another JSON type", "Content-Type: application/problem+json"),
		media("JSON in Latin 1", "Content-Type: application/json; charset=iso-8859-1"),
		media("a Content-Type that is none", "Content-Type: ;;;"),
		media("two Content-Types", "Content-Type: application/json", "Content-Type: text/plain"),
		media("a compressed body", "Content-Encoding: gzip"),
	}
}

func badMethods() []badRow {
	wrong := func(method, target string) badRow {
		return refusedAs(method+" "+target, wireGet(target).as(method), http.StatusMethodNotAllowed,
			weir.Invalid)
	}
	return []badRow{
		wrong("GET", "/v1/reserve"), wrong("PUT", "/v1/reserve"), wrong("DELETE", "/v1/cancel"),
		wrong("PATCH", "/v1/adjust"), wrong("HEAD", "/v1/complete"), wrong("OPTIONS", "/v1/extend"),
		wrong("POST", "/v1/status?entity=acme"), wrong("BREW", "/v1/status?entity=acme"),
		wrong("DELETE", "/v1/admin/system"), wrong("POST", "/healthz"), wrong("reserve", "/v1/reserve"),
		wrong("TRACE", "/v1/reserve"), wrong("PUT", "/openapi.json"),
	}
}

func badTokens(w *badWireWorld) []badRow {
	with := func(sent string, lines ...string) badRow {
		return refusedAs(sent, reservingRPM("1").with(lines...), http.StatusUnauthorized,
			weir.PermissionDenied)
	}
	weak := func(sent, bearer string, request wireSent) badRow {
		return refusedAs(sent, request.with("Authorization: Bearer "+bearer), http.StatusForbidden,
			weir.PermissionDenied)
	}
	brought := wirePost("/v1/reserve",
		`{"entity":"acme","resource":"llm","costs":{"rpm":1},"limits":{"rpm":{"capacity":5}}}`)
	limits := weak("limits brought with the role call", wireCaller, brought)
	limits.field = "limits"
	return []badRow{
		with("no bearer token", "Authorization:"),
		with("an empty Authorization", "Authorization: "+" "),
		with("a scheme without a bearer token", "Authorization: Bearer"),
		with("an empty bearer token", "Authorization: Bearer  "),
		with("an unknown bearer token", "Authorization: Bearer "+wireNoToken),
		with("a bearer token and one character more", "Authorization: Bearer "+wireCaller+"x"),
		with("a bearer token less one character", "Authorization: Bearer "+wireCaller[1:]),
		with("a bearer token in another case", "Authorization: Bearer "+strings.ToUpper(wireCaller)),
		with("a bearer token of 8,000 characters", "Authorization: Bearer "+strings.Repeat("x", 8000)),
		with("two bearer tokens in one field", "Authorization: Bearer "+wireCaller+", Bearer "+wireAdmin),
		with("two fields with bearer tokens", "Authorization: Bearer "+wireNoToken,
			"Authorization: Bearer "+wireCaller),
		with("the scheme Basic", "Authorization: Basic Y2FsbGVyOmNhbGwtY2FsbC1jYWxsLWNhbGw="),
		with("a bearer token without a scheme", "Authorization: "+wireCaller),
		refusedAs("a bearer token in the query", reservingRPM("1").with("Authorization:").to(
			"/v1/reserve?access_token="+wireCaller), http.StatusUnauthorized, weir.PermissionDenied),
		refusedAs("no bearer token, and a body over the bound",
			wirePost("/v1/reserve", strings.Repeat("x", 2<<20)).with("Authorization:"),
			http.StatusUnauthorized, weir.PermissionDenied),
		refusedAs("two fields with bearer tokens, for the metrics",
			wireGet("/metrics").with("Authorization: Bearer "+wireReader,
				"Authorization: Bearer "+wireNoToken),
			http.StatusUnauthorized, weir.PermissionDenied),
		refusedAs("no bearer token, for the metrics", wireGet("/metrics").with("Authorization:"),
			http.StatusUnauthorized, weir.PermissionDenied),
		weak("a reserve with the role read", wireReader, reservingRPM("1")),
		weak("a cancel with the role read", wireReader, wirePost("/v1/cancel",
			`{"lease_id":"`+w.live+`"}`)),
		weak("limits set with the role call", wireCaller,
			wirePost("/v1/admin/system/limits", `{"limits":{}}`).as(http.MethodPut)),
		weak("an entity deleted with the role call", wireCaller,
			wireGet("/v1/admin/entities/org").as(http.MethodDelete)),
		weak("the system asked with the role call", wireCaller, wireGet("/v1/admin/system")),
		limits,
	}
}

func (w wireSent) to(target string) wireSent {
	w.target = target
	return w
}

func badPaths() []badRow {
	lost := func(target string) badRow {
		return refusedAs("path "+target, reservingRPM("1").to(target), http.StatusNotFound, weir.Invalid)
	}
	return []badRow{
		lost("//v1/reserve"), lost("/v1//reserve"), lost("/v1/../v1/reserve"), lost("/v1/./reserve"),
		lost("/v1/reserve/"), lost("/v1/reserve/more"), lost("/V1/Reserve"), lost("/v2/reserve"),
		lost("/v1/%72eserve%00"), lost("/v1/reserve%2F"), lost("/v1"), lost("/page/../v1/reserve"),
		lost("/..%2f..%2fetc/passwd"), lost("/debug/pprof/"),
		refusedAs("path *", wireGet("*"), http.StatusNotFound, weir.Invalid),
		{sent: "a path with a broken escape", request: wireGet("/v1/entities/%zz/children"),
			status: http.StatusBadRequest, plain: true},
		refusedAs("an entity in a path, with a #", wireGet("/v1/entities/ac%23me/children"),
			http.StatusBadRequest, weir.Invalid),
		refusedAs("a resource in a path, with a space", wireGet("/v1/resources/gpt%204o/capacity"),
			http.StatusBadRequest, weir.Invalid),
		refusedAs("an entity in a path, of invalid UTF-8", wireGet("/v1/entities/%ff/children"),
			http.StatusBadRequest, weir.Invalid),
	}
}

func badQueries() []badRow {
	asked := func(sent, target, field, value string) badRow {
		return badRow{sent: sent, request: wireGet(target), status: http.StatusBadRequest,
			code:  weir.Invalid,
			field: field, value: value}
	}
	return []badRow{
		asked("a status of nobody", "/v1/status", "entity", ""),
		asked("an empty entity in a query", "/v1/status?entity=", "entity", ""),
		asked("an empty resource in a query", "/v1/status?entity=acme&resource=", "resource", ""),
		asked("an entity twice in a query", "/v1/status?entity=acme&entity=beta", "entity", "beta"),
		asked("an unknown parameter", "/v1/status?entity=acme&ressource=llm", "ressource", "llm"),
		asked("a parameter in another case", "/v1/status?entity=acme&Resource=llm", "Resource", "llm"),
		asked("a broken escape in a query", "/v1/status?entity=%zz", "~query|entity", "~.*"),
		asked("a semicolon in a query", "/v1/status?entity=acme;resource=llm", "~query|entity", "~.*"),
		asked("a malformed entity in a query", "/v1/status?entity=ac%23me", "entity", "ac#me"),
		asked("a malformed resource in a query", "/v1/status?entity=acme&resource=gpt%204o", "resource",
			"gpt 4o"),
		asked("an entity of invalid UTF-8 in a query", "/v1/status?entity=%ff", "entity", "\ufffd"),
		asked("an explanation without a resource", "/v1/explain?entity=acme", "resource", ""),
		asked("a page of nothing", "/v1/entities/org/children?size=0", "size", "0"),
		asked("a page that is too large", "/v1/entities/org/children?size=1001", "size", "1001"),
		asked("a page of no number", "/v1/entities/org/children?size=ten", "size", "ten"),
		asked("a page of 2^64+1", "/v1/entities/org/children?size=18446744073709551617", "size",
			"18446744073709551617"),
		{sent: "a parameter on a verb", request: reservingRPM("1").to("/v1/reserve?dry_run=true"),
			status: http.StatusBadRequest, code: weir.Invalid, field: "dry_run", value: "true"},
	}
}

func badAdmin() []badRow {
	put := func(sent, target, body, field, value string) badRow {
		return badRow{sent: sent, request: wirePost("/v1/admin/"+target,
			body).as(http.MethodPut).asAdmin(),
			status: http.StatusBadRequest, code: weir.Invalid, field: field, value: value}
	}
	limit := func(sent, limit, field, value string) badRow {
		return put(sent, "system/limits", `{"limits":{"rpm":`+limit+`}}`, "limits.rpm"+field, value)
	}
	gone := badRow{sent: "an entity deleted that is not there",
		request: wireGet("/v1/admin/entities/nobody").as(http.MethodDelete).asAdmin(),
		status:  http.StatusNotFound, code: weir.NotFound, field: "entity", value: "nobody"}
	parent := badRow{sent: "an entity deleted that has children",
		request: wireGet("/v1/admin/entities/org").as(http.MethodDelete).asAdmin(),
		status:  http.StatusConflict, code: weir.Conflict, field: "entity", value: "org"}
	return []badRow{
		put("limits without limits", "system/limits", `{}`, "limits", "~.*"),
		put("null as limits", "system/limits", `{"limits":null}`, "limits", "null"),
		put("a note in limits", "system/limits", `{"limits":{},"note":"x"}`, "note", "~.*"),
		limit("null as a limit", "null", "", "null"),
		limit("no capacity", "{}", ".capacity", "~.*"),
		limit("a capacity of 0", `{"capacity":0}`, ".capacity", "0"),
		limit("a negative capacity", `{"capacity":-1}`, ".capacity", "-1"),
		limit("a capacity of 2^63", `{"capacity":9223372036854775808}`, ".capacity",
			"9223372036854775808"),
		limit("a bucket too large for its milli-units", `{"capacity":9223372036854776}`, ".capacity",
			"9223372036854776"),
		limit("a refill period of 0", `{"capacity":1,"refill_period":0}`, ".refill_period", "0"),
		limit("a refill period in microseconds", `{"capacity":1,"refill_period":0.0001}`,
			".refill_period", "0.0001"),
		limit("a window that is not whole seconds", `{"kind":"window","capacity":1,"window":1.5}`,
			".window", "1.5"),
		limit("a window longer than time", `{"kind":"window","capacity":1,"window":9223372036854775807}`,
			".window", "~.*"),
		limit("a window of a bucket", `{"capacity":1,"window":60}`, ".window", "~.*"),
		limit("no window", `{"kind":"window","capacity":1}`, ".window", "~.*"),
		limit("an unknown kind", `{"kind":"leaky","capacity":1}`, ".kind", "leaky"),
		limit("a zone that does not exist",
			`{"kind":"budget","capacity":1,"every":"day","zone":"Mars/Base"}`,
			".zone", "Mars/Base"),
		limit("a zone outside the zones",
			`{"kind":"budget","capacity":1,"every":"day","zone":"../../etc/passwd"}`,
			".zone", "../../etc/passwd"),
		limit("a period that does not exist", `{"kind":"budget","capacity":1,"every":"decade"}`, ".every",
			"decade"),
		limit("an enforce that is no boolean", `{"capacity":1,"enforce":"no"}`, ".enforce", `"no"`),
		put("a policy that does not exist", "system/on_unavailable", `{"on_unavailable":"maybe"}`,
			"on_unavailable", "maybe"),
		put("a malformed resource", "resources/gpt%204o/limits", `{"limits":{}}`, "resource", "gpt 4o"),
		put("a malformed entity", "entities/ac%23me", `{}`, "entity", "ac#me"),
		put("an entity with limits in its body", "entities/org", `{"limits":{}}`, "limits", "~.*"),
		put("a cascade as a string", "entities/org", `{"cascade":"true"}`, "cascade", `"true"`),
		put("an entity that is its own parent", "entities/org", `{"parent":"org","cascade":true}`,
			"~.*parent|entity", "~.*"),
		put("an entity below its child", "entities/org", `{"parent":"child"}`, "~.*parent", "~child|org"),
		put("a cascade too deep", "entities/org", `{"parent":"child","cascade":true}`, "~cascade|parent",
			"~.*"),
		gone, parent,
	}
}
