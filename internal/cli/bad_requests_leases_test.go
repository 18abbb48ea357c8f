package cli

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/weir-limiter/weir"
)

// badLeaseIDs are lease IDs that are malformed, or too old or too new.
func badLeaseIDs(w *badWireWorld) []badRow {
	now := time.Now()
	with := func(sent, id string) badRow {
		return badDocument(sent,
			`{"lease_id":"`+id+`","entity":"acme","resource":"llm","costs":{"rpm":1}}`,
			"lease_id", id)
	}
	taken := with("a lease ID used with other content", w.live)
	taken.status, taken.code = http.StatusConflict, weir.Conflict
	over := with("the lease ID of a lease that has ended", w.ended)
	over.status, over.code = http.StatusConflict, weir.Ended
	return []badRow{
		with("an empty lease ID", ""),
		with("a lease ID of 25 characters", w.live[:25]),
		with("a lease ID of 27 characters", w.live+"0"),
		with("a lease ID with a letter that ULIDs do not have", w.live[:25]+"U"),
		with("a lease ID of more than 128 bits", "8"+w.live[1:]),
		with("a lease ID of zeros", strings.Repeat("0", 26)),
		with("a UUID", "123e4567-e89b-12d3-a456-426614174000"),
		with("a lease ID that is too old", weir.NewLeaseID(now.Add(-11*time.Minute)).String()),
		with("a lease ID older than the server", weir.NewLeaseID(now.Add(-2*time.Minute)).String()),
		with("a lease ID too far ahead", weir.NewLeaseID(now.Add(5*time.Minute)).String()),
		with("a lease ID of the year 10889", "7ZZZZZZZZZ"+w.live[10:]),
		badDocument("a number as lease ID",
			`{"lease_id":5,"entity":"acme","resource":"llm","costs":{"rpm":1}}`,
			"lease_id", "5"),
		taken, over,
	}
}

// badSettlements are verbs whose totals or actuals are impossible for their lease.
func badSettlements(w *badWireWorld) []badRow {
	row := func(sent, verb, body, field, value string) badRow {
		return badRow{sent: sent, request: wirePost("/v1/"+verb, body), status: http.StatusBadRequest,
			code: weir.Invalid, field: field, value: value}
	}
	adjust := func(sent, seq, totals, field, value string) badRow {
		return row(sent, "adjust", fmt.Sprintf(`{"lease_id":%q,"seq":%s,"totals":%s}`, w.live, seq,
			totals), field, value)
	}
	complete := func(sent, actuals, field, value string) badRow {
		return row(sent, "complete", fmt.Sprintf(`{"lease_id":%q,"actuals":%s}`, w.live, actuals), field,
			value)
	}
	rows := []badRow{
		adjust("a sequence number of 0", "0", `{"rpm":1}`, "seq", "0"),
		adjust("a negative sequence number", "-1", `{"rpm":1}`, "seq", "-1"),
		adjust("a sequence number as a string", `"1"`, `{"rpm":1}`, "seq", `"1"`),
		adjust("a sequence number of 2^63", "9223372036854775808", `{"rpm":1}`, "seq",
			"9223372036854775808"),
		row("no sequence number", "adjust", `{"lease_id":"`+w.live+`","totals":{"rpm":1}}`, "seq", "~.*"),
		row("no totals", "adjust", `{"lease_id":"`+w.live+`","seq":1}`, "totals", "~.*"),
		adjust("null as totals", "1", "null", "totals", "null"),
		adjust("a number as totals", "1", "5", "totals", "5"),
		adjust("a negative total", "1", `{"rpm":-1}`, "totals.rpm", "-1"),
		adjust("a total as a string", "1", `{"rpm":"1"}`, "totals.rpm", `"1"`),
		adjust("a total given twice", "1", `{"rpm":1,"rpm":2}`, "totals.rpm", "~.*"),
		adjust("a total of what was not reserved", "1", `{"rpm":1,"nope":1}`, "totals.nope", "~.*"),
		adjust("more slots than are held", "1", `{"rpm":1,"parallel":2}`, "totals.parallel", "2"),
		adjust("a total that a bucket cannot count", "1", `{"recent":1,"rpm":9223372036854775807}`,
			"totals.rpm", "9223372036854775807"),
		adjust("totals for two charges of one", "1", `[{"rpm":1},{"rpm":1}]`, "totals", "~.*"),
		adjust("totals that mix charges and flat keys", "1", `[{"rpm":1},{"key":"flat","amount":1}]`,
			"~totals.*", "~.*"),
		complete("null as actuals", "null", "actuals", "null"),
		complete("a negative actual", `{"daily":-5}`, "actuals.daily", "-5"),
		complete("a fraction as actual", `{"daily":1.5}`, "actuals.daily", "1.5"),
		complete("an actual of what was not reserved", `{"rpm":1,"nope":1}`, "actuals.nope", "~.*"),
		row("an unknown field in a complete", "complete", `{"lease_id":"`+w.live+`","actual":{"rpm":1}}`,
			"actual", "~.*"),
		row("an unknown field in a cancel", "cancel", `{"lease_id":"`+w.live+`","really":true}`, "really",
			"~.*"),
		row("a cancel of nothing", "cancel", `{}`, "lease_id", "~.*"),
		row("an extend of nothing", "extend", `{}`, "lease_id", "~.*"),
		row("a cancel of null", "cancel", `{"lease_id":null}`, "lease_id", "null"),
		row("an extend twice in one body", "extend", `{"lease_id":"`+w.live+`","lease_id":"`+w.live+`"}`,
			"lease_id", "~.*"),
		row("a complete of no ULID", "complete", `{"lease_id":"lease-1"}`, "lease_id", "lease-1"),
	}
	flat := complete("flat keys on another lease", `[{"key":"flat","actual_amount":1}]`, "lease_id",
		w.live)
	flat.status, flat.code = http.StatusNotFound, weir.UnknownLease
	return append(rows, flat)
}

// badVerbs are verbs on leases that were never reserved, or that have ended.
func badVerbs(w *badWireWorld) []badRow {
	unknown := weir.NewLeaseID(time.Now()).String()
	var rows []badRow
	for _, verb := range []struct {
		path, more string
		ended      weir.Code
	}{
		{"adjust", `,"seq":1,"totals":{"rpm":1}`, weir.Ended},
		{"complete", `,"actuals":{"rpm":2}`, weir.Conflict},
		{"cancel", "", weir.Conflict},
		{"extend", "", weir.Ended},
	} {
		row := func(sent, id string, status int, code weir.Code) badRow {
			return badRow{sent: sent + ": " + verb.path, status: status, code: code,
				request: wirePost("/v1/"+verb.path, `{"lease_id":"`+id+`"`+verb.more+`}`),
				field:   "lease_id", value: id}
		}
		rows = append(rows,
			row("a lease that nobody reserved", unknown, http.StatusNotFound, weir.UnknownLease),
			row("a lease that was completed", w.ended, http.StatusConflict, verb.ended))
	}
	return rows
}

// badFlatKeys are settlements of a flat lease.
func badFlatKeys(w *badWireWorld) []badRow {
	complete := func(sent, actuals, field, value string) badRow {
		return badRow{sent: sent, request: wirePost("/v1/complete",
			`{"lease_id":"`+w.flat+`","actuals":`+actuals+`}`),
			status: http.StatusBadRequest, code: weir.Invalid, field: field, value: value}
	}
	return []badRow{
		badDocument("a flat key twice",
			`{"requirements":[{"key":"flat","amount":1},{"key":"flat","amount":2}]}`,
			"requirements[1].key", "flat"),
		badDocument("a flat key with a #", `{"requirements":[{"key":"fl#t","amount":1}]}`,
			"requirements[0].key", "fl#t"),
		complete("a flat key that was not reserved", `[{"key":"other","actual_amount":1}]`,
			"actuals[0].key", "other"),
		complete("a flat key settled twice in one",
			`[{"key":"flat","actual_amount":1},{"key":"flat","actual_amount":1}]`,
			"actuals[1].key", "flat"),
		complete("a flat key settled without an amount", `[{"key":"flat"}]`, "actuals[0].actual_amount",
			"~.*"),
		complete("a flat key settled with the other verb's word", `[{"key":"flat","amount":1}]`,
			"actuals[0].amount", "~.*"),
		complete("a negative actual of a flat key", `[{"key":"flat","actual_amount":-1}]`,
			"actuals[0].actual_amount", "-1"),
		complete("limits' names on a flat lease", `{"nope":1}`, "~actuals.*", "~.*"),
	}
}
